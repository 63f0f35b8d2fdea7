#include "yaml/units.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ridgeline {
namespace {

std::optional<double> WithUnit(const YamlNode& node, const std::vector<std::pair<std::string_view, double>>& units) {
  if (node.kind != YamlNode::Kind::kScalar) return std::nullopt;
  if (node.scalar.is_number_integer()) return node.scalar.get<double>();
  if (!node.scalar.is_string()) return std::nullopt;
  const auto text = node.scalar.get<std::string>();
  const size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string::npos) return std::nullopt;
  const auto number = ParseNumber(std::string_view(text).substr(0, unit_at));
  const std::string_view unit = Trim(std::string_view(text).substr(unit_at));
  for (const auto& [name, factor] : units) {
    if (number && name == unit) return *number * factor;
  }
  return std::nullopt;
}

std::optional<int64_t> Whole(std::optional<double> value) {
  if (!value || *value < 1 || *value > 1e18) return std::nullopt;
  return std::llround(*value);
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadBytes(const YamlNode& node) {
  return Whole(WithUnit(node, {{"B", 1},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1024.0},
                               {"MiB", 1024.0 * 1024},
                               {"GiB", 1024.0 * 1024 * 1024},
                               {"TiB", 1024.0 * 1024 * 1024 * 1024}}));
}

std::optional<int64_t> ReadSeconds(const YamlNode& node) {
  return Whole(WithUnit(node, {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}}));
}

}  // namespace ridgeline
