// Amounts as people write them: one grammar for sweeps, for command lines and for the settings of every launcher.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace ridgeline {

struct Unit {
  std::string_view name;
  double factor;
};

// Both begin with the unit of a number that has none.
inline constexpr Unit kTimeUnits[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
inline constexpr Unit kSizeUnits[] = {{"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
                                      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
                                      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};

// No time limit is longer and no node's memory larger; in nanoseconds, and times what there is of ranks and points,
// both are far from what 64 bits hold.
inline constexpr int64_t kMostSeconds = int64_t{20'000} * 86'400;
inline constexpr int64_t kMostBytes = 1'000'000'000'000'000;

// "1.5h" by h = 3600: a decimal number, and behind it, or behind spaces, the name of a unit. Nothing for any other
// text: a number has no sign, and NaN, infinity and what a double cannot hold are none.
inline std::optional<double> ParseAmount(std::string_view text, std::span<const Unit> units) {
  // from_chars also reads a sign, "inf" and "nan".
  if (text.empty() || std::string_view("0123456789.").find(text.front()) == std::string_view::npos) return std::nullopt;
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view name(end, static_cast<size_t>(last - end));
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  name = name.substr(0, name.find_last_not_of(' ') + 1);
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& known) { return known.name == name; });
  if (unit == units.end() || !std::isfinite(number * unit->factor)) return std::nullopt;
  return number * unit->factor;
}

// The nearest whole number of it, from 1 to `most`; nothing for what is not there.
inline std::optional<int64_t> WholeAmount(std::optional<double> amount, int64_t most) {
  if (!amount || *amount < 1 || *amount > static_cast<double>(most)) return std::nullopt;
  return std::llround(*amount);
}

}  // namespace ridgeline
