// Reads the amounts that trainers print, in their own units. Has the tables of figures and of units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::trainers {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What a unit measures. kOwn: a metric that only one definition has.
enum class Dimension { kTime, kMemory, kTokenRate, kFlopRate, kShare, kCount, kPlain, kText, kOwn };

struct LoggedUnit {
  enum class Form {
    kPlain,
    kInverse,  // the time is the inverse of the number: it/s
    kTqdm,     // the text itself says whether it is s/it or it/s
    kSamples,  // the number times the tokens of a sample, if these are known
  };
  std::string_view name;  // as definitions write it
  Dimension dimension;
  std::string_view kept;  // the unit in which values are kept
  int64_t factor;         // from this unit to the kept one; for kInverse, that of 1 / number
  Form form = Form::kPlain;
  int64_t divisor = 1;  // for units smaller than the kept one
};

// How the values of several ranks at one moment are merged.
enum class OfRanks { kFirst, kLargest, kSmallest };

// A figure that a definition may take from a log.
struct LoggedFigure {
  std::string_view name;
  Dimension dimension;
  OfRanks ranks = OfRanks::kFirst;
};

const LoggedFigure* FindFigure(std::string_view name);  // nullptr if there is none
std::vector<std::string> FigureNames();

// Finds a dimension's unit by name. An empty name, or "none", is the unit of plain numbers, which times, memory and
// rates do not have. nullptr if there is none.
const LoggedUnit* FindUnit(Dimension dimension, std::string_view name);
std::vector<std::string> UnitNames(Dimension dimension);
// The same for a unit that stands in a line, which may be another word for it: sec, msec, KB. Does not find units that
// need a factor from elsewhere.
const LoggedUnit* FindPrintedUnit(Dimension dimension, std::string_view word);

// Converts a printed decimal number in `unit` to the kept unit. Commas between groups of three digits are allowed:
// "1,234.5", "1e-3", "-0.5". The unit may follow the number ("512ms"), and so may K, M, G, T or B ("11.5K", "85.8G"),
// which are powers of a thousand; losses and shares take no such letter, and times take no B. If the unit begins with
// such a letter, the same letter changes nothing ("2G" in GiB), and another is refused ("547M" in GiB). Times, memory
// and counts are whole numbers: computed exactly, and rounded half up. "nan" and "inf", in any case and with any sign,
// give NaN. Nothing if the text is not a number, has another unit, is negative though the figure cannot be, or is too
// large for a double (whole numbers: above 2^53).
std::optional<double> ReadAmount(std::string_view text, const LoggedUnit& unit);

// Whether this letter after a number may multiply it.
bool IsMultiple(char letter);

// The rounding error of printed numbers: half of their last decimal place, in the program's own unit.
double HalfOfLastPlace(const std::vector<double>& printed);

}  // namespace ridgeline::trainers
