#include "predict/time_model.h"

#include <algorithm>
#include <cmath>

#include "run/parallelism.h"
#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline::predict {

double RelativeCost(const RunSpec& spec) {
  const int64_t data_parallel = HasSeveralProcesses(spec) ? DataParallelRanks(spec) : 1;
  const auto tokens = static_cast<double>(spec.batch_size) * static_cast<double>(spec.seq_length) *
                      static_cast<double>(spec.grad_accumulation) * static_cast<double>(data_parallel);
  const auto steps = static_cast<double>(spec.warmup_steps) + static_cast<double>(spec.steps);
  // A virtual rank is one of those that share a model's products.
  const auto shared_by = static_cast<double>(HasSeveralProcesses(spec) ? 1 : spec.tensor_parallel);
  return static_cast<double>(CountParameters(spec)) * tokens * steps / shared_by;
}

void TimeModel::Add(std::vector<Sample>& to, double cost, double seconds) {
  if (!(cost > 0) || !(seconds > 0) || !std::isfinite(cost) || !std::isfinite(seconds)) return;
  const Sample sample{cost, seconds / cost};
  if (to.size() < kRemembered) {
    to.push_back(sample);
  } else {
    to[oldest_] = sample;
    oldest_ = (oldest_ + 1) % kRemembered;
  }
  seconds_per_cost_.reset();
}

void TimeModel::Assume(double cost, double seconds) {
  if (!measured()) Add(assumed_, cost, seconds);
}

void TimeModel::Took(double cost, double seconds) {
  if (!measured()) oldest_ = 0;
  Add(samples_, cost, seconds);
}

double TimeModel::Spread() const {
  const double middle = SecondsPerCost();
  if (middle == 0) return 1;
  std::vector<double> factors;
  for (const Sample& sample : known()) {
    factors.push_back(std::max(sample.seconds_per_cost / middle, middle / sample.seconds_per_cost));
  }
  std::sort(factors.begin(), factors.end());
  const size_t beyond = factors.size() / 10;  // one in ten may lie beyond
  const double spread = factors[factors.size() - 1 - beyond];
  return factors.size() < kFew ? std::max(spread, kFewSpread) : spread;
}

double TimeModel::SecondsPerCost() const {
  if (!seconds_per_cost_) {
    std::vector<Sample> sorted = known();
    std::sort(sorted.begin(), sorted.end(),
              [](const Sample& a, const Sample& b) { return a.seconds_per_cost < b.seconds_per_cost; });
    double all = 0;
    for (const Sample& sample : sorted) all += sample.cost;
    double below = 0;
    const auto middle = std::find_if(sorted.begin(), sorted.end(), [&](const Sample& sample) {
      below += sample.cost;
      return 2 * below >= all;
    });
    seconds_per_cost_ = middle == sorted.end() ? 0 : middle->seconds_per_cost;
  }
  return *seconds_per_cost_;
}

double TimeModel::Seconds(double cost, double limit_s) const {
  const double seconds = cost * SecondsPerCost();
  return limit_s > 0 && (seconds == 0 || seconds > limit_s) ? limit_s : seconds;
}

size_t TimeModel::FitWithin(double seconds, std::span<const double> costs, double limit_s) const {
  size_t count = 0;
  double sum_s = 0;
  for (const double cost : costs) {
    const double point_s = Seconds(cost, limit_s);
    sum_s += point_s;
    if (count > 0 && (point_s == 0 || sum_s > seconds)) break;
    ++count;
  }
  return count;
}

int64_t TimeModel::LeftNs(double cost, int64_t running_ns, int64_t parallel) const {
  const double work_ns = Seconds(cost) * 1e9 - static_cast<double>(running_ns);
  return static_cast<int64_t>(std::max(work_ns, 0.0) / static_cast<double>(std::max<int64_t>(parallel, 1)));
}

}  // namespace ridgeline::predict
