// Axes of charts: their units, where their ticks stand, and how a number beside one is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

enum class AxisScale { kCount, kBytes, kPlain };

// What every number of an axis is divided by, and what stands behind it then.
struct AxisUnit {
  double divisor = 1;
  std::string_view suffix;  // of every number: "K"
  std::string name;         // of the axis: "tokens/s", "GB"
};

// For values up to `max`; bytes get a unit of their own in place of `axis`.
AxisUnit PickUnit(AxisScale scale, double max, const std::string& axis);

// Round axis steps: from 0 to at least `max`, 4 to 6 of them. {0, 1} where max is not positive.
std::vector<double> AxisTicks(double max);

// Round steps over [min, max], 4 to 7 of them, the first and last at or beyond its ends.
std::vector<double> LinearTicks(double min, double max);

// 1, 2 and 5 times powers of ten, or powers of ten alone where those were too many; the first and last at or beyond the
// ends. REQUIRES: 0 < min <= max.
std::vector<double> LogTicks(double min, double max);

// Three significant digits: "0.123", "15.5", "1234".
std::string ShortNumber(double value);

// A number beside a tick: with a minus sign, and its suffix, which zero has none of. So many significant digits.
inline constexpr int kTickDigits = 3;
std::string TickText(double value, std::string_view suffix = {}, int digits = kTickDigits);

// As many digits as tell neighbouring ticks apart.
int DigitsOfTicks(const std::vector<double>& ticks);

}  // namespace ridgeline
