// What trainers print of a figure, in units of their own, as one amount: the closed tables of figures and of units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What a unit measures. kOwn: of a metric that only one definition knows.
enum class Dimension { kTime, kMemory, kTokenRate, kFlopRate, kShare, kCount, kPlain, kText, kOwn };

struct LoggedUnit {
  enum class Form {
    kPlain,
    kInverse,  // it/s is a time: the inverse of the number
    kTqdm,     // the number says itself whether it is s/it or it/s
    kSamples,  // times a sample's tokens, of whoever knows them
  };
  std::string_view name;  // as a definition says it
  Dimension dimension;
  std::string_view kept;  // the unit of what is kept
  int64_t factor;         // from the one to the other; of an inverse unit, of what one is per unit
  Form form = Form::kPlain;
  int64_t divisor = 1;  // of units smaller than what is kept
};

// What several ranks' values of one moment come to.
enum class OfRanks { kFirst, kLargest, kSmallest };

// A figure that a definition may take from a log.
struct LoggedFigure {
  std::string_view name;
  Dimension dimension;
  OfRanks ranks = OfRanks::kFirst;
};

const LoggedFigure* FindFigure(std::string_view name);  // nullptr where there is none
std::vector<std::string> FigureNames();

// The unit of this name for a dimension; with an empty name, or "none", that of numbers without one, which times,
// memory and rates don't have. nullptr where there is none.
const LoggedUnit* FindUnit(Dimension dimension, std::string_view name);
std::vector<std::string> UnitNames(Dimension dimension);
// The same for a unit as a line names it, which may be another word for it: sec, msec, KB. It is none of those that a
// number is multiplied by elsewhere.
const LoggedUnit* FindPrintedUnit(Dimension dimension, std::string_view word);

// A decimal number as programs print one, with or without commas between groups of three digits ("1,234.5", "1e-3",
// "-0.5"), in `unit`, as an amount of the unit that is kept. Behind it may stand the unit ("512ms"), or K, M, G, T or B
// ("11.5K", "85.8G"), which multiply it by thousands; but not losses, shares and times in billions. Where the unit has
// such a letter itself, that one changes nothing ("2G" of GiB), and another is refused ("547M" of GiB). Times, memory
// and counts are whole: computed exactly, and rounded half up. "nan" and "inf", in any case and of any sign, are NaN.
// Nothing where it is no number, has another unit, is negative where the figure cannot be, or has no exact place in a
// double (2^53 for what is whole).
std::optional<double> ReadAmount(std::string_view text, const LoggedUnit& unit);

// Whether the letter behind a number may multiply it.
bool IsMultiple(char letter);

// Half of the last decimal that a program prints, which its numbers are rounded to: of numbers in its own unit.
double HalfOfLastPlace(const std::vector<double>& printed);

}  // namespace ridgeline
