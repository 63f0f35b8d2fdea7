#include "kubernetes/quantity.h"

#include <array>

#include "common/options.h"

namespace ridgeline::kubernetes {
namespace {

constexpr Unit kUnits[] = {
    {"", 1},     {"m", 1e-3},   {"k", 1e3},        {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
    {"P", 1e15}, {"Ki", 1024.}, {"Mi", 1048576.0}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50},
};

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  if (text.find(' ') != std::string_view::npos) return std::nullopt;
  return ParseAmount(text, kUnits);
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
