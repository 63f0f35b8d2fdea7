#include "predict/measured_section.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "yaml/common_mistakes.h"

namespace ridgeline::predict {
namespace {

constexpr size_t kLongestClass = 256;

// Returns a number of the section. Adds a fault and returns nothing if it is not a number within the bounds.
std::optional<double> NumberIn(const yaml::YamlNode& node, const std::string& what, double least, double most,
                               std::vector<yaml::Fault>& faults) {
  if (node.scalar.is_number()) {
    const auto value = node.scalar.get<double>();
    if (value >= least && value <= most) return value;
  }
  faults.push_back(
      {node.place, fmt::format("{} is a number from {} to {}, not {}", what, least, most, yaml::Describe(node))});
  return std::nullopt;
}

// Reads a call, such as [512, 64, 64, 81000]: dimensions, and nanoseconds.
std::optional<MeasuredCall> CallOf(const yaml::YamlNode& node, const std::string& name,
                                   std::vector<yaml::Fault>& faults) {
  if (node.kind != yaml::YamlNode::Kind::kList || node.items.size() < 2 || node.items.size() > 4) {
    faults.push_back({node.place, fmt::format("a call of '{}' is a list of one to three dimensions and of nanoseconds, "
                                              "such as [512, 64, 64, 81000], not {}",
                                              name, yaml::Describe(node))});
    return std::nullopt;
  }
  MeasuredCall call;
  const size_t dims = node.items.size() - 1;
  for (size_t i = 0; i < dims; ++i) {
    const auto dim = NumberIn(node.items[i], "a dimension", 1, 1e18, faults);
    if (!dim) return std::nullopt;
    call.dims[i] = std::llround(*dim);
  }
  const auto ns = NumberIn(node.items[dims], "nanoseconds of a call", 1, 1e15, faults);
  if (!ns) return std::nullopt;
  call.ns = *ns;
  return call;
}

void ReadClass(const std::string& name, const yaml::YamlNode& node, MeasuredCalls& of,
               std::vector<yaml::Fault>& faults) {
  const auto wrong = [&](std::string message) { faults.push_back({node.place, std::move(message)}); };
  if (node.kind != yaml::YamlNode::Kind::kList || node.items.empty() || node.items.size() > kMostCallsOfClass) {
    return wrong(
        fmt::format("'{}' has a list of 1 to {} calls, not {}", name, kMostCallsOfClass, yaml::Describe(node)));
  }
  std::vector<MeasuredCall> calls;
  for (const yaml::YamlNode& item : node.items) {
    if (const auto call = CallOf(item, name, faults)) calls.push_back(*call);
  }
  if (calls.size() < node.items.size()) return;
  const auto dims_of = [](const MeasuredCall& call) {
    return std::ranges::count_if(call.dims, [](int64_t dim) { return dim > 0; });
  };
  if (std::ranges::any_of(calls, [&](const MeasuredCall& call) { return dims_of(call) != dims_of(calls.front()); })) {
    return wrong(fmt::format("the calls of '{}' have different numbers of dimensions", name));
  }
  of.classes.emplace(name, CallModel(name, std::move(calls)));
}

MeasuredCalls ReadOne(const yaml::YamlNode& node, const yaml::Names& sources, std::vector<yaml::Fault>& faults) {
  MeasuredCalls measured;
  static const yaml::Names kKeys = {"ranks", "source", "error", "bias", "overlap", "programs", "calls"};
  yaml::Names missing = {"ranks", "source", "error", "calls"};
  const auto number = [&](const yaml::YamlNode& value, const std::string& key, double least, double most, auto& to) {
    if (const auto read = NumberIn(value, "measured." + key, least, most, faults)) {
      to = static_cast<std::remove_reference_t<decltype(to)>>(*read);
    }
  };
  for (const auto& [key, value] : yaml::Entries(node, "key of measured", kKeys, faults)) {
    std::erase(missing, key);
    if (key == "ranks") number(*value, key, 1, 1 << 20, measured.ranks);
    if (key == "error") number(*value, key, 1e-4, 5, measured.error);
    if (key == "bias") number(*value, key, kLeastBias, kMostBias, measured.bias);
    if (key == "overlap") number(*value, key, 0, 1, measured.overlap);
    if (key == "programs") number(*value, key, 1, 1 << 20, measured.programs);
    if (key == "source") {
      const std::string source = value->scalar.is_string() ? value->scalar.get<std::string>() : "";
      if (std::ranges::find(sources, source) == sources.end()) {
        faults.push_back({value->place, fmt::format("no source '{}' stands under sources{}", ShortenToBytes(source, 80),
                                                    DidYouMean(source, sources))});
      }
    }
    if (key != "calls") continue;
    if (value->kind != yaml::YamlNode::Kind::kMap) {
      faults.push_back(
          {value->place, fmt::format("calls is a mapping of classes to calls, not {}", yaml::Describe(*value))});
      continue;
    }
    for (const auto& [name, calls] : yaml::Entries(*value, "class", {}, faults)) {
      if (name.size() > kLongestClass) {
        faults.push_back({calls->place, "a class of calls has a name of at most 256 bytes"});
        continue;
      }
      ReadClass(name, *calls, measured, faults);
    }
  }
  for (const std::string& key : missing) faults.push_back({node.place, fmt::format("measured has no '{}'", key)});
  return measured;
}

}  // namespace

std::vector<std::shared_ptr<const MeasuredCalls>> ReadMeasured(const yaml::YamlNode& node, const yaml::Names& sources,
                                                               std::vector<yaml::Fault>& faults) {
  std::vector<std::shared_ptr<const MeasuredCalls>> measured;
  for (const yaml::YamlNode* one : yaml::Mappings(node, "measured", true, faults, "calls that were measured")) {
    measured.push_back(std::make_shared<const MeasuredCalls>(ReadOne(*one, sources, faults)));
  }
  std::ranges::stable_sort(measured, {}, [](const auto& one) { return one->ranks; });
  const auto twice = std::ranges::adjacent_find(measured, {}, [](const auto& one) { return one->ranks; });
  if (twice != measured.end() && faults.empty()) {
    faults.push_back({node.place, fmt::format("measured has {} ranks twice", (*twice)->ranks)});
  }
  return measured;
}

std::string MeasuredText(const std::vector<std::shared_ptr<const MeasuredCalls>>& measured, const std::string& source) {
  constexpr size_t kWidth = 116;
  std::string text = "measured:\n";
  for (const auto& of : measured) {
    text += fmt::format(
        "  - ranks: {}\n    source: {}\n    error: {:.4f}\n    bias: {:.4f}\n    overlap: {:.2f}\n"
        "    programs: {}\n    calls:\n",
        of->ranks, source, of->error, of->bias, of->overlap, std::max<int64_t>(of->programs, 1));
    for (const auto& [name, model] : of->classes) {
      text += fmt::format("      \"{}\": [", name);
      std::string line;
      for (const MeasuredCall& call : model.calls()) {
        std::string one = "[";
        for (const int64_t dim : call.dims) {
          if (dim > 0) one += fmt::format("{}, ", dim);
        }
        one += fmt::format("{:.0f}]", std::max(1.0, call.ns));
        if (line.size() + one.size() > kWidth - 10) text += "\n        " + std::exchange(line, "") + ",";
        line += (line.empty() ? "" : ", ") + one;
      }
      text += "\n        " + line + "]\n";
    }
  }
  return text;
}

}  // namespace ridgeline::predict
