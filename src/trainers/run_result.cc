#include "trainers/run_result.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/presets.h"
#include "run/result.h"
#include "run/sense.h"
#include "run/step_figures.h"
#include "run/trainer_result.h"
#include "stats/median.h"

namespace ridgeline {
namespace {

class Maker {
 public:
  Maker(const Reading& reading, const RunSpec& spec) : reading_(reading), spec_(spec) {}

  RunResult Make(const Trainer& trainer) {
    result_.tokens_per_step = TokensAStep(trainer, spec_);
    result_.communicator = spec_.communicator;
    TakeTimes();
    TakeSeries("loss", result_.loss);
    TakeSeries("grad_norm", result_.grad_norm);
    result_.memory.device_peak_bytes = static_cast<int64_t>(Single("device_peak").value_or(0));
    result_.memory.rss_peak_bytes = static_cast<int64_t>(Single("host_peak").value_or(0));
    result_.parameters = static_cast<int64_t>(Single("parameters").value_or(0));
    result_.flops = ModelFlops(spec_, DataParallelRanks(trainer, spec_));
    if (const FoundMetric* version = Find("version")) result_.environment["version"] = version->text;
    result_.environment["trainer"] = trainer.name;
    if (result_.memory.rss_peak_bytes > 0) result_.evidence["memory_from"] = "its own words";
    if (result_.memory.device_peak_bytes > 0) result_.evidence["device_memory_from"] = "its own words";
    if (Find("step_time") != nullptr) {
      result_.evidence["step_times_found"] = std::to_string(Find("step_time")->values.size());
    }
    TakeEnd(trainer);
    return std::move(result_);
  }

 private:
  const FoundMetric* Find(std::string_view name, std::string_view unit = {}) const {
    const auto it = std::find_if(reading_.found.begin(), reading_.found.end(), [&](const FoundMetric& found) {
      return found.metric->figure->name == name && (unit.empty() || found.metric->unit->kept == unit);
    });
    return it == reading_.found.end() ? nullptr : &*it;
  }

  // One value of the whole run: the last of a series.
  std::optional<double> Single(std::string_view name) const {
    const FoundMetric* found = Find(name);
    return found == nullptr ? std::nullopt : std::optional(found->values.back());
  }

  // A figure's values at the measured steps.
  std::vector<double> Measured(const FoundMetric& found) const {
    const std::vector<double>& values = found.values;
    if (values.size() == 1) return values;
    std::vector<double> measured;
    if (!found.steps.empty()) {
      // Its first step is 0 or 1 to it. A value that it logs every few steps is of all since the one before.
      const int64_t covered = std::max<int64_t>(found.steps[1] - found.steps[0], 1);
      const int64_t before = std::min<int64_t>(found.steps.front(), 1) + spec_.warmup_steps + covered - 1;
      for (size_t i = 0; i < values.size(); ++i) {
        if (found.steps[i] >= before) measured.push_back(values[i]);
      }
    } else {
      const double share = static_cast<double>(spec_.warmup_steps) / static_cast<double>(StepsOf(spec_));
      const auto left_out = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
      measured.assign(values.begin() + static_cast<int64_t>(std::min(std::max<size_t>(left_out, 1), values.size() - 1)),
                      values.end());
    }
    return measured.empty() ? values : measured;
  }

  double MeasuredMedian(const FoundMetric& found) const {
    std::vector<double> values = Measured(found);
    return MedianOf(values);
  }

  void TakeTimes() {
    if (const std::optional<double> mean_ns = Single("mean_step_time"); mean_ns && *mean_ns > 0) {
      result_.throughput.cold_tokens_per_s = static_cast<double>(result_.tokens_per_step) / (*mean_ns * 1e-9);
    }
    const FoundMetric* times = Find("step_time");
    if (times != nullptr && std::ssize(times->values) == StepsOf(spec_) && times->values.size() > 1) {
      for (const double ns : times->values) result_.step_ns.all_ns.push_back(static_cast<int64_t>(ns));
      DeriveStepFigures(spec_, result_);
      return;
    }
    if (times != nullptr) {
      std::vector<int64_t> measured_ns;
      for (const double ns : Measured(*times)) measured_ns.push_back(static_cast<int64_t>(ns));
      const double cold = result_.throughput.cold_tokens_per_s;
      FillStepFigures(std::move(measured_ns), result_);
      if (cold > 0) result_.throughput.cold_tokens_per_s = cold;
      return;
    }
    if (const FoundMetric* rate = Find("tokens_per_s", "tokens/s")) {
      result_.throughput.steady_tokens_per_s = MeasuredMedian(*rate);
    } else if (const FoundMetric* of_one = Find("tokens_per_s", "tokens/s/GPU")) {
      result_.throughput.steady_tokens_per_s = MeasuredMedian(*of_one) * static_cast<double>(spec_.ranks);
    }
  }

  // As far as it is a value a step.
  void TakeSeries(std::string_view name, std::vector<double>& to) const {
    const FoundMetric* found = Find(name);
    if (found != nullptr && found->metric->take == Take::kSeries && std::ssize(found->values) <= StepsOf(spec_)) {
      to = found->values;
    }
  }

  void TakeEnd(const Trainer& trainer) {
    const std::string see =
        fmt::format("`ridgeline trainers try {} --log LOG` shows what its definition finds", trainer.name);
    SetEnd(RunStatus::kCrashed, result_);
    if (reading_.end) {
      SetEnd(reading_.end->end, result_);
      if (result_.status != RunStatus::kOk) {
        result_.message = reading_.end->message;
        result_.hint = reading_.end->hint;
      }
      if (reading_.end->line > 0) result_.evidence["log_line"] = std::to_string(reading_.end->line);
    }
    if (result_.status != RunStatus::kOk) return;
    if (const std::string other = OtherModel(); !other.empty()) {
      End(RunStatus::kInvalid, other, "let its definition and its arguments say the same model as the sweep");
    } else if (!reading_.contradictions.empty()) {
      End(RunStatus::kCrashed, "its figures cannot all be true: " + reading_.contradictions.front(), see);
    } else if (const std::string many = TooMany(); !many.empty()) {
      End(RunStatus::kCrashed, many, see);
    } else {
      CheckSense(see);
    }
  }

  void End(RunStatus status, std::string message, std::string hint) {
    SetEnd(status, result_);
    result_.message = std::move(message);
    result_.hint = std::move(hint);
  }

  void CheckSense(const std::string& see) {
    try {
      CheckTrainerResult(spec_, result_, "its log");
    } catch (const Error& e) {
      End(RunStatus::kCrashed, e.message(), see);
      if (!reading_.missing.empty()) result_.message += "; not found: " + Join(reading_.missing, ", ");
    }
  }

  std::string TooMany() const {
    const FoundMetric* times = Find("step_time");
    if (times == nullptr || std::ssize(times->values) <= StepsOf(spec_)) return {};
    return fmt::format("its log has {} step times, and the point has {} steps, warm-up included", times->values.size(),
                       StepsOf(spec_));
  }

  // What says that it trained another model than the spec's; empty where nothing does.
  std::string OtherModel() const {
    const auto expected = static_cast<double>(CountParameters(spec_));
    const auto printed = static_cast<double>(result_.parameters);
    // The first and the last stage of a pipeline each have the weights that embedding and head share.
    const double twice = spec_.tied_head && spec_.pipeline_parallel > 1
                             ? static_cast<double>(spec_.vocab) * static_cast<double>(spec_.hidden)
                             : 0;
    const double slack = kParametersAgree * expected;
    if (printed > 0 && (printed < expected - slack || printed > expected + twice + slack)) {
      return fmt::format("it trained another model: it says {} parameters, and {} has {}", FormatCount(printed),
                         spec_.model, FormatCount(expected));
    }
    const std::optional<double> tflops = Single("tflops_per_gpu");
    double work = Single("flops_per_step").value_or(0) / static_cast<double>(spec_.ranks);
    if (work == 0 && tflops) work = *tflops * 1e12 * static_cast<double>(result_.step_ns.median_ns) * 1e-9;
    if (work == 0) return {};
    if (work >= kLeastOfFlops * result_.flops.model_causal && work <= kMostOfFlops * result_.flops.model_non_causal) {
      return {};
    }
    return fmt::format(
        "it trained another model: it says {} FLOPs a step on each rank, and a step of {} "
        "takes {}",
        FormatCount(work), spec_.model, FormatCount(result_.flops.model_causal));
  }

  const Reading& reading_;
  const RunSpec& spec_;
  RunResult result_;
};

}  // namespace

RunResult ResultOf(const Trainer& trainer, const Reading& reading, const RunSpec& spec) {
  return Maker(reading, spec).Make(trainer);
}

}  // namespace ridgeline
