#include "trainers/line_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "trainers/amount.h"
#include "trainers/json_values.h"

namespace ridgeline::trainers {
namespace {

constexpr int64_t kMostStep = 1'000'000'000'000'000;
constexpr int kMostRecords = 64;    // of a line
constexpr size_t kBeginBytes = 12;  // of a record, by which it is recognized again
constexpr int kLettersOfBegin = 3;  // at the least
constexpr int kLettersOfWord = 4;   // at the beginning of a match that may begin again

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int Letters(std::string_view text) { return static_cast<int>(std::count_if(text.begin(), text.end(), IsLetter)); }

std::vector<const Pattern*> PatternsOf(const std::vector<const Metric*>& metrics) {
  std::vector<const Pattern*> patterns;
  for (const Metric* metric : metrics) {
    if (metric->pattern) patterns.push_back(&*metric->pattern);
  }
  return patterns;
}

// Whether the first word of a line occurs again in it.
bool MayBeginAgain(std::string_view line) {
  size_t begin = 0;
  while (begin < std::min(line.size(), 2 * kBeginBytes) && !IsLetter(line[begin])) ++begin;
  size_t end = begin;
  while (end < std::min(line.size(), begin + kBeginBytes) && IsLetter(line[end])) ++end;
  return end > begin && line.find(line.substr(begin, end - begin), end) != std::string_view::npos;
}

// Splits a line where its beginning occurs again, apart from numbers: two writers wrote before either ended its line.
std::vector<std::string_view> RecordsOf(std::string_view line) {
  if (!MayBeginAgain(line)) return {line};
  std::string shape;
  std::vector<size_t> places;
  for (size_t at = 0; at < line.size(); ++at) {
    if (IsDigit(line[at]) && at > 0 && IsDigit(line[at - 1])) continue;
    shape += IsDigit(line[at]) ? '0' : line[at];
    places.push_back(at);
  }
  const std::string begin = shape.substr(0, std::min(kBeginBytes, shape.size() / 2));
  std::vector<std::string_view> records;
  size_t from = 0;
  if (Letters(begin) >= kLettersOfBegin) {
    for (size_t at = shape.find(begin, begin.size()); at != std::string::npos && std::ssize(records) < kMostRecords;
         at = shape.find(begin, at + begin.size())) {
      records.push_back(line.substr(from, places[at] - from));
      from = places[at];
    }
  }
  records.push_back(line.substr(from));
  return records;
}

// Returns the total behind a step, as in "5/100" and "5/ 100".
std::string_view TotalBehind(std::string_view step, std::string_view record) {
  std::string_view behind = record.substr(static_cast<size_t>(step.data() - record.data()) + step.size());
  const auto skip = [&](char c) {
    while (behind.starts_with(c)) behind.remove_prefix(1);
  };
  skip(' ');
  if (!behind.starts_with('/')) return {};
  behind.remove_prefix(1);
  skip(' ');
  size_t digits = 0;
  while (digits < behind.size() && (IsDigit(behind[digits]) || behind[digits] == ',')) ++digits;
  return behind.substr(0, digits);
}

// Returns the position within a match where it begins again and the pattern matches, too, as in "step 3 lostep 3 loss
// 2.5".
size_t BeginsAgain(const Pattern& pattern, std::string_view record, std::string_view match) {
  size_t length = 0;
  while (length < match.size() && !IsDigit(match[length])) ++length;
  const std::string_view word = match.substr(0, match.substr(0, length).find_last_not_of(' ') + 1);
  if (Letters(word) < kLettersOfWord) return std::string_view::npos;
  const auto begin = static_cast<size_t>(match.data() - record.data());
  int tries = 0;
  for (size_t at = record.find(word, begin + 1); at < begin + match.size() && tries < kMostRecords; ++tries) {
    if (pattern.Find(record, at, /*there=*/true)) return at;
    at = record.find(word, at + 1);
  }
  return std::string_view::npos;
}

// Returns the length in bytes of a thousands separator at the beginning of a text. A blank does not count, because it
// also stands between numbers. A number with a separator other than a comma is unreadable, which is better than its
// first digits alone.
size_t ThousandsSeparator(std::string_view text) {
  for (const std::string_view separator : {",", "_", "'", "\u2019", "\u00a0", "\u2009", "\u202f"}) {
    if (text.starts_with(separator)) return separator.size();
  }
  return 0;
}

// Returns how many of these bytes are the rest of a number: digits behind a point or a separator, an exponent.
// `looked`: the pattern says what follows, so it left these digits out on purpose.
size_t RestOfNumber(std::string_view number, std::string_view behind, bool looked) {
  const auto digits = [&](size_t from) {
    size_t at = from;
    while (at < behind.size() && IsDigit(behind[at])) ++at;
    return at - from;
  };
  size_t at = looked ? 0 : digits(0);
  const bool has_point = number.find('.') != std::string_view::npos;
  while (!looked && !has_point && at < behind.size()) {
    const size_t separator = ThousandsSeparator(behind.substr(at));
    if (separator == 0 || digits(at + separator) != 3) break;
    at += separator + 3;
  }
  if (!looked && !has_point && at + 1 < behind.size() && behind[at] == '.')
    at += digits(at + 1) > 0 ? 1 + digits(at + 1) : 0;
  if (at < behind.size() && (behind[at] == 'e' || behind[at] == 'E')) {
    const size_t sign = at + 1 < behind.size() && (behind[at + 1] == '-' || behind[at + 1] == '+') ? 1 : 0;
    if (const size_t exponent = digits(at + 1 + sign); exponent > 0) at += 1 + sign + exponent;
  }
  return at;
}

// Returns the whole number of which a pattern took a part, with the letter that multiplies it.
std::string_view WholeNumber(const Metric& metric, const PatternMatch& match, std::string_view record) {
  const std::string_view value = match.value;
  const bool is_number = metric.figure->dimension != Dimension::kText && metric.take != Take::kStamp &&
                         !value.empty() && IsDigit(value.back()) &&
                         value.find_first_not_of("+-.,0123456789") == std::string_view::npos;
  if (!is_number) return value;
  const auto begin = static_cast<size_t>(value.data() - record.data());
  const std::string_view behind = record.substr(begin + value.size());
  const bool looked = match.whole.data() + match.whole.size() != value.data() + value.size();
  const size_t rest = RestOfNumber(value, behind, looked);
  const std::string_view number = record.substr(begin, value.size() + rest);
  const bool has_letter = rest < behind.size() && (rest + 1 == behind.size() || !IsLetter(behind[rest + 1]));
  if (looked || !has_letter || !IsLetter(behind[rest])) return number;
  // If the letter does not multiply, leaving it out would give another number. An unreadable number is better.
  const std::string_view with_letter = record.substr(begin, number.size() + 1);
  const bool counts = metric.unit->dimension != Dimension::kShare && IsMultiple(behind[rest]);
  return counts || ReadAmount(with_letter, *metric.unit) ? with_letter : number;
}

// Returns the line without what torchrun, mpirun, srun, Ray or a time stamp put before it. Other words, such as "[val]
// ", are the program's own.
std::string_view BehindPrefix(std::string_view line) {
  static const Pattern prefix(
      R"(^(?:\[(?:rank|default|trainer)\d+\]: ?|\[\d+,\d+\]<std(?:out|err)>: ?| {0,4}\d{1,5}: |)"
      R"(\(\w[\w.]* pid=\d+(?:, ip=[\w.:]+)?\) ?|)"
      R"(\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? ?)+)");
  const auto match = prefix.Find(line);
  return match ? line.substr(match->whole.size()) : line;
}

}  // namespace

LineMetrics::LineMetrics(std::vector<const Metric*> metrics)
    : metrics_(std::move(metrics)), set_(PatternsOf(metrics_)) {
  for (size_t at = 0; at < metrics_.size(); ++at) {
    const auto& pattern = metrics_[at]->pattern;
    if (pattern && pattern->has_begin()) of_begin_.push_back(static_cast<int>(patterned_.size()));
    (pattern ? patterned_ : of_json_).push_back(at);
  }
}

void LineMetrics::Line(std::string_view line, bool cut, const std::function<void(const LineValue&)>& take) const {
  TakePatterns(line, set_.Matching(line), cut, take);
  if (!of_begin_.empty()) TakeBehindPrefix(line, cut, take);
  if (!of_json_.empty()) TakeObjects(line, take);
}

void LineMetrics::TakePatterns(std::string_view line, const std::vector<int>& places, bool cut,
                               const std::function<void(const LineValue&)>& take) const {
  if (places.empty()) return;
  for (const std::string_view record : RecordsOf(line)) {
    const bool is_last = record.data() + record.size() == line.data() + line.size();
    for (const int at : places) TakePattern(patterned_[static_cast<size_t>(at)], record, cut && is_last, is_last, take);
  }
}

void LineMetrics::TakeBehindPrefix(std::string_view line, bool cut,
                                   const std::function<void(const LineValue&)>& take) const {
  const std::string_view text = BehindPrefix(line);
  if (text.size() == line.size()) return;
  const auto pattern = [&](int at) -> const Pattern& {
    return *metrics_[patterned_[static_cast<size_t>(at)]]->pattern;
  };
  std::vector<int> places;
  for (const int at : of_begin_) {
    if (!pattern(at).Find(line) && pattern(at).Find(text)) places.push_back(at);
  }
  TakePatterns(text, places, cut, [&](LineValue said) {
    if (said.rank.empty()) said.rank = RankOf(line);
    take(said);
  });
}

void LineMetrics::TakePattern(size_t metric, std::string_view record, bool cut, bool is_last,
                              const std::function<void(const LineValue&)>& take) const {
  const Pattern& pattern = *metrics_[metric]->pattern;
  const auto say = [&](const PatternMatch& match, std::string_view whole, bool is_cut) {
    const enum Take of = metrics_[metric]->take;
    if (!match.has_value && of != Take::kArrival) return;
    LineValue said;
    said.metric = metric;
    said.value = WholeNumber(*metrics_[metric], match, whole);
    said.unit = match.unit.value_or("");
    said.step = match.step.value_or("");
    if (match.step) said.of = TotalBehind(*match.step, whole);
    said.rank = match.rank.value_or(RankOf(whole));
    said.record = whole;
    const auto at_end = [&](std::string_view part) {
      return !part.empty() && part.data() + part.size() == whole.data() + whole.size();
    };
    // A value cut off by another line's beginning is no larger than the true one, so it does not spoil a maximum.
    const bool value_cut = at_end(said.value) && (cut || of != Take::kMax);
    if (is_cut && (value_cut || at_end(said.unit) || at_end(said.step) || at_end(match.rank.value_or("")))) return;
    take(said);
  };
  size_t from = 0;
  for (int records = 0; records < kMostRecords && from <= record.size(); ++records) {
    const auto match = pattern.Find(record, from);
    if (!match) return;
    if (!pattern.has_step()) return say(*match, record, cut || !is_last);
    if (const size_t again = BeginsAgain(pattern, record, match->whole); again != std::string_view::npos) {
      const std::string_view first = record.substr(0, again);
      if (const auto before = pattern.Find(first, from)) say(*before, first, /*is_cut=*/true);
      from = again;
      continue;
    }
    say(*match, record, cut || !is_last);
    const auto behind = static_cast<size_t>(match->whole.data() - record.data()) + match->whole.size();
    if (match->whole.empty()) return;
    from = behind;
  }
}

void LineMetrics::TakeObjects(std::string_view line, const std::function<void(const LineValue&)>& take) const {
  const std::string_view line_rank = RankOf(line);
  ForEachObject(line, [&](const Json& object) {
    for (const size_t at : of_json_) {
      const Metric& metric = *metrics_[at];
      CollectJson(object, {metric.pointer, metric.step_pointer, metric.rank_pointer}, [&](const JsonValue& found) {
        LineValue said;
        said.metric = at;
        said.value = found.text;
        said.step = found.step ? std::string_view(*found.step) : std::string_view();
        said.rank = found.rank ? std::string_view(*found.rank) : line_rank;
        said.record = line;
        take(said);
      });
    }
  });
}

std::string_view RankOf(std::string_view line) {
  if (!line.starts_with('[')) return {};
  const auto digits = [&](size_t from) {
    size_t at = from;
    while (at < line.size() && IsDigit(line[at])) ++at;
    return line.substr(from, at - from);
  };
  for (const std::string_view name : {"[rank", "[default", "[trainer", "[1,"}) {
    if (!line.starts_with(name)) continue;
    const std::string_view rank = digits(name.size());
    const std::string_view behind = line.substr(name.size() + rank.size());
    const bool of_mpi = name == "[1,";
    const bool ends = of_mpi ? behind.starts_with("]<std") : behind.starts_with("]:");
    if (!rank.empty() && ends) return rank;
  }
  return {};
}

std::optional<int64_t> StepOf(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && step >= -kMostStep && step <= kMostStep ? std::optional(step) : std::nullopt;
}

}  // namespace ridgeline::trainers
