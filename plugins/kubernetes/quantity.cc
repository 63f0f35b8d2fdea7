#include "kubernetes/quantity.h"

#include <array>
#include <charconv>
#include <utility>

namespace ridgeline::kubernetes {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"", 1},     {"m", 1e-3},   {"k", 1e3},        {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
    {"P", 1e15}, {"Ki", 1024.}, {"Mi", 1048576.0}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50},
};

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || number < 0 || text.empty() || text.front() == 'i' || text.front() == 'n') {
    return std::nullopt;  // from_chars also reads "inf" and "nan"
  }
  const std::string_view unit(end, static_cast<size_t>(last - end));
  for (const auto& [name, factor] : kUnits) {
    if (name == unit) return number * factor;
  }
  return std::nullopt;
}

std::string FormatBytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kBinary = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < kBinary.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + std::string(kBinary[unit]);
}

}  // namespace ridgeline::kubernetes
