#include "run/disturbance.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "run/gpu_limits.h"

namespace ridgeline {
namespace {

std::string Counted(int64_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

void AddGpu(const GpuFigures& gpu, std::vector<std::string>& words) {
  if (const double share = gpu.throttled_share.value_or(0); share > kThrottledShare) {
    const std::string what = WhatThrottled(gpu);
    words.push_back(fmt::format("its GPU was throttled in {:.0f} % of its measured steps{}", 100 * share,
                                what.empty() ? "" : fmt::format(" ({})", what)));
  }
  const int64_t held = gpu.others_bytes.value_or(0);
  if (const int64_t others = gpu.others.value_or(0); others > 0) {
    words.push_back(fmt::format("{} on its GPU", Counted(others, "other process", "other processes")));
  } else if (held > kDisturbingGpuBytes) {
    words.push_back(fmt::format("others held {} of its GPU's memory", FormatBytes(held)));
  }
  if (const int64_t errors = gpu.ecc_uncorrected.value_or(0); errors > 0) {
    words.push_back(fmt::format("{} of its GPU's memory", Counted(errors, "uncorrected error", "uncorrected errors")));
  }
}

}  // namespace

std::string Disturbance(const RunResult& result) {
  std::vector<std::string> words;
  if (result.cores.others_share > kDisturbingShare) {
    words.push_back(fmt::format("others took {:.0f} % of its cores' time", 100 * result.cores.others_share));
  }
  if (const int64_t times = result.cores.throttles; times > 0) {
    words.push_back("throttled " + Counted(times, "time", "times"));
  }
  AddGpu(result.gpu, words);
  return Join(words, ", ");
}

}  // namespace ridgeline
