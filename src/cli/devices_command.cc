// `ridgeline devices`: lists the described GPUs and machines, and shows each description.
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "predict/device.h"
#include "run/gpus.h"
#include "session/say.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::initializer_list<const char*> kDeviceForms = {"text", "md", "csv", "json"};

struct DevicesOptions {
  std::vector<fs::path> folders;
  std::string format = "text";
  std::string name;
};

std::string Shown(const predict::Device& device, std::string_view figure) {
  for (const predict::DeviceFigureKind& kind : predict::DeviceFigureKinds()) {
    const auto found = device.figures.find(std::string(figure));
    if (kind.name == figure && found != device.figures.end()) return predict::ShowFigure(kind, found->second.value);
  }
  return {};
}

int ListDevices(const DevicesOptions& options) {
  Table table{{"device", "gpu", "gpus", "bf16", "memory", "bandwidth", "network", "about", "folder"}, {}};
  const std::vector<fs::path> folders = predict::DeviceFolders(options.folders);
  for (const fs::path& file : predict::DeviceFiles(folders)) {
    const std::string folder = file.parent_path().string();
    try {
      const predict::Device device = predict::LoadDevice(file, folders);
      table.rows.push_back({device.name, device.gpu, device.gpus(), Shown(device, "peaks.bf16"),
                            Shown(device, "memory.size"), Shown(device, "memory.bandwidth"),
                            Shown(device, "network.bandwidth"), device.about, folder});
    } catch (const Error&) {
      // The other files can still be read.
      table.rows.push_back(
          {file.stem().string(), {}, {}, {}, {}, {}, {}, "cannot be read: `ridgeline devices NAME` says why", folder});
    }
  }
  session::Write(Format(table, options.format));
  return 0;
}

int ShowDevice(const DevicesOptions& options) {
  const predict::Device device = predict::FindDevice(options.name, predict::DeviceFolders(options.folders));
  const bool for_people = options.format == "text" || options.format == "md";
  Table table{{"figure", "value", "meaning", "source", "date", "note"}, {}};
  if (!for_people) table.columns = {"figure", "value", "unit", "meaning", "source", "date", "note"};
  for (const predict::DeviceFigureKind& kind : predict::DeviceFigureKinds()) {
    const auto found = device.figures.find(std::string(kind.name));
    if (found == device.figures.end()) continue;
    const predict::DeviceFigure& figure = found->second;
    std::vector<Cell> row = {std::string(kind.name)};
    if (for_people) {
      row.emplace_back(predict::ShowFigure(kind, figure.value));
    } else {
      row.emplace_back(figure.value / kind.units.back().factor);
      row.emplace_back(std::string(kind.units.back().name));
    }
    row.insert(row.end(), {std::string(kind.meaning), figure.source, figure.date, figure.note});
    table.rows.push_back(std::move(row));
  }
  if (options.format == "text")
    session::Say("{}: {} (gpu: {})\n{}\n", device.name, device.about, device.gpu, device.file.string());
  // A device may name the nearest `gpu` and have another size of memory. Then the driver's name does not identify it.
  const Gpu* gpu = FindGpu(device.gpu);
  if (options.format == "text" && gpu != nullptr && device.Has("memory.total") &&
      std::llround(device.At("memory.total")) == gpu->total_bytes) {
    session::Say("The driver calls its GPU '{}', and no other GPU has that name.\n", gpu->driver_name);
  }
  session::Write(Format(table, options.format));
  return 0;
}

}  // namespace

Action DevicesCommand(CLI::App& self) {
  const auto options = std::make_shared<DevicesOptions>();
  self.add_option("name", options->name,
                  "show this device with the source of each figure; or a GPU, as its driver calls it")
      ->type_name("DEVICE");
  AddFormatOption(self, options->format, kDeviceForms);
  AddDevicesOption(self, options->folders);
  self.footer(
      "Without a name, lists the described devices. A device is a YAML file in --devices, in devices/ of "
      "the current folder, in ~/.config/ridgeline/devices or in the installation. It is a single GPU, or a "
      "machine with several GPUs, their network and a price. Ridgeline measured none of these figures "
      "unless the source says so. docs/prediction.md tells how to write such a file.\n\n"
      "Examples:\n"
      "  ridgeline devices\n"
      "  ridgeline devices p5\n"
      "  ridgeline devices \"NVIDIA H100 80GB HBM3\"\n"
      "  ridgeline devices p6-b200 -o csv");
  return [options] { return options->name.empty() ? ListDevices(*options) : ShowDevice(*options); };
}

}  // namespace ridgeline::cli
