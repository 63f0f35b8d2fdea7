#include "trainers/reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "stats/median.h"
#include "trainers/log_lines.h"

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
  explicit Gathered(const Metric& metric) { found_.metric = &metric; }

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
    if (found_.metric->take == Take::kSeries) {
      if (found_.steps.size() != found_.values.size()) found_.steps.clear();
    } else if (found_.metric->take == Take::kMedian && !found_.values.empty()) {
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

  void Keep(double value, std::optional<int64_t> step, int64_t& room) {
    const enum Take take = found_.metric->take;
    if (!KeepsAll(take)) {
      if (!std::isnan(value)) reduced_ = Reduced(take, value);
    } else if (room == 0) {
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

class LogReader {
 public:
  LogReader(const Trainer& trainer, const ReadingOptions& options)
      : trainer_(trainer), options_(options), patterns_(PatternsOf(trainer)), set_(patterns_), ends_(trainer) {
    for (const Metric& metric : trainer.metrics) gathered_.emplace_back(metric);
  }

  void Line(int64_t number, std::string_view line) {
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
    AddMissing(reading);
    reading.end = ends_.Decide(options_.exit_code);
    AddContradiction(reading);
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
    if (gathered_[at].Take(match->value, match->step, number, room_)) ends_.LossIsNotFinite(number, line);
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

  void AddMissing(Reading& reading) const {
    for (const Metric& metric : trainer_.metrics) {
      const std::string name(metric.figure->name);
      const bool known = std::find(reading.missing.begin(), reading.missing.end(), name) != reading.missing.end() ||
                         std::any_of(reading.found.begin(), reading.found.end(),
                                     [&](const FoundMetric& found) { return found.metric->figure == metric.figure; });
      if (!known) reading.missing.push_back(name);
    }
  }

  // Tokens a second against those of the step over its time, medians both.
  void AddContradiction(Reading& reading) const {
    const auto median = [&](std::string_view name, std::string_view unit) -> std::optional<double> {
      for (const FoundMetric& found : reading.found) {
        if (found.metric->figure->name != name || found.metric->unit->kept != unit) continue;
        std::vector<double> values = found.values;
        return MedianOf(values);
      }
      return std::nullopt;
    };
    const auto step_ns = median("step_time", "ns");
    const auto rate = median("tokens_per_s", "tokens/s");
    if (!options_.tokens_per_step || !step_ns || !rate || *step_ns <= 0) return;
    const double follows = static_cast<double>(*options_.tokens_per_step) * 1e9 / *step_ns;
    if (std::abs(*rate - follows) <= kAgreement * follows) return;
    reading.contradictions.push_back(fmt::format("tokens_per_s is {}, but {} tokens in a step of {} are {}",
                                                 FormatCount(*rate), *options_.tokens_per_step,
                                                 FormatDuration(static_cast<int64_t>(*step_ns)), FormatCount(follows)));
  }

  const Trainer& trainer_;
  const ReadingOptions& options_;
  std::vector<const Pattern*> patterns_;  // of each metric, or none at all
  PatternSet set_;
  std::vector<Gathered> gathered_;
  LogEnds ends_;
  int64_t room_ = kMostValues;
};

}  // namespace

Reading ReadLog(const Trainer& trainer, const LogSource& log, const ReadingOptions& options,
                const std::optional<Json>& result) {
  LogReader reader(trainer, options);
  LogLines lines([&](int64_t number, std::string_view line) { reader.Line(number, line); });
  log([&](std::string_view bytes) { lines.Feed(bytes); });
  lines.End();
  if (result) reader.Result(*result);
  return reader.Finish(lines.lines());
}

}  // namespace ridgeline
