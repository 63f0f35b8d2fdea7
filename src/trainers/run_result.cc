#include "trainers/run_result.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "ridgeline/limits.h"
#include "run/consistency.h"
#include "run/presets.h"
#include "run/result.h"
#include "run/step_figures.h"
#include "run/trainer_result.h"
#include "stats/median.h"
#include "trainers/rates.h"
#include "trainers/stretches.h"

namespace ridgeline::trainers {
namespace {

constexpr double kMostOfOwnFigure = 1e300;
constexpr double kClearly = 1.05;  // a time larger by this factor is clearly slower

// Returns for each value the shortest time, in ns, that rounds to it.
std::vector<double> ShortestTimes(const FoundMetric& found, const std::vector<Stretch>& stretches) {
  const LoggedUnit& unit = *found.metric->unit;
  const auto factor = static_cast<double>(unit.factor);
  std::vector<double> printed;
  for (const Stretch& stretch : stretches) {
    printed.push_back(unit.form == LoggedUnit::Form::kInverse ? factor / stretch.value : stretch.value / factor);
  }
  const double half = HalfOfLastPlace(printed);
  std::vector<double> times;
  for (const double value : printed) {
    times.push_back(unit.form == LoggedUnit::Form::kInverse ? factor / (value + half)
                                                            : std::max(value - half, 0.0) * factor);
  }
  return times;
}

int64_t StepsIn(const std::vector<Stretch>& stretches) {
  return std::accumulate(stretches.begin(), stretches.end(), int64_t{0},
                         [](int64_t sum, const Stretch& stretch) { return sum + stretch.steps; });
}

// Whether the value taken is chosen from all or made from them, and does not measure the middle.
bool IsOneOfAll(Take take) {
  return take == Take::kLast || take == Take::kFirst || take == Take::kMax || take == Take::kMin || take == Take::kSum;
}

double MedianIn(const std::vector<Stretch>& stretches) {
  std::vector<double> values;
  for (const Stretch& stretch : stretches) values.push_back(stretch.value);
  return stats::MedianOf(values);
}

class Maker {
 public:
  Maker(const Trainer& trainer, const Reading& reading, const RunSpec& spec, int64_t life_ns)
      : trainer_(trainer), reading_(reading), spec_(spec), life_ns_(life_ns) {}

  RunResult Make() {
    result_.tokens_per_step = TokensAStep(trainer_, spec_);
    result_.communicator = spec_.communicator;
    TakeTimes();
    TakeSeries("loss", result_.loss);
    TakeSeries("grad_norm", result_.grad_norm);
    TakeMemory();
    result_.parameters = static_cast<int64_t>(Single("parameters").value_or(0));
    result_.flops = ModelFlops(spec_, DataParallelRanks(trainer_, spec_));
    result_.printed = {Typical("mfu"), Typical("tflops_per_gpu")};
    TakeOwnFigures();
    if (const FoundMetric* version = Find("version")) result_.environment["version"] = version->text;
    result_.environment["trainer"] = trainer_.name;
    result_.environment["definition"] = DefinitionWords(trainer_);
    if (Find("step_time") != nullptr) {
      result_.evidence["step_times_found"] = std::to_string(Logged(*Find("step_time")).size());
    }
    TakeNotes();
    TakeEnd();
    return std::move(result_);
  }

 private:
  const FoundMetric* Find(std::string_view name, std::string_view unit = {}) const {
    const auto it = std::find_if(reading_.found.begin(), reading_.found.end(), [&](const FoundMetric& found) {
      return found.metric->figure->name == name && (unit.empty() || found.unit == unit) &&
             IsOfPoint(trainer_, *found.metric, spec_);
    });
    return it == reading_.found.end() ? nullptr : &*it;
  }

  // Returns one value of the whole run: the last of a series.
  std::optional<double> Single(std::string_view name) const {
    const FoundMetric* found = Find(name);
    return found == nullptr ? std::nullopt : std::optional(found->values.back());
  }

  // Returns one value of the run at its steady speed, as far as known; nothing for a series of only cold steps.
  std::optional<double> Typical(const FoundMetric& found) const {
    if (const std::vector<Stretch> steady = Steady(found); !steady.empty()) return MedianIn(steady);
    const bool is_cold = found.metric->take == Take::kSeries || found.metric->take == Take::kMedian;
    return is_cold || found.values.empty() || !std::isfinite(found.values.back()) ? std::nullopt
                                                                                  : std::optional(found.values.back());
  }
  std::optional<double> Typical(std::string_view name) const {
    const FoundMetric* found = Find(name);
    return found == nullptr ? std::nullopt : Typical(*found);
  }

  // Returns all values, before one was chosen.
  static const std::vector<double>& Logged(const FoundMetric& found) {
    return found.all.empty() ? found.values : found.all;
  }

  bool IsOk() const { return reading_.end && reading_.end->end == RunStatus::kOk; }

  std::vector<Stretch> Stretches(const FoundMetric& found) const {
    const std::vector<double>& values = Logged(found);
    const bool numbered = !found.steps.empty() && found.steps.size() == values.size();
    const bool covered = numbered && found.covers.size() == values.size();
    std::vector<Stretch> stretches = covered    ? StretchesOf(values, found.steps, found.covers)
                                     : numbered ? StretchesOf(values, found.steps, StepsOf(spec_))
                                                : StretchesOf(values, StepsOf(spec_), IsOk(), WritersOf(found));
    const Dimension dimension = found.metric->unit->dimension;
    if (!numbered && !found.is_by_moment && AreCold(values, dimension)) {
      for (size_t i = 0; i < static_cast<size_t>(spec_.ranks); ++i) stretches[i].after = 0;
    }
    const bool may_be_zero = dimension != Dimension::kTime && dimension != Dimension::kTokenRate;
    std::erase_if(stretches, [&](const Stretch& stretch) {
      return !std::isfinite(stretch.value) || (!may_be_zero && stretch.value <= 0);
    });
    return stretches;
  }

  // Returns how many ranks certainly wrote the lines: all, with one line per rank and step, or else one.
  int64_t WritersOf(const FoundMetric& found) const {
    const int64_t lines = std::ssize(Logged(found));
    const bool of_all_ranks = found.steps.empty() && !found.is_by_moment && lines == spec_.ranks * StepsOf(spec_);
    // The lines may be of micro-steps.
    const bool is_of_steps = spec_.grad_accumulation == 1 || !found.metric->factors.empty();
    return of_all_ranks && is_of_steps && IsOk() ? spec_.ranks : 1;
  }

  // Returns the least number of steps that these values cover. Each rank may have printed lines that name neither step
  // nor rank. In a run that ended well, one rank has, or all have printed equally many.
  int64_t StepsFrom(const FoundMetric& found, const std::vector<Stretch>& steady) {
    int64_t steps = StepsIn(steady);
    const int64_t lines = std::ssize(Logged(found));
    const int64_t ranks = std::min(lines, spec_.ranks);
    const bool is_of_one = found.is_by_moment || lines == StepsOf(spec_) || (IsOk() && lines % spec_.ranks != 0);
    if (const int64_t writers = WritersOf(found); writers > 1) {
      steps /= writers;
    } else if (found.steps.empty() && !is_of_one && ranks > 1) {
      steps = (steps + ranks - 1) / ranks;
      result_.evidence[kStepsAtLeastEvidence] = fmt::format(
          "{}: its lines name neither step nor rank, and any of the {} ranks may have printed each. So its steady "
          "figure covers an unknown number of steps, at least {}",
          found.metric->figure->name, spec_.ranks, steps);
    }
    return std::min(steps, MeasuredSteps());
  }

  // Returns whether lines without a step come from every rank, judged by the first line of each being slower than
  // usual. Those lines are of the first step, however many lines the warm-up has.
  bool AreCold(const std::vector<double>& values, Dimension dimension) const {
    const int64_t ranks = spec_.ranks;
    if (dimension != Dimension::kTime && dimension != Dimension::kTokenRate) return false;
    if (ranks < 2 || std::ssize(values) < 2 * ranks || std::ssize(values) % ranks != 0) return false;
    const auto behind = values.begin() + ranks;
    std::vector<double> others(behind, values.end());
    const double usual = stats::MedianOf(others);
    return std::all_of(values.begin(), behind, [&](double value) {
      return dimension == Dimension::kTime ? value > kClearly * usual : value * kClearly < usual;
    });
  }

  // Returns the stretches after the warm-up, as the metric takes them. A single value may cover all steps.
  std::vector<Stretch> Steady(const FoundMetric& found) const {
    std::vector<Stretch> stretches = Stretches(found);
    const Take take = found.metric->take;
    if (IsMeanRate(found)) return {};
    if (Logged(found).size() > 1 && !stretches.empty()) {
      if (take == Take::kMax || take == Take::kMin || take == Take::kSum) return {};
      if (take == Take::kLast) stretches = {stretches.back()};
      if (take == Take::kFirst) stretches = {stretches.front()};
    }
    // A run that continues from a checkpoint starts cold.
    const int64_t begin = stretches.empty() ? 0 : stretches.front().after;
    const bool resumed = !spec_.checkpoint_dir.empty() && begin > std::max<int64_t>(spec_.warmup_steps, 1);
    const int64_t warm = spec_.warmup_steps + (resumed ? begin : 0);
    std::erase_if(stretches, [&](const Stretch& stretch) { return stretch.after < warm; });
    return stretches;
  }

  void TakeMemory() {
    MemoryFigures& memory = result_.memory;
    memory.rss_peak_bytes = static_cast<int64_t>(Single("host_peak").value_or(0));
    if (memory.rss_peak_bytes > 0) result_.evidence["memory_from"] = "its own words";
    for (const auto& [name, kind] : {std::pair("device_peak", kAllocated), std::pair("device_used", kInUse)}) {
      if (memory.device_peak_bytes > 0) break;
      memory.device_peak_bytes = static_cast<int64_t>(Single(name).value_or(0));
      if (memory.device_peak_bytes > 0) memory.device_peak_kind = kind;
    }
    memory.device_reserved_bytes = static_cast<int64_t>(Single("device_reserved").value_or(0));
    if (memory.device_peak_bytes > 0 || memory.device_reserved_bytes > 0) {
      result_.evidence["device_memory_from"] = "its own words";
    }
  }

  // Keeps figures without a field of their own in the result under their own names.
  void TakeOwnFigures() {
    for (const FoundMetric& found : reading_.found) {
      const std::string name(found.metric->figure->name);
      const bool is_own = name == kTrainable || std::ranges::find(kTaken, name) == std::end(kTaken);
      if (!is_own || !IsOfPoint(trainer_, *found.metric, spec_) || result_.metrics.size() == kMaxOwnFigures) continue;
      if (const auto value = Typical(found); value && std::abs(*value) < kMostOfOwnFigure) {
        result_.metrics[name] = {*value, found.unit};
      }
    }
  }

  void TakeTimes() {
    const FoundMetric* times = Find("step_time");
    const bool is_series = times != nullptr && times->metric->take != Take::kMedian && !IsOneOfAll(times->metric->take);
    if (is_series && IsWhole(Stretches(*times))) {
      for (const Stretch& step : Stretches(*times)) {
        result_.step_ns.all_ns.push_back(static_cast<int64_t>(step.value));
      }
      DeriveStepFigures(spec_, result_);
      return;
    }
    double cold = 0;
    if (times != nullptr) cold = TakeSteadyTimes(*times);
    const FoundMetric* rate = Find("tokens_per_s");
    if (rate != nullptr && result_.measured_steps == 0) {
      const std::vector<Stretch> steady = Steady(*rate);
      if (!steady.empty()) {
        result_.throughput.steady_tokens_per_s = MedianIn(steady) * PerRank(*rate);
        result_.measured_steps = StepsFrom(*rate, steady);
      }
    }
    const bool is_one = rate != nullptr && (IsMeanRate(*rate) || Logged(*rate).size() == 1);
    if (is_one && cold == 0 && result_.measured_steps == 0) {
      cold = Stretches(*rate).empty() ? 0 : rate->values.back() * PerRank(*rate);
    }
    const auto mean_ns = Single("mean_step_time");
    if (mean_ns && *mean_ns > 0) cold = static_cast<double>(result_.tokens_per_step) / (*mean_ns * 1e-9);
    result_.throughput.cold_tokens_per_s = cold;
  }

  int64_t MeasuredSteps() const { return StepsOf(spec_) - spec_.warmup_steps; }

  // Whether each step has a time.
  bool IsWhole(const std::vector<Stretch>& stretches) const {
    return std::ssize(stretches) == StepsOf(spec_) && stretches.size() > 1 && stretches.front().after == 0 &&
           StepsIn(stretches) == StepsOf(spec_);
  }

  // Takes times of at least some steps. Returns the cold run's tokens/s if the steady speed is unknown, and else 0.
  double TakeSteadyTimes(const FoundMetric& times) {
    const std::vector<Stretch> steady = Steady(times);
    if (!steady.empty()) {
      std::vector<int64_t> measured_ns;
      for (const Stretch& step : steady) measured_ns.push_back(static_cast<int64_t>(step.value));
      FillStepFigures(std::move(measured_ns), result_);
      result_.measured_steps = StepsFrom(times, steady);
      return 0;
    }
    const std::vector<Stretch> all = Stretches(times);
    const bool is_mean = Logged(times).size() == 1 || !IsOneOfAll(times.metric->take);
    if (all.empty() || !is_mean || all.front().after > 0) return 0;
    double ns = 0;
    for (const Stretch& step : all) ns += step.value * static_cast<double>(step.steps);
    return static_cast<double>(result_.tokens_per_step) * static_cast<double>(StepsIn(all)) / (ns * 1e-9);
  }

  // The factor from a rate as it is kept to that of all ranks.
  double PerRank(const FoundMetric& rate) const {
    return rate.unit == "tokens/s/GPU" ? static_cast<double>(spec_.ranks) : 1;
  }

  // Takes the series if it has at most one value per step.
  void TakeSeries(std::string_view name, std::vector<double>& to) const {
    const FoundMetric* found = Find(name);
    if (found != nullptr && found->metric->take == Take::kSeries && std::ssize(found->values) <= StepsOf(spec_)) {
      to = found->values;
    }
  }

  // Adds the notes about its log.
  void TakeNotes() {
    std::vector<std::string> notes = reading_.notes;
    for (const FoundMetric& found : reading_.found) {
      if (found.unread > 0) notes.push_back(UnreadText(found));
      if (!IsOfPoint(trainer_, *found.metric, spec_)) notes.push_back(LeftOutText(*found.metric));
    }
    if (!notes.empty()) result_.evidence["log_notes"] = ShortenToBytes(Join(notes, "; "), kMaxTextBytes);
  }

  void TakeEnd() {
    const std::string see =
        fmt::format("`ridgeline trainers try {} --log LOG` shows what its definition finds", trainer_.name);
    SetEnd(RunStatus::kCrashed, result_);
    // A run without a figure did not survive its error, whatever the exit code.
    const auto& end = IsOk() && !IsTimed() && reading_.overruled ? reading_.overruled : reading_.end;
    if (end) {
      SetEnd(end->end, result_);
      if (result_.status != RunStatus::kOk) {
        result_.message = end->message;
        result_.hint = end->hint;
      }
      if (end->line > 0) result_.evidence["log_line"] = std::to_string(end->line);
    }
    if (result_.status != RunStatus::kOk) return;
    if (const std::string many = TooMany(); !many.empty()) return End(RunStatus::kInvalid, many, see);
    if (const std::string late = PastItsLife(); !late.empty()) {
      return End(RunStatus::kInvalid, late, "look at its unit in the definition: " + see);
    }
    if (const std::string other = OtherModel(); !other.empty()) {
      return End(RunStatus::kInvalid, other,
                 "let its definition and arguments give the same model as the sweep. If it counts differently, set "
                 "`checks: {parameters: no, flops: no}` in the definition");
    }
    if (!reading_.contradictions.empty()) {
      return End(RunStatus::kInvalid, "its figures cannot all be true: " + reading_.contradictions.front(), see);
    }
    if (const std::string wrong = RateAgainstTime(); !wrong.empty()) {
      return End(RunStatus::kInvalid, "its figures cannot all be true: " + wrong, see);
    }
    std::string few = IsTimed() ? TooFewSteps(spec_, result_) : "";
    if (few.empty() && IsTimed() && result_.measured_steps == 0 && result_.throughput.cold_tokens_per_s == 0) {
      few = "no time and no rate in its log is of measured steps alone";
    }
    if (!few.empty()) return End(RunStatus::kInvalid, few, "let it log each step, or measure more of them; " + see);
    if (const std::string none = NoSpeed(); !none.empty()) return End(RunStatus::kInvalid, none, see);
    CheckSense(see);
    if (result_.status == RunStatus::kOk) AskForUnit();
  }

  bool IsTimed() const {
    return Find("step_time") != nullptr || Find("tokens_per_s") != nullptr || Find("mean_step_time") != nullptr;
  }

  // A run that is no result keeps no figures.
  void End(RunStatus status, std::string message, std::string hint) {
    SetEnd(status, result_);
    result_.message = std::move(message);
    result_.hint = std::move(hint);
    result_.throughput = {};
    result_.step_ns = {};
  }

  void CheckSense(const std::string& see) {
    try {
      CheckTrainerResult(spec_, result_, "its log");
    } catch (const Error& e) {
      End(RunStatus::kInvalid, e.message(), see);
    }
  }

  // Returns an empty text if the log tells how fast the run was.
  std::string NoSpeed() const {
    if (MissingOfOk(spec_, result_).empty()) return {};
    std::vector<std::string> sought = reading_.missing;
    std::erase_if(sought, [](const std::string& name) {
      return name != "step_time" && name != "mean_step_time" && name != "tokens_per_s";
    });
    return fmt::format(
        "the run succeeded, but its log does not say how fast it was{}. The point has {} steps, warm-up included; if "
        "the trainer prints fewer, raise `steps` under `measure`",
        sought.empty() ? "" : fmt::format(" (not found: {})", Join(sought, ", ")), StepsOf(spec_));
  }

  std::string TooMany() const {
    const FoundMetric* times = Find("step_time");
    if (times == nullptr || std::ssize(Logged(*times)) <= StepsOf(spec_) * WritersOf(*times)) return {};
    return fmt::format("its log has {} step times, and the point has {} steps, warm-up included", Logged(*times).size(),
                       StepsOf(spec_));
  }

  // Returns the number of steps that this process did, as far as a series tells; else all steps of the point.
  int64_t StepsDone() const {
    int64_t done = 0;
    for (const FoundMetric& found : reading_.found) {
      if (found.steps.empty()) continue;
      const std::vector<Stretch> stretches = Stretches(found);
      if (!stretches.empty()) done = std::max(done, StepsIn(stretches));
    }
    if (done > 0) return std::min(done, StepsOf(spec_));
    return spec_.checkpoint_dir.empty() ? StepsOf(spec_) : 1;
  }

  // The total time of the steps by the log: as printed, and the least that rounds to it.
  struct Clocked {
    double said_ns = 0;
    double least_ns = 0;
    std::string what;
  };

  // Returns the share of lines without a step number that are certainly of different steps. Each rank and each
  // micro-step may have printed its own.
  double ShareOfLines(const FoundMetric& found, const std::vector<Stretch>& stretches) const {
    if (!found.steps.empty() || stretches.size() < 2) return 1;
    if (WritersOf(found) > 1) return 1;
    const double of_steps = static_cast<double>(StepsOf(spec_)) / static_cast<double>(stretches.size());
    return std::min(of_steps, 1.0) / static_cast<double>(spec_.ranks);
  }

  // A single value need not be a mean.
  double StepsFor(const FoundMetric& found, const std::vector<Stretch>& stretches, size_t at) const {
    if (stretches.size() == 1) return 1;
    return static_cast<double>(stretches[at].steps) / static_cast<double>(WritersOf(found));
  }

  Clocked ClockedTimes(const FoundMetric& found, bool is_mean) const {
    Clocked clocked;
    const std::vector<Stretch> stretches = Stretches(found);
    const std::vector<double> shortest = ShortestTimes(found, stretches);
    const double share = is_mean ? 1 : ShareOfLines(found, stretches);
    for (size_t i = 0; i < stretches.size(); ++i) {
      const double steps = is_mean ? static_cast<double>(StepsDone()) : StepsFor(found, stretches, i);
      clocked.said_ns += stretches[i].value * steps;
      clocked.least_ns += shortest[i] * steps * share;
    }
    clocked.what = is_mean ? fmt::format("{} steps of its {} each", StepsDone(), found.metric->figure->name)
                           : fmt::format("its {} step times", stretches.size());
    return clocked;
  }

  Clocked ClockedRate(const FoundMetric& found) const {
    Clocked clocked;
    const std::vector<Stretch> stretches = Stretches(found);
    std::vector<double> rates;
    for (const Stretch& stretch : stretches) rates.push_back(stretch.value);
    const double half = HalfOfLastPlace(rates);
    const bool is_one = Logged(found).size() == 1;
    const double share = ShareOfLines(found, stretches);
    double steps_in_all = 0;
    for (size_t i = 0; i < stretches.size(); ++i) {
      const double steps =
          is_one && found.steps.empty() ? static_cast<double>(StepsDone()) : StepsFor(found, stretches, i);
      const double tokens = static_cast<double>(result_.tokens_per_step) * steps / PerRank(found);
      clocked.said_ns += tokens / stretches[i].value * 1e9;
      clocked.least_ns += tokens / (stretches[i].value + half) * 1e9 * share;
      steps_in_all += steps;
    }
    clocked.what = fmt::format("the tokens of {:.0f} steps at its tokens_per_s", steps_in_all);
    return clocked;
  }

  // Returns the final value of a mean over the whole run.
  static FoundMetric LastOf(const FoundMetric& mean) {
    FoundMetric last = mean;
    last.all.clear();
    last.steps.clear();
    last.covers.clear();
    last.values = {mean.values.back()};
    return last;
  }

  std::vector<Clocked> AllClocked() const {
    std::vector<Clocked> all;
    const FoundMetric* times = Find("step_time");
    const Take take = times == nullptr ? Take::kSeries : times->metric->take;
    // A largest value or a sum says nothing about each step.
    if (times != nullptr && take != Take::kMax && take != Take::kMin && take != Take::kSum) {
      const bool is_one = Logged(*times).size() == 1 && times->steps.empty();
      all.push_back(ClockedTimes(*times, is_one));
    }
    if (const FoundMetric* mean = Find("mean_step_time")) {
      all.push_back(ClockedTimes(LastOf(*mean), /*is_mean=*/true));
    }
    if (const FoundMetric* rate = Find("tokens_per_s")) {
      all.push_back(ClockedRate(IsMeanRate(*rate) ? LastOf(*rate) : *rate));
    }
    return all;
  }

  // Ridgeline started the process, so its steps cannot take longer than it lived.
  std::string PastItsLife() const {
    if (life_ns_ <= 0) return {};
    const double limit_ns = kLongerThanLife * static_cast<double>(life_ns_) + static_cast<double>(kLifeSlackNs);
    for (const Clocked& clocked : AllClocked()) {
      if (clocked.least_ns <= limit_ns) continue;
      return fmt::format("its times cannot be true: {} come to {}, and the process lived for {}", clocked.what,
                         FormatDuration(static_cast<int64_t>(std::min(clocked.said_ns, 9e18))),
                         FormatDuration(life_ns_));
    }
    return {};
  }

  void AskForUnit() {
    if (life_ns_ <= 0) return;
    for (const Clocked& clocked : AllClocked()) {
      if (clocked.said_ns <= 0) continue;
      if (clocked.said_ns * kShareOfLife < static_cast<double>(life_ns_)) {
        result_.evidence[kUnitEvidence] =
            fmt::format("{} come to {}, and the process lived for {}: is the unit right?", clocked.what,
                        FormatDuration(static_cast<int64_t>(clocked.said_ns)), FormatDuration(life_ns_));
      }
      return;
    }
  }

  // Compares a per-rank rate with the step's time. The reading has already compared a rate of all ranks.
  std::string RateAgainstTime() const {
    const FoundMetric* rate = Find("tokens_per_s", "tokens/s/GPU");
    if (rate != nullptr && IsMeanRate(*rate)) {
      const FoundMetric* times = Find("step_time");
      const double all = rate->values.back() * static_cast<double>(spec_.ranks);
      return times == nullptr ? "" : MeanRateAgainstTimes(*rate, all, *times, result_.tokens_per_step);
    }
    const std::vector<Stretch> steady = rate == nullptr ? std::vector<Stretch>() : Steady(*rate);
    if (steady.empty() || result_.step_ns.median_ns == 0) return {};
    const double all = MedianIn(steady) * static_cast<double>(spec_.ranks);
    const double follows =
        static_cast<double>(result_.tokens_per_step) / (static_cast<double>(result_.step_ns.median_ns) * 1e-9);
    const double rounded = RoundedShare("tokens_per_s") + RoundedShare("step_time");
    if (std::abs(all - follows) <= (kRatesAgree + rounded) * follows) return {};
    return fmt::format("tokens_per_s is {} on each of {} ranks, but {} tokens in a step of {} are {} on each",
                       FormatCount(MedianIn(steady)), spec_.ranks, result_.tokens_per_step,
                       FormatDuration(result_.step_ns.median_ns),
                       FormatCount(follows / static_cast<double>(spec_.ranks)));
  }

  double RoundedShare(std::string_view name) const {
    const FoundMetric* found = Find(name);
    return found == nullptr ? 0 : trainers::RoundedShare(*found);
  }

  // Returns why it trained another model than the spec's; empty if nothing says so.
  std::string OtherModel() const {
    if (trainer_.checks_parameters) {
      if (std::string other = OtherParameters(); !other.empty()) return other;
    }
    return trainer_.checks_flops ? OtherFlops() : "";
  }

  std::string OtherParameters() const {
    const auto expected = static_cast<double>(CountParameters(spec_));
    if (expected <= 0) return {};
    const auto printed = static_cast<double>(result_.parameters);
    // The first and the last stage of a pipeline each hold the weights that embedding and head share.
    const double twice = spec_.tied_head && spec_.pipeline_parallel > 1
                             ? static_cast<double>(spec_.vocab) * static_cast<double>(spec_.hidden)
                             : 0;
    const double slack = std::max(kParametersAgree * expected, RoundedShare("parameters") * printed);
    if (expected > 0 && printed > 0 && (printed < expected - slack || printed > expected + twice + slack)) {
      return fmt::format("it trained another model: it says {} parameters, and {} has {}", FormatCount(printed),
                         spec_.model, FormatCount(expected));
    }
    const double trainable = Single(kTrainable).value_or(0);
    if (trainable <= (1 + kParametersAgree) * expected) return {};
    return fmt::format("it trained another model: it says {} trainable parameters, and {} has {} in all",
                       FormatCount(trainable), spec_.model, FormatCount(expected));
  }

  std::string OtherFlops() const {
    const std::optional<double> tflops = Typical("tflops_per_gpu");
    double work = Single("flops_per_step").value_or(0) / static_cast<double>(spec_.ranks);
    if (work == 0 && tflops) work = *tflops * 1e12 * static_cast<double>(result_.step_ns.median_ns) * 1e-9;
    if (work == 0 || result_.flops.model_causal <= 0) return {};
    const double rounded = tflops && *tflops > 0 ? RoundedShare("tflops_per_gpu") * work : 0;
    if (work + rounded >= kLeastOfFlops * result_.flops.model_causal &&
        work - rounded <= kMostOfFlops * result_.flops.model_non_causal) {
      return {};
    }
    return fmt::format(
        "it trained another model: it says {} FLOPs a step on each rank, and a step of {} "
        "takes {}",
        FormatCount(work), spec_.model, FormatCount(result_.flops.model_causal));
  }

  // Figures that have a field of their own in a result.
  static constexpr std::string_view kTrainable = "trainable_parameters";
  static constexpr std::string_view kTaken[] = {
      "step_time", "mean_step_time",  "tokens_per_s", "loss", "grad_norm",      "device_peak",    "device_used",
      "host_peak", "device_reserved", "parameters",   "mfu",  "flops_per_step", "tflops_per_gpu", "version"};

  const Trainer& trainer_;
  const Reading& reading_;
  const RunSpec& spec_;
  const int64_t life_ns_;
  RunResult result_;
};

}  // namespace

RunResult ResultOf(const Trainer& trainer, const Reading& reading, const RunSpec& spec, int64_t life_ns) {
  return Maker(trainer, reading, spec, life_ns).Make();
}

}  // namespace ridgeline::trainers
