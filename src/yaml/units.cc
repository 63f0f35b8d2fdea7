#include "yaml/units.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "ridgeline/amount.h"

namespace ridgeline::yaml {
namespace {

// A number counts in the first of the units. A text must name one of the others.
std::optional<double> Amount(const YamlNode& node, std::span<const Unit> units) {
  if (node.scalar.is_number()) return ParseAmount(DumpJson(node.scalar), units);
  if (!node.scalar.is_string()) return std::nullopt;
  return ParseAmount(node.scalar.get_ref<const std::string&>(), units.subspan(1));
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadBytes(const YamlNode& node) { return WholeAmount(Amount(node, kSizeUnits), kMostBytes); }

std::optional<int64_t> ReadSeconds(const YamlNode& node) { return WholeAmount(Amount(node, kTimeUnits), kMostSeconds); }

std::string MostBytesNote(const YamlNode& node) {
  const auto bytes = Amount(node, kSizeUnits);
  return bytes && *bytes > kMostBytes ? fmt::format("; {}TB are the most", kMostBytes / 1'000'000'000'000) : "";
}

std::string MostSecondsNote(const YamlNode& node) {
  const auto seconds = Amount(node, kTimeUnits);
  return seconds && *seconds > kMostSeconds ? fmt::format("; {}d are the most", kMostSeconds / 86'400) : "";
}

}  // namespace ridgeline::yaml
