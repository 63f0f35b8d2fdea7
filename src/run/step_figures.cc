#include "run/step_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "run/parallelism.h"

namespace ridgeline {
namespace {

// Computes figures from the times of steps, of which there is at least one.
void FillStepTimes(std::vector<int64_t> times_ns, StepTimes& to) {
  std::sort(times_ns.begin(), times_ns.end());
  const size_t n = times_ns.size();
  to.median_ns = n % 2 == 1 ? times_ns[n / 2] : std::midpoint(times_ns[n / 2 - 1], times_ns[n / 2]);
  to.p95_ns = times_ns[static_cast<size_t>(std::ceil(0.95 * static_cast<double>(n))) - 1];
  double mean = 0;
  for (const int64_t ns : times_ns) mean += static_cast<double>(ns) / static_cast<double>(n);
  double variance = 0;
  for (const int64_t ns : times_ns) {
    variance += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean) / static_cast<double>(n);
  }
  to.cv = mean > 0 ? std::sqrt(variance) / mean : 0;
}

// From the tokens per step and the result's times; 0 if these are missing.
Throughput ThroughputOf(const RunResult& result) {
  const auto tokens = static_cast<double>(result.tokens_per_step);
  Throughput throughput;
  if (result.step_ns.median_ns > 0) {
    throughput.steady_tokens_per_s = tokens / (static_cast<double>(result.step_ns.median_ns) * 1e-9);
  }
  double all_ns = 0;
  for (const int64_t ns : result.step_ns.all_ns) all_ns += static_cast<double>(ns);
  if (all_ns > 0) {
    throughput.cold_tokens_per_s = tokens * static_cast<double>(result.step_ns.all_ns.size()) / (all_ns * 1e-9);
  }
  return throughput;
}

}  // namespace

int64_t TokensAStep(const RunSpec& spec, int64_t data_parallel) {
  int64_t tokens = spec.batch_size;
  for (const int64_t factor : {spec.seq_length, spec.grad_accumulation, data_parallel}) {
    if (__builtin_mul_overflow(tokens, factor, &tokens)) return std::numeric_limits<int64_t>::max();
  }
  return tokens;
}

int64_t TokensAStep(const RunSpec& spec) { return TokensAStep(spec, DataParallelRanks(spec)); }

std::string SizeProblem(const RunSpec& s) {
  const auto factor = [](int64_t value) { return static_cast<double>(value); };
  const double tokens = factor(s.batch_size) * factor(s.seq_length);
  const int64_t data_parallel = DataParallelRanks(s);
  const double of_a_step = tokens * factor(s.grad_accumulation) * factor(data_parallel);
  constexpr double kMostTokens = 1e15;
  if (of_a_step > kMostTokens) {
    return fmt::format(
        "batch_size {} x seq_length {} x grad_accumulation {} x {} {} are {:.2g} tokens a step; the limit "
        "is {:.0g}",
        s.batch_size, s.seq_length, s.grad_accumulation, data_parallel == s.ranks ? "ranks" : "data-parallel ranks",
        data_parallel, of_a_step, kMostTokens);
  }
  // An upper bound: more than any layer keeps, in any format, plus the part of the logits that is held at a time.
  const double width = factor(s.hidden) + factor(s.ffn) + factor(s.heads) * factor(s.head_dim);
  const double bytes = tokens * (64 * width * factor(s.layers) + factor(s.vocab) / 128);
  constexpr double kMostBytes = 4e18;
  if (bytes > kMostBytes) {
    return fmt::format(
        "batch_size {} x seq_length {} tokens through {} layers as wide as these take exabytes, which no "
        "machine has",
        s.batch_size, s.seq_length, s.layers);
  }
  return {};
}

void FillStepFigures(std::vector<int64_t> measured_ns, RunResult& result) {
  if (!measured_ns.empty()) {
    result.measured_steps = std::ssize(measured_ns);
    FillStepTimes(std::move(measured_ns), result.step_ns);
  }
  result.throughput = ThroughputOf(result);
}

void DeriveStepFigures(const RunSpec& spec, RunResult& result) {
  if (result.tokens_per_step == 0) result.tokens_per_step = TokensAStep(spec);
  const std::vector<int64_t>& all = result.step_ns.all_ns;
  const auto warmup = std::min<int64_t>(static_cast<int64_t>(all.size()), spec.warmup_steps);
  StepTimes times;
  if (std::vector<int64_t> measured(all.begin() + warmup, all.end()); !measured.empty()) {
    if (result.measured_steps == 0) result.measured_steps = std::ssize(measured);
    FillStepTimes(std::move(measured), times);
  }
  if (result.step_ns.median_ns == 0) {
    result.step_ns.median_ns = times.median_ns;
    result.step_ns.cv = times.cv;
  }
  if (result.step_ns.p95_ns == 0) result.step_ns.p95_ns = times.p95_ns;
  const Throughput throughput = ThroughputOf(result);
  if (result.throughput.steady_tokens_per_s == 0) {
    result.throughput.steady_tokens_per_s = throughput.steady_tokens_per_s;
  }
  if (result.throughput.cold_tokens_per_s == 0) result.throughput.cold_tokens_per_s = throughput.cold_tokens_per_s;
}

}  // namespace ridgeline
