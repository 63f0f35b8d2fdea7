#include "predict/device.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "predict/measured_section.h"
#include "predict/sourced_reader.h"
#include "run/gpus.h"
#include "yaml/date.h"

namespace ridgeline::predict {
namespace fs = std::filesystem;
namespace {

constexpr Unit kFlopRates[] = {{"GFLOP/s", 1e9}, {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}};
constexpr Unit kMemoryRates[] = {{"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kLinkRates[] = {{"TB/s", 1e12}, {"Gbit/s", 1e9 / 8}, {"GB/s", 1e9}};
constexpr Unit kNetworkRates[] = {{"GB/s", 1e9}, {"TB/s", 1e12}, {"Gbit/s", 1e9 / 8}};
constexpr Unit kLatencies[] = {{"ns", 1e-9}, {"ms", 1e-3}, {"us", 1e-6}};
constexpr Unit kSeconds[] = {{"ms", 1e-3}, {"s", 1}};
constexpr Unit kSizes[] = {{"MiB", 0x1p20}, {"GiB", 0x1p30}, {"MB", 1e6}, {"GB", 1e9}};
constexpr Unit kPowers[] = {{"kW", 1e3}, {"W", 1}};
constexpr Unit kPrices[] = {{"USD/h", 1}};
constexpr Unit kCounts[] = {{"", 1}};

constexpr DeviceFigureKind kKinds[] = {
    {"peaks.fp32", kFlopRates, true, 0, "products of fp32, without TF32", true},
    {"peaks.tf32", kFlopRates, false, 0, "products of TF32"},
    {"peaks.bf16", kFlopRates, true, 0, "dense products of bf16"},
    {"peaks.fp16", kFlopRates, true, 0, "dense products of fp16"},
    {"peaks.fp8", kFlopRates, false, 0, "dense products of fp8, a scale a tensor"},
    {"peaks.mxfp8", kFlopRates, false, 0, "dense products of fp8 in blocks of 32"},
    {"peaks.fp4", kFlopRates, false, 0, "dense products of fp4 in blocks of 16"},
    {"ceilings.bf16", kFlopRates, false, 0, "the fastest product of bf16 that was seen, of any shape"},
    {"ceilings.fp8", kFlopRates, false, 0, "the fastest product of fp8 that was seen, of any shape"},
    {"memory.total", kSizes, false, 0, "of a GPU, as nvidia-smi says it"},
    {"memory.size", kSizes, true, 0, "what CUDA shows a program of that, as PyTorch says it (total capacity)", true},
    {"memory.bandwidth", kMemoryRates, true, 0, "of its memory", true},
    {"chip.multiprocessors", kCounts, true, 4096, "streaming multiprocessors of a GPU; cores of processors", true},
    {"chip.launch", kLatencies, true, 0, "the overhead of a kernel in a recorded graph", true},
    {"chip.power", kPowers, true, 0, "a GPU's limit"},
    {"chip.rated_power", kPowers, false, 0, "the limit at which peaks and ceilings were stated, if it differs"},
    {"link.bandwidth", kLinkRates, false, 0, "of a GPU to those of its domain, one way"},
    {"link.latency", kLatencies, false, 0, "of one hop inside the domain"},
    {"link.gpus", kCounts, false, 1 << 20, "GPUs of a domain"},
    {"machine.gpus", kCounts, false, 1 << 20, "GPUs of a machine"},
    {"network.bandwidth", kNetworkRates, false, 0, "of a machine to others, one way"},
    {"network.latency", kLatencies, false, 0, "of one hop between machines"},
    {"price.on_demand", kPrices, false, 0, "of a machine"},
    {"price.capacity_block", kPrices, false, 0, "of a machine, reserved"},
    {"cold.first_iteration", kSeconds, false, 0, "what the first iteration takes more than the others"},
    {"efficiency.products", kCounts, false, 1, "of the ceiling, by products of 16 bits of a good shape"},
    {"efficiency.products_fp8", kCounts, false, 1, "the same, of 8 bits"},
    {"efficiency.products_fp4", kCounts, false, 1, "the same, of 4 bits"},
    {"efficiency.attention", kCounts, false, 1, "of the ceiling of 16 bits, by attention"},
    {"efficiency.memory", kCounts, false, 1, "of the memory's bandwidth, by passes over it"},
    {"efficiency.link", kCounts, false, 1, "of the link's bandwidth, by collectives"},
    {"efficiency.network", kCounts, false, 1, "of the network's bandwidth, by collectives"},
};

const DeviceFigureKind* FindKind(std::string_view name) {
  const auto* found = std::ranges::find(kKinds, name, &DeviceFigureKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

yaml::Names SectionNames() {
  yaml::Names names;
  for (const DeviceFigureKind& kind : kKinds) {
    if (names.empty() || names.back() != SectionOf(kind.name)) names.emplace_back(SectionOf(kind.name));
  }
  return names;
}

// A sweep for an h100 may also be named h100.yaml. Only devices have these keys: a sweep has a `price`, a framework
// `memory` and `sources`, and a trainer's definition an `about`.
bool MayBeDevice(const fs::path& file) {
  static const yaml::Names keys = {"name", "gpu",     "device",  "peaks", "ceilings", "chip",
                                   "link", "machine", "network", "cold",  "measured"};
  return !yaml::IsOfAnotherKind(file, keys);
}

yaml::Names KeysOf(std::string_view section) {
  yaml::Names names;
  for (const DeviceFigureKind& kind : kKinds) {
    if (SectionOf(kind.name) == section) names.emplace_back(KeyOf(kind.name));
  }
  return names;
}

// The range of a figure for anything that is built, and for machines emulated in tests. Outside it, a unit or a digit
// is wrong.
std::pair<double, double> Plausible(std::string_view kind) {
  if (kind == "chip.power" || kind == "chip.rated_power") return {10, 10e3};
  if (kind == "chip.launch") return {1e-9, 1};
  if (kind == "memory.size" || kind == "memory.total") return {1e6, 1e15};
  const std::string_view section = SectionOf(kind);
  if (section == "peaks" || section == "ceilings") return {1e6, 1e18};
  if (section == "price") return {1e-3, 1e6};
  if (kind.ends_with(".bandwidth")) return {1e4, 1e15};
  if (kind.ends_with(".latency")) return {1e-9, 1};
  return {0, std::numeric_limits<double>::infinity()};
}

constexpr int kLongestChain = 4;  // of files, each naming another `device`

class DeviceReader : public SourcedReader {
 public:
  DeviceReader(const fs::path& file, const std::vector<fs::path>& folders, int depth)
      : file_(file), folders_(folders), depth_(depth) {}

  Device Read(const yaml::YamlNode& root) {
    Device device;
    if (root.kind != yaml::YamlNode::Kind::kMap) {
      Wrong(root, yaml::NotAMapping("a device is a mapping", root));
      return device;
    }
    yaml::Names known = {"name", "about", "gpu", "device", "sources", "measured"};
    for (const std::string& section : SectionNames()) known.push_back(section);
    Map map;
    for (const auto& [key, value] : yaml::Entries(root, "key", known, faults)) map.emplace(key, value);
    if (map.contains("device")) ReadParent(*map["device"], device);
    device.file = file_;
    device.name = file_.stem().string();
    RequireName(root, map, device.name);
    if (!map.contains("about")) {
      Wrong(root, "'about' is missing");
    } else {
      device.about = Words(*map["about"], "about");
    }
    if (map.contains("gpu")) device.gpu = GpuOf(*map["gpu"]);
    if (map.contains("sources")) ReadSources(*map["sources"]);
    for (const std::string& section : SectionNames()) {
      if (map.contains(section)) ReadSection(*map[section], section, device);
    }
    if (map.contains("measured")) device.measured = ReadMeasured(*map["measured"], source_names(), faults);
    if (faults.empty()) RequireFigures(root, map, device);
    return device;
  }

  static std::string ReadText(const fs::path& file) {
    if (auto text = ReadFileIfThere(file, kMaxDeviceBytes + 1)) return *std::move(text);
    throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
  }

  static Device ParseAt(std::string_view text, const fs::path& file, const std::vector<fs::path>& folders, int depth) {
    constexpr const char* kHint = "docs/prediction.md describes devices";
    DeviceReader reader(file, folders, depth);
    Device device;
    try {
      device = reader.Read(yaml::ParseYaml(text, {.bytes = kMaxDeviceBytes}));
    } catch (const yaml::Fault& fault) {
      yaml::ThrowFaults(file, {fault}, kHint);
    }
    if (!reader.faults.empty()) yaml::ThrowFaults(file, std::move(reader.faults), kHint);
    return device;
  }

 private:
  void ReadParent(const yaml::YamlNode& node, Device& device) {
    const std::string name = Words(node, "device");
    if (name.empty()) return;
    if (depth_ == kLongestChain) {
      Wrong(node, fmt::format("device: {}: more than {} files name each other", ShortenToBytes(name, 80), depth_));
      return;
    }
    try {
      const fs::path file = FindNamedFile("device", name, folders_, MayBeDevice);
      device = ParseAt(ReadText(file), file, folders_, depth_ + 1);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kInfrastructure) throw;
      Wrong(node, e.message());
    }
  }

  std::string GpuOf(const yaml::YamlNode& node) {
    std::string name = Words(node, "gpu");
    yaml::Names known;
    for (const Gpu& gpu : Gpus()) known.emplace_back(gpu.name);
    known.emplace_back("none");
    if (name.empty() || name == "none" || FindGpu(name) != nullptr) return name;
    Wrong(node, fmt::format("unknown gpu '{}'{}; known are {}", ShortenToBytes(name, 80), DidYouMean(name, known),
                            Join(known, ", ")));
    return {};
  }

  void ReadSection(const yaml::YamlNode& node, const std::string& section, Device& device) {
    if (!IsMap(node, section, " of figures")) return;
    const bool formats = section == "peaks" || section == "ceilings";
    for (const auto& [key, value] :
         yaml::Entries(node, formats ? "format" : "figure of " + section, KeysOf(section), faults)) {
      const std::string name = section + "." + key;
      if (const auto figure = ReadFigure(*value, *FindKind(name))) device.figures[name] = *figure;
    }
  }

  std::optional<DeviceFigure> ReadFigure(const yaml::YamlNode& node, const DeviceFigureKind& kind) {
    const bool price = SectionOf(kind.name) == "price";
    const auto found = FigureOf(node, kind.name, kind.units, price ? yaml::Names{"date"} : yaml::Names{});
    if (!found) return std::nullopt;
    const Map& map = *found;
    DeviceFigure figure;
    if (map.contains("value")) figure.value = ValueOf(*map.at("value"), kind);
    if (map.contains("source")) figure.source = SourceOf(*map.at("source"));
    if (map.contains("note")) figure.note = Words(*map.at("note"), "note");
    if (map.contains("date")) {
      figure.date = Words(*map.at("date"), "date");
      if (!figure.date.empty() && !yaml::IsDate(figure.date)) {
        Wrong(*map.at("date"), yaml::NoDate(figure.date));
      }
    }
    return figure;
  }

  double ValueOf(const yaml::YamlNode& node, const DeviceFigureKind& kind) {
    const auto value = AmountOf(node, kind.name, kind.units);
    if (!value) return 0;
    if (*value <= 0 || (kind.most > 0 && *value > kind.most)) {
      Wrong(node, kind.most > 0 ? fmt::format("{} is more than 0 and at most {}", kind.name, kind.most)
                                : fmt::format("{} is more than 0", kind.name));
    } else if (const auto [least, most] = Plausible(kind.name); *value < least || *value > most) {
      Wrong(node, fmt::format("{} is {}, which no device has: it is from {} to {}", kind.name, ShowFigure(kind, *value),
                              ShowFigure(kind, least), ShowFigure(kind, most)));
    }
    return *value;
  }

  // Requires the figures of this file and of those that it names, together.
  void RequireFigures(const yaml::YamlNode& root, const Map& map, const Device& device) {
    const auto missing = [&](std::string_view kind, std::string_view why) {
      const auto section = map.find(std::string(SectionOf(kind)));
      Wrong(section == map.end() ? root : *section->second, fmt::format("{} is missing{}", kind, why));
    };
    if (device.gpu.empty()) Wrong(root, "'gpu' is missing: which of the GPUs that a step can be planned for it has");
    for (const DeviceFigureKind& kind : kKinds) {
      const bool required = kind.required && (!device.is_cpu() || kind.of_cpus);
      if (required && !device.Has(std::string(kind.name))) missing(kind.name, "");
    }
    const Gpu* gpu = FindGpu(device.gpu);
    if (gpu != nullptr) {
      const std::string why = fmt::format(": {} multiplies that", gpu->product);
      if (gpu->compute_capability >= 89 && !device.Has("peaks.fp8")) missing("peaks.fp8", why);
      for (const char* blocks : {"peaks.mxfp8", "peaks.fp4"}) {
        if (gpu->compute_capability >= 100 && !device.Has(blocks)) missing(blocks, why);
      }
    }
    for (const auto& [part, whole] :
         {std::pair{"ceilings.bf16", "peaks.bf16"}, {"ceilings.fp8", "peaks.fp8"}, {"memory.size", "memory.total"}}) {
      if (!device.Has(part) || !device.Has(whole) || device.At(part) <= device.At(whole)) continue;
      const auto section = map.find(std::string(SectionOf(part)));
      Wrong(section == map.end() ? root : *section->second,
            fmt::format("{} is {}, above {}, which is {}: nothing gets more than that", part,
                        ShowFigure(*FindKind(part), device.At(part)), whole,
                        ShowFigure(*FindKind(whole), device.At(whole))));
    }
    for (const auto& [has, needs] : {std::pair{"link.bandwidth", "link.latency"},
                                     {"link.bandwidth", "link.gpus"},
                                     {"link.gpus", "link.bandwidth"},
                                     {"network.bandwidth", "network.latency"},
                                     {"network.bandwidth", "machine.gpus"},
                                     {"price.on_demand", "machine.gpus"}}) {
      if (device.Has(has) && !device.Has(needs)) missing(needs, fmt::format(": there is {}", has));
    }
  }

  const fs::path file_;
  const std::vector<fs::path>& folders_;
  const int depth_;
};

}  // namespace

std::span<const DeviceFigureKind> DeviceFigureKinds() { return kKinds; }

double Device::At(const std::string& figure) const {
  if (const auto found = figures.find(figure); found != figures.end()) return found->second.value;
  throw Error(ErrorKind::kInvalidInput, fmt::format("{} says nothing of {}, which this needs", file.string(), figure),
              "add it, in a file of your own that names this `device` (docs/prediction.md)");
}

double Device::Or(const std::string& figure, double otherwise) const {
  const auto found = figures.find(figure);
  return found == figures.end() ? otherwise : found->second.value;
}

std::vector<fs::path> DeviceFolders(std::vector<fs::path> own) {
  own.emplace_back("devices");
  return FoldersOf("devices", std::move(own));
}

std::vector<fs::path> DeviceFiles(const std::vector<fs::path>& folders) { return NamedFiles(folders, MayBeDevice); }

Device ParseDevice(std::string_view text, const fs::path& file, const std::vector<fs::path>& folders) {
  return DeviceReader::ParseAt(text, file, folders, 0);
}

Device LoadDevice(const fs::path& file, const std::vector<fs::path>& folders) {
  return DeviceReader::ParseAt(DeviceReader::ReadText(file), file, folders, 0);
}

std::vector<std::string> MachinesWith(std::string_view gpu, const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& file : DeviceFiles(folders)) {
    try {
      const Device device = LoadDevice(file, folders);
      if (device.gpu == gpu && device.gpus() > 1 && device.Has("network.bandwidth")) names.push_back(device.name);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the others can be read
    }
  }
  return names;
}

Device FindDevice(const std::string& name, const std::vector<fs::path>& folders) {
  if (name.starts_with("NVIDIA ")) {
    const Gpu* gpu = FindGpuOfDriver(name);
    if (gpu != nullptr)
      return LoadDevice(FindNamedFile("device", std::string(gpu->name), folders, MayBeDevice), folders);
    throw Error(ErrorKind::kUsage, WhyNoGpu(ShortenToBytes(name, 200)),
                "`ridgeline devices` lists the described devices; docs/prediction.md tells how to describe another");
  }
  return LoadDevice(FindNamedFile("device", name, folders, MayBeDevice), folders);
}

std::string ShowFigure(const DeviceFigureKind& kind, double value) {
  const Unit& unit = kind.units.back();
  return unit.name.empty() ? fmt::format("{:.6g}", value / unit.factor)
                           : fmt::format("{:.6g} {}", value / unit.factor, unit.name);
}

}  // namespace ridgeline::predict
