// The description of a GPU or of a machine with GPUs: a YAML file, each figure with its source (docs/prediction.md).
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

namespace ridgeline::predict {

inline constexpr size_t kMaxDeviceBytes = size_t{1} << 20;  // of a file

// A kind of figure. Values are kept in FLOPs, bytes, seconds, watts and dollars.
struct DeviceFigureKind {
  std::string_view name;        // "memory.bandwidth": the section's key and the figure's
  std::span<const Unit> units;  // the last is the one for display
  bool required = false;        // for every GPU; its formats require further figures
  double most = 0;              // largest value; 0: any
  std::string_view meaning;
  bool of_cpus = false;  // required for processors, too
};
std::span<const DeviceFigureKind> DeviceFigureKinds();

struct DeviceFigure {
  double value = 0;
  std::string source;  // in words, not its key
  std::string note;    // for example that sources disagree; may be empty
  std::string date;    // of a price: when it was asked; else empty
};

struct Device {
  std::string name;
  std::string about;  // one line
  std::string gpu;    // as in RunSpec (run/gpus.h); none for processors. Steps are planned for it
  std::filesystem::path file;
  std::map<std::string, DeviceFigure> figures;  // by name of the kind
  // Measured times of calls, if there are any: one entry for each number of ranks, in ascending order.
  std::vector<std::shared_ptr<const MeasuredCalls>> measured;

  // True if ranks are processes that share a machine's cores. Otherwise each rank has a GPU.
  bool is_cpu() const { return gpu == "none"; }
  bool Has(const std::string& figure) const { return figures.contains(figure); }
  // Throws Error(kInvalidInput), naming the file, if the figure is missing.
  double At(const std::string& figure) const;
  double Or(const std::string& figure, double otherwise) const;

  // domain: GPUs that links join. gpus: GPUs of a machine; the network joins machines. A lone GPU is a machine of one.
  int64_t domain() const { return static_cast<int64_t>(Or("link.gpus", 1)); }
  int64_t gpus() const { return static_cast<int64_t>(Or("machine.gpus", 1)); }
  // How many machines so many ranks take. Ranks on processors share one.
  int64_t machines(int64_t ranks) const { return is_cpu() ? 1 : (ranks + gpus() - 1) / gpus(); }
};

// The folders with device files, in the order of search: `own`, devices/ in the current folder, the user's
// configuration (base/user_folders.h), the shipped ones.
std::vector<std::filesystem::path> DeviceFolders(std::vector<std::filesystem::path> own);

// Parses a device file, whose stem is the device's name. A file that names another `device` adds figures to it or
// replaces them. Throws Error(kInvalidInput) with every fault at its line, such as an unknown format, a figure without
// a source or a unit, a negative figure, or a missing peak.
Device ParseDevice(std::string_view text, const std::filesystem::path& file,
                   const std::vector<std::filesystem::path>& folders);
// Also throws Error(kInfrastructure) if the file cannot be read.
Device LoadDevice(const std::filesystem::path& file, const std::vector<std::filesystem::path>& folders);

// The device files in these folders, the first of each name. Files of other kinds are skipped.
std::vector<std::filesystem::path> DeviceFiles(const std::vector<std::filesystem::path>& folders);

// The names of the devices in these folders that are machines of several GPUs of this kind, joined by a network. Skips
// files that cannot be read.
std::vector<std::string> MachinesWith(std::string_view gpu, const std::vector<std::filesystem::path>& folders);

// Finds a device by its file's name or by the driver's name of its GPU ("NVIDIA H100 80GB HBM3"). Throws Error(kUsage)
// with the nearest name if there is none. No other device takes its place: for a MIG slice or another part of that
// name, the error says so.
Device FindDevice(const std::string& name, const std::vector<std::filesystem::path>& folders);

// "3.35 TB/s": the value in the kind's unit for display.
std::string ShowFigure(const DeviceFigureKind& kind, double value);

}  // namespace ridgeline::predict
