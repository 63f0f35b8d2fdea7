#include "stats/steady.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/median.h"

namespace ridgeline::stats {
namespace {

constexpr size_t kBatch = 5;  // values
constexpr size_t kFewestBatches = 4;

// The values minus their mean.
std::vector<double> Centred(std::span<const double> values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> centred(values.begin(), values.end());
  for (double& value : centred) value -= mean;
  return centred;
}

std::vector<double> BatchMeans(std::span<const double> values) {
  std::vector<double> means;
  for (size_t at = 0; at + kBatch <= values.size(); at += kBatch) {
    const auto batch = values.subspan(at, kBatch);
    means.push_back(std::accumulate(batch.begin(), batch.end(), 0.0) / static_cast<double>(kBatch));
  }
  return means;
}

}  // namespace

size_t WarmUp(std::span<const double> values) {
  if (values.size() < kFewestBatches * kBatch) return 0;
  const std::vector<double> batches = Centred(BatchMeans(values));
  size_t best = 0;
  double least = INFINITY;
  double sum = 0;
  double squares = 0;
  for (size_t first = batches.size(); first-- > 0;) {
    sum += batches[first];
    squares += batches[first] * batches[first];
    const auto kept = static_cast<double>(batches.size() - first);
    const double error = std::max(0.0, squares - sum * sum / kept) / (kept * kept);
    if (first > batches.size() / 2 || error > least) continue;
    least = error;
    best = first;
  }
  return best * kBatch;
}

double CorrelationTime(std::span<const double> values) {
  if (values.size() < 2) return 1;
  const std::vector<double> centred = Centred(values);
  const auto covariance = [&](size_t lag) {
    return std::inner_product(centred.begin() + static_cast<std::ptrdiff_t>(lag), centred.end(), centred.begin(), 0.0);
  };
  const double variance = covariance(0);
  if (variance <= 0) return 1;
  double time = -1;
  for (size_t lag = 0; lag + 1 < centred.size(); lag += 2) {
    const double pair = (covariance(lag) + covariance(lag + 1)) / variance;
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return std::max(1.0, time);
}

std::optional<SteadySteps> FindSteadySteps(std::span<const double> step_times) {
  if (step_times.empty()) return std::nullopt;
  std::vector<double> logs;
  logs.reserve(step_times.size());
  for (const double time : step_times) {
    if (!std::isfinite(time) || time <= 0) return std::nullopt;
    logs.push_back(std::log(time));
  }
  SteadySteps steady;
  steady.warm_up = WarmUp(logs);
  const std::span<double> kept = std::span(logs).subspan(steady.warm_up);
  steady.correlation_time = CorrelationTime(kept);
  steady.effective_size = static_cast<double>(kept.size()) / steady.correlation_time;
  steady.log_median = MedianOf(kept);
  return steady;
}

}  // namespace ridgeline::stats
