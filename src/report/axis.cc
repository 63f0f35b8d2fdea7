#include "report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace ridgeline::report {

AxisUnit PickUnit(AxisScale scale, double max, const std::string& axis) {
  static constexpr std::array<std::pair<double, std::string_view>, 5> kCounts = {
      {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e4, "K"}, {0, ""}}};
  static constexpr std::array<std::pair<double, std::string_view>, 5> kBytes = {
      {{1e13, "TB"}, {1e10, "GB"}, {1e7, "MB"}, {1e4, "kB"}, {0, "B"}}};
  if (scale == AxisScale::kPlain) return {1, "", axis};
  const bool bytes = scale == AxisScale::kBytes;
  for (const auto& [from, unit] : bytes ? kBytes : kCounts) {
    if (max < from) continue;
    const double divisor = from == 0 ? 1 : bytes ? from / 10 : unit == "K" ? 1e3 : from;
    return bytes ? AxisUnit{divisor, "", std::string(unit)} : AxisUnit{divisor, unit, axis};
  }
  return {};
}

std::vector<double> AxisTicks(double max) {
  if (!(max > 0) || !std::isfinite(max)) return {0, 1};
  const double power = std::pow(10, std::floor(std::log10(max / 4)));
  double step = power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    step = factor * power;
    if (max / step <= 5) break;
  }
  std::vector<double> ticks;
  for (int i = 0; ticks.empty() || ticks.back() < max * (1 - 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> LinearTicks(double min, double max) {
  if (!(max - min > 1e-12 * std::max(std::abs(min), std::abs(max)))) {
    const double around = std::max(std::abs(min) / 2, 1e-3);
    min -= around;
    max += around;
  }
  const double power = std::pow(10, std::floor(std::log10((max - min) / 4)));
  double step = power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    step = factor * power;
    if ((max - min) / step <= 5) break;
  }
  // Counted instead of added up, so that zero is exactly zero.
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::floor(min / step + 1e-9));
  for (int64_t i = first;; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
    if (ticks.size() > 1 && ticks.back() >= max - 1e-9 * step) return ticks;
  }
}

std::vector<double> LogTicks(double min, double max) {
  const auto first = static_cast<int>(std::floor(std::log10(min) + 1e-9));
  const auto last = static_cast<int>(std::ceil(std::log10(max) - 1e-9));
  const bool decades = last - first > 3;
  std::vector<double> all;
  for (int power = first; power <= std::max(last, first + 1); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor == 1 || !decades) all.push_back(factor * std::pow(10, power));
    }
  }
  // From the last at or below min to the first at or above max.
  auto begin = std::upper_bound(all.begin(), all.end(), min * (1 + 1e-9));
  if (begin != all.begin()) --begin;
  auto end = std::lower_bound(begin, all.end(), max * (1 - 1e-9));
  if (end == begin) ++end;
  return {begin, end == all.end() ? end : end + 1};
}

std::string ShortNumber(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude < 0.001) return fmt::format("{:.1e}", value);
  const int decimals = magnitude >= 9.995 ? 1 : magnitude >= 0.9995 ? 2 : 3;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string TickText(double value, std::string_view suffix, int digits) {
  const double size = std::abs(value);
  const std::string text = size >= 1e7             ? fmt::format("{:.2g}", size)
                           : digits == kTickDigits ? ShortNumber(size)
                                                   : fmt::format("{:.{}g}", size, digits);
  return ((value < 0 ? "\xE2\x88\x92" : "") + text).append(value == 0 ? std::string_view() : suffix);
}

int DigitsOfTicks(const std::vector<double>& ticks) {
  constexpr int kLongest = 7;
  int digits = kTickDigits;
  const auto same = [&](double a, double b) { return TickText(a, {}, digits) == TickText(b, {}, digits); };
  while (digits < kLongest && std::adjacent_find(ticks.begin(), ticks.end(), same) != ticks.end()) ++digits;
  return digits;
}

}  // namespace ridgeline::report
