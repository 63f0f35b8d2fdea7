// What is known of a GPU, or of a machine with GPUs: a file of YAML, each figure with its source (docs/prediction.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/measured.h"
#include "ridgeline/amount.h"

namespace ridgeline {

inline constexpr size_t kMaxDeviceBytes = size_t{1} << 20;  // of a file

// A figure that a device may have. What is kept of it is in FLOPs, bytes, seconds, watts and dollars.
struct DeviceFigureKind {
  std::string_view name;        // "memory.bandwidth": the key of a section, and of what is in it
  std::span<const Unit> units;  // the last is the one it is shown in
  bool required = false;        // of every GPU; what else one must have depends on what it multiplies
  double most = 0;              // 0: any
  std::string_view meaning;
  bool of_cpus = false;  // required of processors, too
};
std::span<const DeviceFigureKind> DeviceFigureKinds();

struct DeviceFigure {
  double value = 0;
  std::string source;  // in words, not its key
  std::string note;    // such as where sources disagree; may be empty
  std::string date;    // of a price: when it was asked; empty elsewhere
};

struct Device {
  std::string name;
  std::string about;  // one line
  std::string gpu;    // the spec's name for its GPU (run/gpus.h), or none, of processors: what a step is planned for
  std::filesystem::path file;
  std::map<std::string, DeviceFigure> figures;  // by their kinds' names
  // What calls took there, where somebody measured them: each of another number of ranks, the fewest first.
  std::vector<std::shared_ptr<const MeasuredCalls>> measured;

  // Its ranks are a machine's processes, which share its cores; else each has a GPU.
  bool is_cpu() const { return gpu == "none"; }
  bool Has(const std::string& figure) const { return figures.contains(figure); }
  // Throws Error(kInvalidInput) with the file where it says nothing of it.
  double At(const std::string& figure) const;
  double Or(const std::string& figure, double otherwise) const;

  // GPUs whose links reach each other; those of a machine, which the network joins. A lone GPU is a machine of one.
  int64_t domain() const { return static_cast<int64_t>(Or("link.gpus", 1)); }
  int64_t gpus() const { return static_cast<int64_t>(Or("machine.gpus", 1)); }
  // On which so many ranks run: those of a processor share it.
  int64_t machines(int64_t ranks) const { return is_cpu() ? 1 : (ranks + gpus() - 1) / gpus(); }
};

// Where they are looked for, in order: `own`, devices/ of the current folder, the user's configuration
// (base/user_folders.h), what ships.
std::vector<std::filesystem::path> DeviceFolders(std::vector<std::filesystem::path> own);

// A file that names another `device` adds to what that says, or replaces it. Throws Error(kInvalidInput) with every
// fault at its line: an unknown format, a figure without a source or a unit, a negative one, a peak that is missing.
// The file's stem is the device's name.
Device ParseDevice(std::string_view text, const std::filesystem::path& file,
                   const std::vector<std::filesystem::path>& folders);
// Throws Error(kInfrastructure), too, where it cannot be read.
Device LoadDevice(const std::filesystem::path& file, const std::vector<std::filesystem::path>& folders);

// The files of all devices in these folders, the first of each name. What lies beside them and is no device is left
// out.
std::vector<std::filesystem::path> DeviceFiles(const std::vector<std::filesystem::path>& folders);

// By its file's name, or as the driver calls its GPU ("NVIDIA H100 80GB HBM3"). Throws Error(kUsage) with the nearest
// where there is none: nothing takes its place, and a slice of a GPU or another part of that name is told so.
Device FindDevice(const std::string& name, const std::vector<std::filesystem::path>& folders);

// "3.35 TB/s", in the unit a figure is shown in.
std::string ShowFigure(const DeviceFigureKind& kind, double value);

}  // namespace ridgeline
