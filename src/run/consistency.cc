#include "run/consistency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/gpu_limits.h"
#include "run/gpu_peaks.h"
#include "run/presets.h"

namespace ridgeline {
namespace {

// The allowed difference between a stated throughput and tokens over time: a trainer may round its figures.
constexpr double kTolerance = 0.05;

// Steps of an earlier process, whose times this one need not know.
int64_t StepsBefore(const RunResult& result) {
  const auto said = result.evidence.find("resumed_from_step");
  if (said == result.evidence.end()) return 0;
  int64_t steps = 0;
  const std::string& text = said->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  return error == std::errc() && end == text.data() + text.size() ? std::max<int64_t>(steps, 0) : 0;
}

std::string OfSteps(const RunSpec& spec, const RunResult& r) {
  const int64_t steps = StepsOf(spec);
  // On GPUs, further blocks of steps are measured until measure.seconds have passed.
  const int64_t most = spec.device == "cuda" ? std::numeric_limits<int64_t>::max() : steps;
  const auto wrong_count = [&](const char* key, int64_t count) {
    return fmt::format("{} has {} numbers, and the point has {} steps, warm-up included", key, count, steps);
  };
  const int64_t times = std::ssize(r.step_ns.all_ns);
  const bool all_done = r.status == RunStatus::kOk && times > 0;
  if (times > most || (all_done && times < steps - StepsBefore(r))) return wrong_count("step_ns.all", times);
  if (std::ssize(r.loss) > most) return wrong_count("loss", std::ssize(r.loss));
  if (std::ssize(r.grad_norm) > most) return wrong_count("grad_norm", std::ssize(r.grad_norm));
  if (r.skipped_steps > most) {
    return fmt::format("skipped_steps is {}, and the point has {} steps", r.skipped_steps, steps);
  }
  if (r.measured_steps > most - spec.warmup_steps) {
    return fmt::format("measured_steps is {}, and the point has {} of them", r.measured_steps,
                       steps - spec.warmup_steps);
  }
  return {};
}

std::string OfTimes(const RunResult& r) {
  const int64_t median = r.step_ns.median_ns;
  const int64_t p95 = r.step_ns.p95_ns;
  if (median > 0 && p95 > 0 && p95 < median) {
    return fmt::format("step_ns.p95 is {}, and step_ns.median {}: more than half of the steps took longer", p95,
                       median);
  }
  if (!r.step_ns.all_ns.empty()) {
    const auto range = std::ranges::minmax_element(r.step_ns.all_ns);
    const auto outside = [&](int64_t ns) { return ns > 0 && (ns < *range.min || ns > *range.max); };
    for (const auto& [key, ns] : {std::pair("step_ns.median", median), std::pair("step_ns.p95", p95)}) {
      if (outside(ns)) return fmt::format("{} is {}, and the steps took {} to {}", key, ns, *range.min, *range.max);
    }
  }
  if (r.started_unix_ns > 0 && r.ended_unix_ns > 0 && r.ended_unix_ns < r.started_unix_ns) {
    return fmt::format("ended_unix_ns is {}, before started_unix_ns, {}", r.ended_unix_ns, r.started_unix_ns);
  }
  return {};
}

std::string OfThroughput(const RunResult& r) {
  if (r.tokens_per_step == 0) return {};
  const auto tokens = static_cast<double>(r.tokens_per_step);
  const auto wrong = [](const char* key, double given, double of_tokens, double ns) -> std::string {
    if (given == 0 || ns <= 0) return {};
    const double right = of_tokens / (ns * 1e-9);
    if (std::abs(given - right) <= kTolerance * right) return {};
    return fmt::format("{} is {:.6g}, and {:.6g} tokens in {:.6g} s are {:.6g}", key, given, of_tokens, ns * 1e-9,
                       right);
  };
  std::string steady = wrong("throughput.steady_tokens_per_s", r.throughput.steady_tokens_per_s, tokens,
                             static_cast<double>(r.step_ns.median_ns));
  if (!steady.empty()) return steady;
  double all_ns = 0;
  for (const int64_t ns : r.step_ns.all_ns) all_ns += static_cast<double>(ns);
  return wrong("throughput.cold_tokens_per_s", r.throughput.cold_tokens_per_s,
               tokens * static_cast<double>(r.step_ns.all_ns.size()), all_ns);
}

std::string OfMemory(const RunSpec& spec, const RunResult& r) {
  const MemoryFigures& m = r.memory;
  if (!m.device_peak_kind.empty() && m.device_peak_kind != kAllocated && m.device_peak_kind != kInUse &&
      m.device_peak_kind != kOfNvml) {
    return fmt::format("memory.device_peak_kind is '{}', and is one of {}, {} and {}",
                       ShortenToBytes(PrintableLine(m.device_peak_kind), 80), kAllocated, kInUse, kOfNvml);
  }
  if (m.planned_peak_bytes > 0 && !m.by_category.empty()) {
    // Subtracts, because the sum of many large numbers may overflow.
    int64_t left = m.planned_peak_bytes;
    for (const auto& [name, bytes] : m.by_category) left = bytes > left ? -1 : left - bytes;
    if (left != 0) {
      return fmt::format("memory.by_category does not sum to memory.planned_peak_bytes, {}", m.planned_peak_bytes);
    }
  }
  if (std::ssize(r.ranks) > spec.ranks) {
    return fmt::format("ranks has {} entries, and the point has {}", r.ranks.size(), spec.ranks);
  }
  for (const RankFigures& rank : r.ranks) {
    if (m.rss_peak_bytes == 0 || rank.rss_peak_bytes <= m.rss_peak_bytes) continue;
    return fmt::format("memory.rss_peak_bytes is {}, and a rank on {} had {}", m.rss_peak_bytes, rank.host,
                       rank.rss_peak_bytes);
  }
  // A trainer that reports an accelerator's memory may have its parameters there.
  const auto parameters = m.by_category.find("parameters");
  const bool held_them = r.status == RunStatus::kOk && spec.device == "cpu" && m.device_peak_bytes == 0;
  if (held_them && parameters != m.by_category.end() && m.rss_peak_bytes > 0 && m.rss_peak_bytes < parameters->second) {
    return fmt::format("memory.rss_peak_bytes is {}, and the parameters alone are planned with {}", m.rss_peak_bytes,
                       parameters->second);
  }
  return {};
}

std::string OfFlops(const RunResult& r) {
  if (r.flops.model_causal == 0 || r.flops.model_non_causal == 0) return {};
  if (r.flops.model_causal <= r.flops.model_non_causal * (1 + 1e-9)) return {};
  return fmt::format("flops.model_causal is {:.6g}, and flops.model_non_causal, which is more work, {:.6g}",
                     r.flops.model_causal, r.flops.model_non_causal);
}

// A rate needs no more FLOP/s than the GPU does at most. A trainer may multiply in 8 bits though the point says 16, as
// some do by a field of their own.
std::string OfPeak(const RunSpec& spec, const RunResult& r) {
  const auto peak = PeakFlops(spec.gpu, spec.precision);
  if (spec.device != "cuda" || !peak || r.tokens_per_step == 0) return {};
  const double most = std::max(*peak, *PeakFlops(spec.gpu, Precision::kFp8));
  const double flops = r.flops.model_causal > 0 ? r.flops.model_causal : ModelFlops(spec).model_causal;
  for (const auto& [key, rate] : {std::pair("steady_tokens_per_s", r.throughput.steady_tokens_per_s),
                                  std::pair("cold_tokens_per_s", r.throughput.cold_tokens_per_s)}) {
    const double needed = flops * rate / static_cast<double>(r.tokens_per_step);
    if (needed <= most) continue;
    return fmt::format(
        "throughput.{} is {:.6g}, which takes {:.0f} TFLOP/s of each GPU, and the most that {} does is {:.0f}: is a "
        "rate of all ranks taken for that of one GPU?",
        key, rate, needed / 1e12, spec.gpu, most / 1e12);
  }
  return {};
}

std::string OfGpu(const RunResult& r) {
  const GpuFigures& gpu = r.gpu;
  if (gpu.sm_clock_min_mhz && gpu.sm_clock_mhz && *gpu.sm_clock_min_mhz > *gpu.sm_clock_mhz * (1 + 1e-9)) {
    return fmt::format("gpu.sm_clock_min_mhz is {:.6g}, and gpu.sm_clock_mhz, their mean, {:.6g}",
                       *gpu.sm_clock_min_mhz, *gpu.sm_clock_mhz);
  }
  if (!gpu.clock_limits.empty() && !gpu.throttled_share) {
    return "gpu.clock_limits is given without gpu.throttled_share, which says what they cost";
  }
  if (gpu.throttled_share == 0.0 && !WhatThrottled(gpu).empty()) {
    return fmt::format("gpu.throttled_share is 0, and by gpu.clock_limits its clocks were held down by {}",
                       WhatThrottled(gpu));
  }
  return {};
}

}  // namespace

int64_t StepsOf(const RunSpec& spec) { return spec.warmup_steps + spec.steps * spec.repeats; }

std::string Contradiction(const RunSpec& spec, const RunResult& result) {
  for (const std::string& wrong : {OfSteps(spec, result), OfTimes(result), OfThroughput(result), OfMemory(spec, result),
                                   OfFlops(result), OfPeak(spec, result), OfGpu(result)}) {
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string TooFewSteps(const RunSpec& spec, const RunResult& result) {
  if (spec.device == "meta" || result.measured_steps >= spec.min_steps) return {};
  const bool is_steady = result.step_ns.median_ns > 0 || result.throughput.steady_tokens_per_s > 0;
  // Cold throughput is a figure, too, if nobody requests more steps.
  if (result.measured_steps == 0 && (is_steady || spec.min_steps == 1)) return {};
  return fmt::format("its steady figures are of {}, and measure: {{min_steps: {}}} asks for as many",
                     CountOf(result.measured_steps, "measured step"), spec.min_steps);
}

std::string MissingOfOk(const RunSpec& spec, const RunResult& result) {
  if (spec.device == "meta") return result.memory.planned_peak_bytes > 0 ? "" : "memory.planned_peak_bytes";
  const bool timed = result.step_ns.median_ns > 0 || result.throughput.steady_tokens_per_s > 0 ||
                     result.throughput.cold_tokens_per_s > 0;
  return timed ? "" : "step_ns.all, step_ns.median, throughput.steady_tokens_per_s or throughput.cold_tokens_per_s";
}

}  // namespace ridgeline
