// Axes of charts: their units, the positions of their ticks, and the text of numbers on them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::report {

enum class AxisScale { kCount, kBytes, kPlain };

// The divisor of every number of an axis, and the text behind it.
struct AxisUnit {
  double divisor = 1;
  std::string_view suffix;  // follows every number: "K"
  std::string name;         // the axis's: "tokens/s", "GB"
};

// For values up to `max`. Bytes get their own unit instead of `axis`.
AxisUnit PickUnit(AxisScale scale, double max, const std::string& axis);

// Round axis steps: from 0 to at least `max`, 4 to 6 of them. {0, 1} where max is not positive.
std::vector<double> AxisTicks(double max);

// Round steps over [min, max], 4 to 7 of them, the first and last at or beyond its ends.
std::vector<double> LinearTicks(double min, double max);

// 1, 2 and 5 times powers of ten, or only powers of ten if those were too many. The first and last are at or beyond the
// ends. REQUIRES: 0 < min <= max.
std::vector<double> LogTicks(double min, double max);

// Three significant digits: "0.123", "15.5", "1234".
std::string ShortNumber(double value);

// A number beside a tick: with a minus sign, and its suffix, except for zero. kTickDigits is its number of significant
// digits.
inline constexpr int kTickDigits = 3;
std::string TickText(double value, std::string_view suffix = {}, int digits = kTickDigits);

// As many digits as distinguish neighbouring ticks.
int DigitsOfTicks(const std::vector<double>& ticks);

}  // namespace ridgeline::report
