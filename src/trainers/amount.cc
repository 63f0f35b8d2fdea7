#include "trainers/amount.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace ridgeline {
namespace {

using enum Dimension;
__extension__ using Wide = unsigned __int128;

constexpr std::array kFigures = {
    LoggedFigure{"step_time", kTime},         LoggedFigure{"mean_step_time", kTime},
    LoggedFigure{"tokens_per_s", kTokenRate}, LoggedFigure{"loss", kPlain},
    LoggedFigure{"grad_norm", kPlain},        LoggedFigure{"device_peak", kMemory},
    LoggedFigure{"host_peak", kMemory},       LoggedFigure{"parameters", kCount},
    LoggedFigure{"flops_per_step", kCount},   LoggedFigure{"tflops_per_gpu", kFlopRate},
    LoggedFigure{"version", kText},
};

constexpr int64_t kSecond = 1'000'000'000;

constexpr std::array kUnits = {
    LoggedUnit{"ns", kTime, "ns", 1},
    LoggedUnit{"us", kTime, "ns", 1'000},
    LoggedUnit{"ms", kTime, "ns", 1'000'000},
    LoggedUnit{"s", kTime, "ns", kSecond},
    LoggedUnit{"ms/iter", kTime, "ns", 1'000'000},
    LoggedUnit{"s/it", kTime, "ns", kSecond},
    LoggedUnit{"it/s", kTime, "ns", kSecond, true},
    LoggedUnit{"bytes", kMemory, "bytes", 1},
    LoggedUnit{"KiB", kMemory, "bytes", int64_t{1} << 10},
    LoggedUnit{"MiB", kMemory, "bytes", int64_t{1} << 20},
    LoggedUnit{"GiB", kMemory, "bytes", int64_t{1} << 30},
    LoggedUnit{"TiB", kMemory, "bytes", int64_t{1} << 40},
    LoggedUnit{"kB", kMemory, "bytes", 1'000},
    LoggedUnit{"MB", kMemory, "bytes", 1'000'000},
    LoggedUnit{"GB", kMemory, "bytes", 1'000'000'000},
    LoggedUnit{"tokens/s", kTokenRate, "tokens/s", 1},
    LoggedUnit{"tokens/s/GPU", kTokenRate, "tokens/s/GPU", 1},
    LoggedUnit{"TFLOP/s/GPU", kFlopRate, "TFLOP/s/GPU", 1},
    LoggedUnit{"none", kCount, "", 1},
    LoggedUnit{"K", kCount, "", 1'000},
    LoggedUnit{"M", kCount, "", 1'000'000},
    LoggedUnit{"B", kCount, "", 1'000'000'000},
    LoggedUnit{"none", kPlain, "", 1},
    LoggedUnit{"none", kText, "", 1},
};

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Commas stand between groups of three digits, before the point; nothing where they stand elsewhere.
std::optional<std::string> WithoutCommas(std::string_view text) {
  std::string plain;
  const size_t end = std::min(text.find_first_of(".eE"), text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      plain += text[at];
      continue;
    }
    const bool behind_digit = at > 0 && IsDigit(text[at - 1]);
    if (at > end || !behind_digit || (end - at) % 4 != 0) return std::nullopt;
  }
  return plain;
}

bool IsNotFinite(std::string_view text) {
  std::string lower;
  for (const char c : text.substr(0, 16)) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower.starts_with('-') || lower.starts_with('+')) lower.erase(0, 1);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

// digits * 10^exponent.
struct Decimal {
  Wide digits = 0;
  int64_t exponent = 0;
};

constexpr int kDigits = 18;            // those behind change no double
constexpr int64_t kExponents = 4'000;  // beyond, nothing is a double
constexpr Wide kMostWhole = Wide{1} << 53;

// A number without a sign: digits with at most one point, then perhaps an exponent. It is one already, as from_chars
// has found.
Decimal DecimalOf(std::string_view text) {
  Decimal decimal;
  int taken = 0;
  bool behind_point = false;
  size_t at = 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      behind_point = true;
      continue;
    }
    if (taken < kDigits) {
      decimal.digits = 10 * decimal.digits + static_cast<unsigned>(text[at] - '0');
      if (decimal.digits != 0) ++taken;
      decimal.exponent -= behind_point ? 1 : 0;
    } else {
      decimal.exponent += behind_point ? 0 : 1;
    }
  }
  if (at < text.size()) {
    int64_t exponent = 0;
    ++at;
    if (at < text.size() && text[at] == '+') ++at;
    std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    decimal.exponent += std::clamp(exponent, -kExponents, kExponents);
  }
  return decimal;
}

// top / bottom, rounded half up, where it is below 2^53.
std::optional<double> Rounded(Wide top, Wide bottom) {
  const Wide whole = top / bottom + (top % bottom >= bottom - top % bottom ? 1 : 0);
  if (whole > kMostWhole) return std::nullopt;
  return static_cast<double>(whole);
}

// value * 10^power; nothing where that is beyond a Wide.
std::optional<Wide> Raised(Wide value, int64_t power) {
  for (; power > 0 && value != 0; --power) {
    if (value > std::numeric_limits<Wide>::max() / 10) return std::nullopt;
    value *= 10;
  }
  return value;
}

std::optional<double> Whole(const Decimal& decimal, const LoggedUnit& unit) {
  const Wide factor = static_cast<Wide>(unit.factor);
  const int64_t down = std::max<int64_t>(-decimal.exponent, 0);
  const int64_t up = std::max<int64_t>(decimal.exponent, 0);
  if (unit.inverse) {
    const auto top = Raised(factor, down);
    const auto bottom = Raised(decimal.digits, up);
    if (decimal.digits == 0 || !top) return std::nullopt;
    return bottom ? Rounded(*top, *bottom) : 0.0;
  }
  const auto top = Raised(decimal.digits * factor, up);  // below 10^18 * 2^40
  const auto bottom = Raised(1, down);
  if (!top) return std::nullopt;
  return bottom ? Rounded(*top, *bottom) : 0.0;
}

bool IsWhole(Dimension dimension) { return dimension == kTime || dimension == kMemory; }

}  // namespace

const LoggedFigure* FindFigure(std::string_view name) {
  const auto* found =
      std::find_if(kFigures.begin(), kFigures.end(), [&](const LoggedFigure& f) { return f.name == name; });
  return found == kFigures.end() ? nullptr : found;
}

std::vector<std::string> FigureNames() {
  std::vector<std::string> names;
  for (const LoggedFigure& figure : kFigures) names.emplace_back(figure.name);
  return names;
}

const LoggedUnit* FindUnit(Dimension dimension, std::string_view name) {
  const std::string_view wanted = name.empty() ? "none" : name;
  const auto* found = std::find_if(kUnits.begin(), kUnits.end(), [&](const LoggedUnit& unit) {
    return unit.dimension == dimension && unit.name == wanted;
  });
  return found == kUnits.end() ? nullptr : found;
}

std::vector<std::string> UnitNames(Dimension dimension) {
  std::vector<std::string> names;
  for (const LoggedUnit& unit : kUnits) {
    if (unit.dimension == dimension) names.emplace_back(unit.name);
  }
  return names;
}

std::optional<double> ReadAmount(std::string_view text, const LoggedUnit& unit) {
  if (IsNotFinite(text)) return std::numeric_limits<double>::quiet_NaN();
  const auto plain = WithoutCommas(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view number = *plain;
  const bool negative = number.starts_with('-');
  if (number.starts_with('+')) number.remove_prefix(1);
  const char* const end = number.data() + number.size();
  double value = 0;
  const auto [stopped, error] = std::from_chars(number.data(), end, value);
  if (stopped != end || number.empty() || !(IsDigit(number[negative ? 1 : 0]) || number[negative ? 1 : 0] == '.')) {
    return std::nullopt;
  }
  if (negative && unit.dimension != kPlain) return std::nullopt;
  // What is too small for a double is nothing, or a whole number all the same: 1e-400.
  if (IsWhole(unit.dimension)) return Whole(DecimalOf(number), unit);
  if (error != std::errc()) return std::nullopt;
  if (unit.dimension == kCount) {
    // What counts operations is larger than any whole number that a double holds.
    if (const auto whole = Whole(DecimalOf(number), unit)) return whole;
    value *= static_cast<double>(unit.factor);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  return value;
}

}  // namespace ridgeline
