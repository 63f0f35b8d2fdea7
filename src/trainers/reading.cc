#include "trainers/reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/consistency.h"
#include "run/fields.h"
#include "run/step_figures.h"
#include "stats/median.h"
#include "trainers/json_values.h"
#include "trainers/line_metrics.h"
#include "trainers/log_lines.h"
#include "trainers/merge.h"
#include "trainers/rates.h"
#include "trainers/stamp.h"
#include "trainers/step_series.h"
#include "trainers/widths.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMaxVersionBytes = 256;
constexpr double kMostExact = 9'007'199'254'740'992;  // 2^53, the largest whole number that a double holds exactly
constexpr double kMostEvery = 1e6;
constexpr size_t kMaxRankBytes = 64;
constexpr size_t kMostRanks = size_t{1} << 16;

// Records which metrics are missing, and which of those found contradict each other.
void Conclude(const Trainer& trainer, const ReadingOptions& options, Reading& reading) {
  reading.missing.clear();
  for (const Metric& metric : trainer.metrics) {
    const std::string name(metric.figure->name);
    const bool known = std::find(reading.missing.begin(), reading.missing.end(), name) != reading.missing.end() ||
                       std::any_of(reading.found.begin(), reading.found.end(),
                                   [&](const FoundMetric& found) { return found.metric->figure->name == name; });
    if (!known) reading.missing.push_back(name);
  }
  reading.contradictions.clear();
  if (!options.tokens_per_step) return;
  std::string wrong = RateOfAllAgainstTimes(reading.found, *options.tokens_per_step);
  if (!wrong.empty()) reading.contradictions.push_back(std::move(wrong));
}

// Returns a metric's factor; nothing if it is a field that is unknown.
std::optional<double> FactorOf(const std::string& said, const ReadingOptions& options) {
  double number = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), number);
  if (error == std::errc() && end == said.data() + said.size()) return number;
  return options.field ? options.field(said) : std::nullopt;
}

// Gathers the values of one metric as they come.
class Gathered {
 public:
  Gathered(const Metric& metric, const ReadingOptions& options) : options_(options) {
    found_.metric = &metric;
    found_.unit = metric.unit->kept;
    for (const std::string& factor : metric.factors) Multiply(factor);
    const auto every = FactorOf(metric.every, options);
    if (every) timing_.every = static_cast<int64_t>(std::clamp(*every, 1.0, kMostEvery));
    if (options.field) sample_tokens_ = options.field("seq_length");
    is_raw_ = metric.unit->form == LoggedUnit::Form::kSamples && !sample_tokens_;
    if (is_raw_) found_.unit = metric.unit->name;
  }

  // Returns true for a loss that is not finite. `room`: how many values may still be kept. `at_ns`: when the line
  // arrived.
  bool Take(const LineValue& said, int64_t line, std::optional<int64_t> at_ns, int64_t& room) {
    const Metric& metric = *found_.metric;
    if (metric.figure->dimension == Dimension::kText) {
      if (found_.matches == 0 || metric.take == Take::kLast) {
        found_.text = ShortenToBytes(said.value, kMaxVersionBytes);
      }
      Count(line);
      return false;
    }
    if (metric.take == Take::kArrival && !at_ns) {
      ++untimed_;
      return false;
    }
    const auto amount = metric.take == Take::kArrival ? Moment(*at_ns)
                        : metric.take == Take::kStamp ? StampOf(said.value)
                                                      : AmountOf(said);
    const bool is_loss = metric.figure->name == "loss";
    if (!amount || (std::isnan(*amount) && !is_loss)) {
      if (found_.unread++ == 0) first_unread_ = line;
      return false;
    }
    Count(line);
    Keep(*amount, said, room);
    return std::isnan(*amount);
  }

  bool is_untimed() const { return untimed_ > 0 && found_.matches == 0; }

  FoundMetric Finish() {
    FoundMetric found = found_;
    const enum Take take = found.metric->take;
    if (!unknown_.empty()) return found;  // without values
    if (!KeepsAll(take) && !sums_steps_) {
      if (!reduced_.empty()) OfAllRanks(found);
      if (TellsTime()) TakeAll(SeriesFound(), found);
      return found;
    }
    Series series = SeriesFound();
    found.values = series.values;
    if (take == Take::kMedian) {
      if (TellsTime()) TakeAll(std::move(series), found);
      std::erase_if(found.values, [](double value) { return std::isnan(value); });
      if (!found.values.empty()) found.values = {stats::MedianOf(found.values)};
    } else {
      found.is_by_moment = series.is_by_moment;
      found.steps = std::move(series.steps);
      found.covers = std::move(series.covers);
    }
    return found;
  }

  // Adds notes about the metric, whether it was found or not.
  void AddNotes(bool is_found, std::vector<std::string>& notes) const {
    const std::string_view name = found_.metric->figure->name;
    if (!is_found && found_.unread > 0) {
      notes.push_back(fmt::format("{}, the first in line {}", UnreadText(found_), first_unread_));
    }
    if (!is_found && is_untimed()) {
      const std::string note = fmt::format(
          "{}: matching lines are timed as they arrive, but a log file has no arrival times. If its lines have time "
          "stamps, use take: stamp",
          name);
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
    if (!is_found && is_miscounted_) {
      notes.push_back(
          fmt::format("{}: {} lines match, which have no step and are not as many as the steps. Say every: "
                      "how many steps there are from line to line",
                      name, found_.matches));
    }
    if (is_found && is_mixed_) {
      notes.push_back(fmt::format(
          "{}: some lines name their rank and others do not, and they are not as many: those that are more count",
          name));
    }
    if (!unknown_.empty() && found_.matches > 0) {
      notes.push_back(fmt::format("{}: {} lines match, and {} is not known here: say --field {}=NUMBER", name,
                                  found_.matches, unknown_, unknown_));
    }
    if (is_found && is_raw_) {
      notes.push_back(fmt::format("{}: tokens of a sample are not known here: say --field seq_length=NUMBER", name));
    }
  }

 private:
  // Whether the figure needs all values, whichever is taken, because those of the warm-up are left out.
  bool TellsTime() const {
    return found_.metric->figure->name == "step_time" || found_.metric->figure->name == "tokens_per_s";
  }

  static void TakeAll(Series series, FoundMetric& found) {
    found.all = std::move(series.values);
    found.is_by_moment = series.is_by_moment;
    found.steps = std::move(series.steps);
    found.covers = std::move(series.covers);
  }

  static bool KeepsAll(enum Take take) { return take == Take::kMedian || IsSeries(take); }

  void Multiply(const std::string& by) {
    const auto factor = FactorOf(by, options_);
    if (!factor) unknown_ = by;
    factor_ *= factor.value_or(1);
  }

  void Count(int64_t line) {
    if (found_.matches++ == 0) found_.first_line = line;
    found_.last_line = line;
  }

  // Returns the value in the metric's unit. The line may name another unit.
  std::optional<double> AmountOf(const LineValue& said) const {
    const Metric& metric = *found_.metric;
    const LoggedUnit* unit = metric.unit;
    std::string with_word;
    std::string_view text = said.value;
    const bool of_own = metric.own != nullptr;
    if (!said.unit.empty()) {
      const Dimension dimension = metric.units.empty() ? unit->dimension : metric.units.front()->dimension;
      const LoggedUnit* named = FindPrintedUnit(dimension, said.unit);
      if (named != nullptr && std::find(metric.units.begin(), metric.units.end(), named) != metric.units.end()) {
        unit = named;
      } else {
        with_word = fmt::format("{} {}", said.value, said.unit);  // K, M, or a unit of tqdm
        text = with_word;
      }
    }
    auto amount = ReadAmount(text, *unit);
    if (!amount || std::isnan(*amount)) return amount;
    if (unit->form == LoggedUnit::Form::kSamples && !is_raw_) {
      if (!sample_tokens_) return std::nullopt;
      *amount *= *sample_tokens_;
    }
    if (of_own && unit != metric.unit) {
      *amount /= static_cast<double>(FindPrintedUnit(unit->dimension, metric.unit->name)->factor);
    }
    *amount *= factor_;
    const bool whole = metric.unit->dimension == Dimension::kTime || metric.unit->dimension == Dimension::kMemory;
    if (!std::isfinite(*amount) || (whole && *amount > kMostExact)) return std::nullopt;
    return whole ? std::round(*amount) : *amount;
  }

  // Returns the time since the first moment, so that a double holds every nanosecond.
  std::optional<double> Moment(int64_t at_ns) {
    if (!base_ns_) base_ns_ = at_ns;
    return static_cast<double>(at_ns - *base_ns_);
  }

  std::optional<double> StampOf(std::string_view text) {
    const auto stamp = ReadStamp(text, found_.metric->format);
    if (!stamp) return std::nullopt;
    timing_.resolution_ns =
        found_.matches == 0 ? stamp->resolution_ns : std::min(timing_.resolution_ns, stamp->resolution_ns);
    timing_.wraps_ns = stamp->wraps_ns;
    return Moment(stamp->ns);
  }

  uint32_t PlaceOf(std::string_view rank) {
    if (last_rank_ && ranks_[*last_rank_] == rank) return *last_rank_;
    const auto [it, added] = rank_places_.try_emplace(std::string(rank), static_cast<uint32_t>(ranks_.size()));
    if (added) ranks_.emplace_back(rank);
    last_rank_ = it->second;
    return it->second;
  }

  void Keep(double value, const LineValue& said, int64_t& room) {
    const enum Take take = found_.metric->take;
    const std::string_view name = said.rank.substr(0, kMaxRankBytes);
    if (ranks_.size() >= kMostRanks && !rank_places_.contains(std::string(name))) {
      ++found_.left_out;
      return;
    }
    const auto step = said.step.empty() ? std::nullopt : StepOf(said.step);
    sums_steps_ = take == Take::kSum && step && !name.empty();
    if (!KeepsAll(take) && !sums_steps_) {
      if (!std::isnan(value)) Reduce(take, std::string(name), value);
      if (!TellsTime() || std::isnan(value)) return;
    }
    if (room == 0) {
      ++found_.left_out;
      return;
    }
    --room;
    Sample sample;
    sample.value = value;
    sample.has_step = step.has_value();
    sample.step = step.value_or(0);
    sample.of = StepOf(said.of).value_or(0);
    sample.rank = PlaceOf(name);
    if (!step) sample.line = std::hash<std::string_view>()(said.record);
    samples_.push_back(sample);
  }

  void Reduce(enum Take take, std::string rank, double value) {
    const auto [it, first] = reduced_.try_emplace(std::move(rank), value);
    double& kept = it->second;
    if (first || take == Take::kFirst) return;
    const bool adds = take == Take::kSum && it->first.empty();  // a rank repeats its own sum, so it is not added
    kept = take == Take::kMax   ? std::max(kept, value)
           : take == Take::kMin ? std::min(kept, value)
           : adds               ? kept + value
                                : value;
  }

  void OfAllRanks(FoundMetric& found) const {
    const enum Take take = found_.metric->take;
    if (take == Take::kSum) {
      if (reduced_.size() > 1 || !reduced_.begin()->first.empty()) found.by_rank = reduced_;
      found.values = {std::accumulate(reduced_.begin(), reduced_.end(), 0.0,
                                      [](double sum, const auto& rank) { return sum + rank.second; })};
      return;
    }
    const OfRanks how = take == Take::kMax   ? OfRanks::kLargest
                        : take == Take::kMin ? OfRanks::kSmallest
                                             : found_.metric->figure->ranks;
    auto lowest = reduced_.begin();
    for (auto it = reduced_.begin(); it != reduced_.end(); ++it) {
      if (IsLowerRank(it->first, lowest->first)) lowest = it;
    }
    double value = lowest->second;
    for (const auto& [rank, other] : reduced_) value = Merged(value, other, how);
    found.values = {value};
  }

  // Returns how many lines of the metric may belong to one step: if its factors include the number of micro-steps, each
  // line is one micro-step's.
  int64_t MicroStepsOf(const Metric& metric) const {
    constexpr std::string_view kField = "grad_accumulation";
    const bool is_micro = std::find(metric.factors.begin(), metric.factors.end(), kField) != metric.factors.end();
    return is_micro && options_.field ? static_cast<int64_t>(options_.field(kField).value_or(1)) : 1;
  }

  Series SeriesFound() {
    const Metric& metric = *found_.metric;
    const SeriesFacts facts = {options_.ranks, options_.steps, options_.exit_code == 0};
    if (options_.steps) DropOtherBars(*options_.steps, samples_);
    if (sums_steps_) return SumsOf(samples_);
    if (metric.take != Take::kArrival && metric.take != Take::kStamp) {
      if (metric.unit->dimension == Dimension::kTime) {
        samples_ = OfMicroSteps(std::move(samples_), MicroStepsOf(metric), facts);
      }
      Series series = SeriesOf(samples_, ranks_, metric.figure->ranks, facts);
      is_mixed_ = series.is_mixed;
      return series;
    }
    if (metric.take == Take::kArrival && options_.arrivals != nullptr) {
      timing_.resolution_ns = options_.arrivals->resolution_ns;
    }
    const bool counts_lines =
        std::any_of(samples_.begin(), samples_.end(), [](const Sample& s) { return !s.has_step; });
    if (counts_lines && !FactorOf(metric.every, options_)) {
      unknown_ = metric.every;
      return {};
    }
    const bool several = samples_.size() > 1;
    Series series = IntervalsOf(std::move(samples_), ranks_, facts, timing_);
    is_miscounted_ = counts_lines && several && series.values.empty();
    for (double& value : series.values) value = std::round(value * factor_);
    const bool fit = std::all_of(series.values.begin(), series.values.end(), [](double v) { return v <= kMostExact; });
    return fit ? series : Series();
  }

  FoundMetric found_;
  const ReadingOptions& options_;
  double factor_ = 1;
  std::optional<double> sample_tokens_;
  bool is_raw_ = false;  // samples/s of unknown length
  std::string unknown_;  // an unknown field that it needs
  int64_t first_unread_ = 0;
  int64_t untimed_ = 0;  // lines that match and have no known time of arrival
  bool is_miscounted_ = false;
  bool is_mixed_ = false;
  Timing timing_;
  std::optional<int64_t> base_ns_;
  std::vector<Sample> samples_;
  std::vector<std::string> ranks_;
  std::unordered_map<std::string, uint32_t> rank_places_;
  std::optional<uint32_t> last_rank_;
  bool sums_steps_ = false;
  std::map<std::string, double> reduced_;  // of each rank, if one value is kept
};

class LogReader {
 public:
  LogReader(const Trainer& trainer, const ReadingOptions& options)
      : trainer_(trainer), options_(options), metrics_(PointersTo(trainer)), ends_(trainer) {
    for (const Metric& metric : trainer.metrics) gathered_.emplace_back(metric, options);
  }

  // `end`: the log's size in bytes up to the end of the line.
  void Line(int64_t number, std::string_view line, int64_t end, bool cut) {
    has_step_ = false;
    if (trainer_.result != Trainer::Result::kFile) {
      const auto at_ns = ArrivalOf(end);
      const std::string_view rank_before = RankBefore(number, line);
      metrics_.Line(line, cut, [&](const LineValue& said) {
        if (IsSeries(trainer_.metrics[said.metric].take)) TakeStep(said.step);
        LineValue whose = said;
        if (whose.rank.empty()) whose.rank = rank_before;
        if (gathered_[said.metric].Take(whose, number, at_ns, room_)) ends_.LossIsNotFinite(number, line);
      });
      widths_.Line(line);
    }
    ends_.Line(number, line);
  }

  void Result(const Json& document) {
    for (size_t at = 0; at < gathered_.size(); ++at) {
      const Metric& metric = trainer_.metrics[at];
      if (metric.pattern) continue;
      CollectJson(document, {metric.pointer, metric.step_pointer, metric.rank_pointer}, [&](const JsonValue& found) {
        LineValue said;
        said.value = found.text;
        said.step = found.step ? std::string_view(*found.step) : std::string_view();
        said.rank = found.rank ? std::string_view(*found.rank) : std::string_view();
        if (gathered_[at].Take(said, 0, std::nullopt, room_)) {
          ends_.LossIsNotFinite(0, "the loss of its result is " + found.text);
        }
      });
    }
  }

  Reading Finish(int64_t lines) {
    Reading reading;
    reading.lines = lines;
    for (Gathered& gathered : gathered_) {
      FoundMetric found = gathered.Finish();
      const auto same = [&](const FoundMetric& other) {
        return other.metric->figure->name == found.metric->figure->name;
      };
      const bool is_something = !found.values.empty() || !found.text.empty();
      const bool is_found = is_something && std::none_of(reading.found.begin(), reading.found.end(), same);
      if (is_found) reading.found.push_back(std::move(found));
      gathered.AddNotes(is_found, reading.notes);
    }
    AddWrapped(reading);
    reading.end = ends_.Decide(options_.exit_code, options_.steps);
    if (options_.exit_code == 0) reading.overruled = ends_.OfWords(/*ended_well=*/true);
    Conclude(trainer_, options_, reading);
    return reading;
  }

 private:
  static std::vector<const Metric*> PointersTo(const Trainer& trainer) {
    std::vector<const Metric*> metrics;
    for (const Metric& metric : trainer.metrics) metrics.push_back(&metric);
    return metrics;
  }

  // If a bar rewrites a line again and again, a launcher puts the rank only before the line's first part.
  std::string_view RankBefore(int64_t number, std::string_view line) {
    if (std::exchange(line_number_, number) == number) return line_rank_;
    line_rank_ = RankOf(line);
    return {};
  }

  // Counts the step once, even if several metrics on the line name it.
  void TakeStep(std::string_view step) {
    if (!std::exchange(has_step_, true)) ends_.Step(step);
  }

  std::optional<int64_t> ArrivalOf(int64_t end) {
    if (options_.arrivals == nullptr) return std::nullopt;
    const std::vector<Arrival>& sizes = options_.arrivals->sizes;
    while (arrival_ < sizes.size() && sizes[arrival_].bytes < end) ++arrival_;
    return arrival_ < sizes.size() ? std::optional(sizes[arrival_].at_ns) : std::nullopt;
  }

  void AddWrapped(Reading& reading) const {
    const bool has_some = std::any_of(reading.found.begin(), reading.found.end(), [](const FoundMetric& found) {
      return found.metric->figure->dimension != Dimension::kText;
    });
    const auto width = widths_.Wrapped();
    if (has_some || !width) return;
    reading.notes.push_back(
        fmt::format("nothing matches, and its long lines end at {} columns, as a terminal wraps "
                    "them: take the log from the file that the program wrote into",
                    *width));
  }

  const Trainer& trainer_;
  const ReadingOptions& options_;
  LineMetrics metrics_;
  std::vector<Gathered> gathered_;
  LogEnds ends_;
  Widths widths_;
  size_t arrival_ = 0;
  int64_t room_ = kMostValues;
  bool has_step_ = false;  // the line names a step
  int64_t line_number_ = 0;
  std::string line_rank_;  // the rank before the first part of the line
};

bool Grows(const std::vector<int64_t>& steps) {
  return std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) == steps.end();
}

// Merges the same metric of two logs. If a run started again, its values have only their order.
void MergeValues(const FoundMetric& other, FoundMetric& into) {
  const OfRanks how = into.metric->figure->ranks;
  if (!into.all.empty() || !other.all.empty()) {
    // Each has one value: the log that covers more of the run decides.
    if (other.all.size() <= into.all.size()) return;
    into.values = other.values;
    into.all = other.all;
    into.steps = other.steps;
    into.covers = other.covers;
    return;
  }
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

std::string UnreadText(const FoundMetric& found) {
  return fmt::format("{}: lines that match and have no number of its unit: {}", found.metric->figure->name,
                     found.unread);
}

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
  LogLines* now = nullptr;
  LogLines lines([&](int64_t number, std::string_view line) {
    reader.Line(number, line, now->end(), now->is_cut() && options.exit_code != 0);
  });
  now = &lines;
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
      *same = found;  // of one name, the definition's first metric counts
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

}  // namespace ridgeline::trainers
