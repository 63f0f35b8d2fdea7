#include "trainers/reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/fields.h"
#include "run/sense.h"
#include "run/step_figures.h"
#include "stats/median.h"
#include "trainers/log_lines.h"
#include "trainers/merge.h"

namespace ridgeline {
namespace {

constexpr size_t kMaxVersionBytes = 256;
constexpr double kAgreement = 0.05;  // as of a result's own figures (docs/trainer-contract.md)

bool KeepsAll(Take take) { return take == Take::kMedian || take == Take::kSeries; }

std::optional<int64_t> StepOf(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

// The values of one metric as they come.
class Gathered {
 public:
  explicit Gathered(const Metric& metric) {
    found_.metric = &metric;
    found_.unit = metric.unit->kept;
  }

  // True where it is a loss that is not finite. `room`: what may still be kept.
  bool Take(std::string_view text, std::optional<std::string_view> step, int64_t line, int64_t& room) {
    const LoggedFigure& figure = *found_.metric->figure;
    if (figure.dimension == Dimension::kText) {
      if (found_.matches == 0 || found_.metric->take == Take::kLast)
        found_.text = ShortenToBytes(text, kMaxVersionBytes);
      Count(line);
      return false;
    }
    const auto amount = ReadAmount(text, *found_.metric->unit);
    const bool is_loss = figure.name == "loss";
    if (!amount || (std::isnan(*amount) && !is_loss)) {
      ++found_.unread;
      return false;
    }
    Count(line);
    Keep(*amount, step ? StepOf(*step) : std::nullopt, room);
    return std::isnan(*amount);
  }

  FoundMetric Finish() {
    const bool is_series = found_.metric->take == Take::kSeries;
    if (!is_series && TellsTime()) found_.all = found_.values;
    if (found_.steps.size() != found_.values.size() || (!is_series && !TellsTime())) found_.steps.clear();
    if (is_series) return std::move(found_);
    if (found_.metric->take == Take::kMedian && !found_.values.empty()) {
      found_.values = {MedianOf(found_.values)};
    } else if (reduced_) {
      found_.values = {*reduced_};
    }
    return std::move(found_);
  }

 private:
  void Count(int64_t line) {
    if (found_.matches++ == 0) found_.first_line = line;
    found_.last_line = line;
  }

  // What it is of needs all values, whichever of them is taken: the warm-up's are left out.
  bool TellsTime() const {
    return found_.metric->figure->name == "step_time" || found_.metric->figure->name == "tokens_per_s";
  }

  void Keep(double value, std::optional<int64_t> step, int64_t& room) {
    const enum Take take = found_.metric->take;
    if (!KeepsAll(take) && !std::isnan(value)) reduced_ = Reduced(take, value);
    if (!KeepsAll(take) && !TellsTime()) return;
    if (room == 0) {
      ++found_.left_out;
    } else if (take == Take::kSeries || !std::isnan(value)) {
      --room;
      found_.values.push_back(value);
      if (step) found_.steps.push_back(*step);
    }
  }

  double Reduced(enum Take take, double value) const {
    if (!reduced_ || take == Take::kLast) return value;
    if (take == Take::kMax) return std::max(*reduced_, value);
    if (take == Take::kMin) return std::min(*reduced_, value);
    return take == Take::kSum ? *reduced_ + value : *reduced_;
  }

  FoundMetric found_;
  std::optional<double> reduced_;
};

// A number among the point's fields, or among what follows from them; nothing where there is none of that name.
std::optional<double> PointNumber(const Trainer& trainer, const RunSpec& spec, std::string_view name) {
  const int64_t length = std::max<int64_t>(spec.seq_length, 1);
  if (name == "tokens_per_step") return static_cast<double>(TokensAStep(trainer, spec));
  if (name == "global_batch_size") return static_cast<double>(TokensAStep(trainer, spec) / length);
  if (name == "world_size") return static_cast<double>(spec.ranks);
  const Field* field = trainer.invocation ? trainer.invocation->FindOwn(name) : nullptr;
  if (field == nullptr) field = FindField(name);
  if (field == nullptr) return std::nullopt;
  const FieldValue value = ValueOf(spec, *field);
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

// What is missing, and what contradicts itself, of what was found.
void Conclude(const Trainer& trainer, const ReadingOptions& options, Reading& reading) {
  reading.missing.clear();
  for (const Metric& metric : trainer.metrics) {
    const std::string name(metric.figure->name);
    const bool known = std::find(reading.missing.begin(), reading.missing.end(), name) != reading.missing.end() ||
                       std::any_of(reading.found.begin(), reading.found.end(),
                                   [&](const FoundMetric& found) { return found.metric->figure->name == name; });
    if (!known) reading.missing.push_back(name);
  }
  // Tokens a second against those of the step over its time, medians both.
  reading.contradictions.clear();
  const auto median = [&](std::string_view name, std::string_view unit) -> std::optional<double> {
    for (const FoundMetric& found : reading.found) {
      if (found.metric->figure->name != name || found.unit != unit) continue;
      std::vector<double> values = found.values;
      return MedianOf(values);
    }
    return std::nullopt;
  };
  const auto step_ns = median("step_time", "ns");
  const auto rate = median("tokens_per_s", "tokens/s");
  if (!options.tokens_per_step || !step_ns || !rate || *step_ns <= 0) return;
  const double follows = static_cast<double>(*options.tokens_per_step) * 1e9 / *step_ns;
  if (std::abs(*rate - follows) <= kAgreement * follows) return;
  reading.contradictions.push_back(fmt::format("tokens_per_s is {}, but {} tokens in a step of {} are {}",
                                               FormatCount(*rate), *options.tokens_per_step,
                                               FormatDuration(static_cast<int64_t>(*step_ns)), FormatCount(follows)));
}

class LogReader {
 public:
  LogReader(const Trainer& trainer, const ReadingOptions& options)
      : trainer_(trainer), options_(options), patterns_(PatternsOf(trainer)), set_(patterns_), ends_(trainer) {
    for (const Metric& metric : trainer.metrics) gathered_.emplace_back(metric);
  }

  void Line(int64_t number, std::string_view line) {
    has_step_ = false;
    if (trainer_.result != Trainer::Result::kFile) {
      for (const int at : set_.Matching(line)) TakeMatch(static_cast<size_t>(at), number, line);
    }
    ends_.Line(number, line);
  }

  void Result(const Json& document) {
    for (size_t at = 0; at < gathered_.size(); ++at) {
      const Json::json_pointer pointer(trainer_.metrics[at].pointer);
      if (document.contains(pointer)) TakeJson(at, document.at(pointer), /*listed=*/false);
    }
  }

  Reading Finish(int64_t lines) {
    Reading reading;
    reading.lines = lines;
    for (Gathered& gathered : gathered_) {
      FoundMetric found = gathered.Finish();
      const auto same = [&](const FoundMetric& other) { return other.metric->figure == found.metric->figure; };
      const bool is_something = !found.values.empty() || !found.text.empty();
      if (is_something && std::none_of(reading.found.begin(), reading.found.end(), same)) {
        reading.found.push_back(std::move(found));
      }
    }
    reading.end = ends_.Decide(options_.exit_code);
    Conclude(trainer_, options_, reading);
    return reading;
  }

 private:
  static std::vector<const Pattern*> PatternsOf(const Trainer& trainer) {
    std::vector<const Pattern*> patterns;
    for (const Metric& metric : trainer.metrics) {
      if (metric.pattern) patterns.push_back(&*metric.pattern);
    }
    return patterns;
  }

  void TakeMatch(size_t at, int64_t number, std::string_view line) {
    const auto match = patterns_[at]->Find(line);
    if (!match || !match->has_value) return;
    if (trainer_.metrics[at].take == Take::kSeries) TakeStep(match->step.value_or(""));
    if (gathered_[at].Take(match->value, match->step, number, room_)) ends_.LossIsNotFinite(number, line);
  }

  // Several metrics may tell of one step, on one line.
  void TakeStep(std::string_view step) {
    if (!std::exchange(has_step_, true)) ends_.Step(step);
  }

  // A number, a text, or a list of these.
  void TakeJson(size_t at, const Json& value, bool listed) {
    if (value.is_array() && !listed) {
      for (const Json& item : value) TakeJson(at, item, /*listed=*/true);
    } else if (value.is_number() || value.is_string()) {
      const std::string text = value.is_string() ? value.get<std::string>() : DumpJson(value);
      if (gathered_[at].Take(text, std::nullopt, 0, room_))
        ends_.LossIsNotFinite(0, "the loss of its result is " + text);
    }
  }

  const Trainer& trainer_;
  const ReadingOptions& options_;
  std::vector<const Pattern*> patterns_;  // of each metric, or none at all
  PatternSet set_;
  std::vector<Gathered> gathered_;
  LogEnds ends_;
  int64_t room_ = kMostValues;
  bool has_step_ = false;  // the line is one of a step
};

bool Grows(const std::vector<int64_t>& steps) {
  return std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) == steps.end();
}

// The same metric of two logs. Where a run began anew, its values have no places but their own.
void MergeValues(const FoundMetric& other, FoundMetric& into) {
  const OfRanks how = into.metric->figure->ranks;
  const bool again = !Grows(into.steps) || !Grows(other.steps);
  if (again && into.steps != other.steps) {
    if (other.values.size() <= into.values.size()) return;
    into.values = other.values;
    into.steps = other.steps;
    into.covers = other.covers;
    return;
  }
  StepValues merged = again ? MergeRanks({into.values, {}}, {other.values, {}}, how)
                            : MergeRanks({into.values, into.steps}, {other.values, other.steps}, how);
  if (!again) into.steps = std::move(merged.steps);
  into.values = std::move(merged.values);
  if (into.covers.size() != into.values.size()) {
    into.covers = other.covers.size() == into.values.size() ? other.covers : std::vector<int64_t>();
  }
}

void MergeMetric(const FoundMetric& other, FoundMetric& into) {
  const Take take = into.metric->take;
  if (take == Take::kSum && into.values.size() == 1 && other.values.size() == 1) {
    if (into.by_rank.empty() || other.by_rank.empty()) {
      into.values[0] += other.values[0];
    } else {
      into.by_rank.insert(other.by_rank.begin(), other.by_rank.end());
      into.values[0] = 0;
      for (const auto& [rank, value] : into.by_rank) into.values[0] += value;
    }
  } else if (take == Take::kMax || take == Take::kMin) {
    into.values[0] =
        Merged(into.values[0], other.values[0], take == Take::kMax ? OfRanks::kLargest : OfRanks::kSmallest);
  } else if (into.text.empty()) {
    MergeValues(other, into);
  }
  into.matches += other.matches;
  into.unread += other.unread;
  into.left_out += other.left_out;
}

}  // namespace

ReadingOptions OptionsFor(const Trainer& trainer, const RunSpec& spec) {
  ReadingOptions options;
  options.tokens_per_step = TokensAStep(trainer, spec);
  options.ranks = spec.ranks;
  options.steps = StepsOf(spec);
  options.field = [&](std::string_view name) { return PointNumber(trainer, spec, name); };
  return options;
}

bool TimesArrivals(const Trainer& trainer) {
  return std::any_of(trainer.metrics.begin(), trainer.metrics.end(),
                     [](const Metric& metric) { return metric.take == Take::kArrival; });
}

Reading ReadLog(const Trainer& trainer, const LogSource& log, const ReadingOptions& options,
                const std::optional<Json>& result) {
  LogReader reader(trainer, options);
  LogLines lines([&](int64_t number, std::string_view line) { reader.Line(number, line); });
  log([&](std::string_view bytes) { lines.Feed(bytes); });
  lines.End();
  if (result) reader.Result(*result);
  return reader.Finish(lines.lines());
}

Reading MergeReadings(const Trainer& trainer, Reading first, const Reading& other, const ReadingOptions& options) {
  for (const FoundMetric& found : other.found) {
    const auto same = std::find_if(first.found.begin(), first.found.end(), [&](const FoundMetric& mine) {
      return mine.metric->figure->name == found.metric->figure->name;
    });
    if (same == first.found.end()) {
      first.found.push_back(found);
    } else if (same->metric == found.metric && same->unit == found.unit) {
      MergeMetric(found, *same);
    } else if (found.metric < same->metric) {
      *same = found;  // of one name, the first of the definition's counts
    }
  }
  std::sort(first.found.begin(), first.found.end(),
            [](const FoundMetric& a, const FoundMetric& b) { return a.metric < b.metric; });
  for (const std::string& note : other.notes) {
    if (std::find(first.notes.begin(), first.notes.end(), note) == first.notes.end()) first.notes.push_back(note);
  }
  first.lines += other.lines;
  Conclude(trainer, options, first);
  return first;
}

}  // namespace ridgeline
