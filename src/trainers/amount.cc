#include "trainers/amount.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace ridgeline::trainers {
namespace {

using enum Dimension;
__extension__ using Wide = unsigned __int128;

constexpr std::array kFigures = {
    LoggedFigure{"step_time", kTime, OfRanks::kLargest},
    LoggedFigure{"mean_step_time", kTime, OfRanks::kLargest},
    LoggedFigure{"tokens_per_s", kTokenRate, OfRanks::kSmallest},
    LoggedFigure{"loss", kPlain},
    LoggedFigure{"grad_norm", kPlain},
    LoggedFigure{"device_peak", kMemory, OfRanks::kLargest},
    LoggedFigure{"device_reserved", kMemory, OfRanks::kLargest},
    LoggedFigure{"device_used", kMemory, OfRanks::kLargest},
    LoggedFigure{"host_peak", kMemory, OfRanks::kLargest},
    LoggedFigure{"parameters", kCount},
    LoggedFigure{"trainable_parameters", kCount},
    LoggedFigure{"flops_per_step", kCount},
    LoggedFigure{"tflops_per_gpu", kFlopRate, OfRanks::kSmallest},
    LoggedFigure{"mfu", kShare, OfRanks::kSmallest},
    LoggedFigure{"version", kText},
};

constexpr double kMostShare = 10;  // more is a percentage that was called a share
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kTera = 1'000'000'000'000;

using Form = LoggedUnit::Form;

constexpr std::array kUnits = {
    LoggedUnit{"ns", kTime, "ns", 1},
    LoggedUnit{"us", kTime, "ns", 1'000},
    LoggedUnit{"ms", kTime, "ns", 1'000'000},
    LoggedUnit{"s", kTime, "ns", kSecond},
    LoggedUnit{"min", kTime, "ns", 60 * kSecond},
    LoggedUnit{"ms/iter", kTime, "ns", 1'000'000},
    LoggedUnit{"s/it", kTime, "ns", kSecond},
    LoggedUnit{"it/s", kTime, "ns", kSecond, Form::kInverse},
    LoggedUnit{"tqdm", kTime, "ns", kSecond, Form::kTqdm},
    LoggedUnit{"bytes", kMemory, "bytes", 1},
    LoggedUnit{"KiB", kMemory, "bytes", int64_t{1} << 10},
    LoggedUnit{"MiB", kMemory, "bytes", int64_t{1} << 20},
    LoggedUnit{"GiB", kMemory, "bytes", int64_t{1} << 30},
    LoggedUnit{"TiB", kMemory, "bytes", int64_t{1} << 40},
    LoggedUnit{"kB", kMemory, "bytes", 1'000},
    LoggedUnit{"MB", kMemory, "bytes", 1'000'000},
    LoggedUnit{"GB", kMemory, "bytes", 1'000'000'000},
    LoggedUnit{"TB", kMemory, "bytes", kTera},
    LoggedUnit{"tokens/s", kTokenRate, "tokens/s", 1},
    LoggedUnit{"tokens/s/GPU", kTokenRate, "tokens/s/GPU", 1},
    LoggedUnit{"samples/s", kTokenRate, "tokens/s", 1, Form::kSamples},
    LoggedUnit{"samples/s/GPU", kTokenRate, "tokens/s/GPU", 1, Form::kSamples},
    LoggedUnit{"TFLOP/s/GPU", kFlopRate, "TFLOP/s/GPU", 1},
    LoggedUnit{"FLOP/s/GPU", kFlopRate, "TFLOP/s/GPU", 1, Form::kPlain, kTera},
    LoggedUnit{"%", kShare, "share", 1, Form::kPlain, 100},
    LoggedUnit{"share", kShare, "share", 1},
    LoggedUnit{"none", kCount, "", 1},
    LoggedUnit{"K", kCount, "", 1'000},
    LoggedUnit{"M", kCount, "", 1'000'000},
    LoggedUnit{"B", kCount, "", 1'000'000'000},
    LoggedUnit{"none", kPlain, "", 1},
    LoggedUnit{"none", kText, "", 1},
};

// What lines call a unit, besides its name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kOtherWords = {{
    {"sec", "s"},
    {"secs", "s"},
    {"second", "s"},
    {"seconds", "s"},
    {"msec", "ms"},
    {"msecs", "ms"},
    {"millisecond", "ms"},
    {"milliseconds", "ms"},
    {"usec", "us"},
    {"µs", "us"},
    {"μs", "us"},
    {"microseconds", "us"},
    {"minutes", "min"},
    {"ms/it", "ms/iter"},
    {"s/iter", "s/it"},
    {"iter/s", "it/s"},
    {"byte", "bytes"},
    {"B", "bytes"},
    {"KB", "kB"},
    {"tok/s", "tokens/s"},
    {"tokens/sec", "tokens/s"},
    {"samples/sec", "samples/s"},
}};

// Powers of ten.
constexpr std::array<std::pair<std::string_view, int64_t>, 6> kMultiples = {
    {{"K", 3}, {"k", 3}, {"M", 6}, {"G", 9}, {"B", 9}, {"T", 12}}};

// Removes commas between groups of three digits before the point. Returns nothing if they stand elsewhere.
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

constexpr int kDigits = 18;            // further digits change no double
constexpr int64_t kExponents = 4'000;  // beyond, no double exists
constexpr Wide kMostWhole = Wide{1} << 53;

// Reads a number without a sign: digits with at most one point, then perhaps an exponent. REQUIRES: from_chars has
// already found a number.
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

// Returns top / bottom, rounded half up; nothing if that is above 2^53.
std::optional<double> Rounded(Wide top, Wide bottom) {
  const Wide whole = top / bottom + (top % bottom >= bottom - top % bottom ? 1 : 0);
  if (whole > kMostWhole) return std::nullopt;
  return static_cast<double>(whole);
}

// Returns value * 10^power; nothing if a Wide cannot hold it.
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
  if (unit.form == Form::kInverse) {
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

// Returns the length of the text's beginning that is or looks like a number: digits, points and commas with a sign,
// then perhaps an exponent.
size_t NumberLength(std::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  while (at < text.size() && (IsDigit(text[at]) || text[at] == '.' || text[at] == ',')) ++at;
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t behind = at + 1;
    if (text[behind] == '-' || text[behind] == '+') ++behind;
    const size_t digits = behind;
    while (behind < text.size() && IsDigit(text[behind])) ++behind;
    if (behind > digits) at = behind;
  }
  return at;
}

// Reads the bare number times a power of ten, in this unit.
std::optional<double> ReadNumber(std::string_view text, const LoggedUnit& unit, int64_t power) {
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
  if (negative && unit.dimension != kPlain && unit.dimension != kOwn) return std::nullopt;
  if (IsWhole(unit.dimension) || unit.dimension == kCount) {
    // If a double is too small for it (1e-400), the value is 0, or is still a whole number.
    Decimal decimal = DecimalOf(number);
    decimal.exponent += power;
    const auto whole = Whole(decimal, unit);
    // Operation counts exceed any whole number that a double holds.
    if (whole || IsWhole(unit.dimension)) return whole;
  }
  if (error != std::errc()) return std::nullopt;
  value = value * static_cast<double>(unit.factor) / static_cast<double>(unit.divisor);
  for (; power > 0; --power) value *= 10;
  if (unit.dimension == kShare && value > kMostShare) return std::nullopt;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Returns the unit that a tqdm bar prints behind its number: s/it or it/s, whatever it calls an iteration.
const LoggedUnit* TqdmUnit(std::string_view word) {
  if (word.size() > 2 && word.starts_with("s/")) return FindUnit(kTime, "s/it");
  if (word.size() > 3 && word.starts_with("ms/")) return FindUnit(kTime, "ms/iter");
  if (word.size() > 2 && word.ends_with("/s")) return FindUnit(kTime, "it/s");
  return nullptr;
}

// Returns the letter that makes a unit a multiple of another: G for GB/s, M for M. Returns 0 if the unit is none.
char PrefixOf(std::string_view unit) {
  const bool begins = !unit.empty() && std::string_view("KkMGBT").find(unit[0]) != std::string_view::npos;
  const bool is_one =
      unit.size() == 1 || (unit.size() > 1 && ((unit[1] >= 'A' && unit[1] <= 'Z') || unit[1] == 'i' || unit[1] == 'b'));
  return begins && is_one ? unit[0] : '\0';
}

// Returns the power of ten of a word that is a multiple elsewhere. Returns nothing if it is no multiple behind a number
// of this unit.
std::optional<int64_t> PowerOf(const LoggedUnit& unit, std::string_view word) {
  const auto* found =
      std::find_if(kMultiples.begin(), kMultiples.end(), [&](const auto& m) { return m.first == word; });
  if (found == kMultiples.end()) return std::nullopt;
  const char prefix = PrefixOf(unit.name);
  switch (unit.dimension) {
    case kShare:
    case kPlain:
    case kText:
      return std::nullopt;
    case kTime:
      if (unit.form == Form::kTqdm || word == "B") return std::nullopt;
      break;
    case kTokenRate:
      break;
    case kFlopRate:
      if (prefix == word[0]) return 0;
      break;
    case kMemory:
    case kCount:
    case kOwn: {
      if (prefix != '\0') return prefix == word[0] ? std::optional<int64_t>(0) : std::nullopt;
      const bool is_byte = word == "B" && FindPrintedUnit(kMemory, unit.name) != nullptr;
      if (is_byte) return 0;
      // If the unit begins with the letter, the letter may be short for the unit.
      if (unit.name.starts_with(word[0])) return std::nullopt;
      break;
    }
  }
  return found->second;
}

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

const LoggedUnit* FindPrintedUnit(Dimension dimension, std::string_view word) {
  const auto* other =
      std::find_if(kOtherWords.begin(), kOtherWords.end(), [&](const auto& entry) { return entry.first == word; });
  if (dimension == kPlain || dimension == kText || dimension == kOwn || word.empty()) return nullptr;
  return FindUnit(dimension, other == kOtherWords.end() ? word : other->second);
}

std::optional<double> ReadAmount(std::string_view text, const LoggedUnit& unit) {
  text = text.substr(0, text.find_last_not_of(",;") + 1);  // the pattern took these, too
  if (IsNotFinite(text)) return std::numeric_limits<double>::quiet_NaN();
  const size_t length = NumberLength(text);
  const std::string_view number = text.substr(0, length);
  std::string_view word = text.substr(length);
  if (word.size() > 1 && word.starts_with(' ')) word.remove_prefix(1);
  if (unit.form == Form::kTqdm) {
    const LoggedUnit* said = TqdmUnit(word);
    return said == nullptr ? std::nullopt : ReadNumber(number, *said, 0);
  }
  if (word.empty()) return ReadNumber(number, unit, 0);
  if (const auto power = PowerOf(unit, word)) return ReadNumber(number, unit, *power);
  const LoggedUnit* said = FindPrintedUnit(unit.dimension, word);
  const bool same = said == nullptr ? word == unit.name : said->factor == unit.factor && said->form == unit.form;
  return same ? ReadNumber(number, unit, 0) : std::nullopt;
}

bool IsMultiple(char letter) {
  return std::any_of(kMultiples.begin(), kMultiples.end(), [&](const auto& m) { return m.first[0] == letter; });
}

double HalfOfLastPlace(const std::vector<double>& printed) {
  double place = 1;
  for (const double value : printed) {
    for (int digits = 0; digits < 12; ++digits, place /= 10) {
      const double scaled = value / place;
      if (std::abs(scaled - std::round(scaled)) <= 1e-6 * std::max(1.0, std::abs(scaled))) break;
    }
  }
  return place / 2;
}

}  // namespace ridgeline::trainers
