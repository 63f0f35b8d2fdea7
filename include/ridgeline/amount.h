// Amounts as people write them, such as "64GB" and "1.5h": one grammar for sweeps, command lines and launcher settings.
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

// The first unit of each is that of a number without a unit.
inline constexpr Unit kTimeUnits[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
inline constexpr Unit kSizeUnits[] = {{"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
                                      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
                                      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};

// The largest time limit and the largest memory of a node. In nanoseconds, and multiplied by ranks and points, both fit
// 64 bits easily.
inline constexpr int64_t kMostSeconds = int64_t{20'000} * 86'400;
inline constexpr int64_t kMostBytes = 1'000'000'000'000'000;

// Parses a decimal number, optional spaces, and the name of a unit; returns the number times the unit's factor.
// Returns nothing for any other text: signs, NaN, infinity, and numbers that a double cannot hold.
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

// Rounds to the nearest whole number. Returns nothing if there is no amount, or it is below 1 or above `most`.
inline std::optional<int64_t> WholeAmount(std::optional<double> amount, int64_t most) {
  if (!amount || *amount < 1 || *amount > static_cast<double>(most)) return std::nullopt;
  return std::llround(*amount);
}

}  // namespace ridgeline
