// What trainers print of a figure, in units of their own, as one amount: the closed tables of figures and of units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// What a unit measures.
enum class Dimension { kTime, kMemory, kTokenRate, kFlopRate, kCount, kPlain, kText };

struct LoggedUnit {
  std::string_view name;  // as a definition says it
  Dimension dimension;
  std::string_view kept;  // the unit of what is kept
  int64_t factor;         // from the one to the other; of an inverse unit, of what one is per unit
  bool inverse = false;   // it/s is a time: the inverse of the number
};

// A figure that a definition may take from a log.
struct LoggedFigure {
  std::string_view name;
  Dimension dimension;
};

const LoggedFigure* FindFigure(std::string_view name);  // nullptr where there is none
std::vector<std::string> FigureNames();

// The unit of this name for a dimension; with an empty name, or "none", that of numbers without one, which times,
// memory and rates don't have. nullptr where there is none.
const LoggedUnit* FindUnit(Dimension dimension, std::string_view name);
std::vector<std::string> UnitNames(Dimension dimension);

// A decimal number as programs print one, with or without commas between groups of three digits ("1,234.5", "1e-3",
// "-0.5"), in `unit`, as an amount of the unit that is kept. Times, memory and counts are whole: computed exactly, and
// rounded half up. "nan" and "inf", in any case and of any sign, are NaN. Nothing where it is no number, is negative
// where the figure cannot be, or has no exact place in a double (2^53 for what is whole).
std::optional<double> ReadAmount(std::string_view text, const LoggedUnit& unit);

}  // namespace ridgeline
