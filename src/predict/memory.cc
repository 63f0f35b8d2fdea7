#include "predict/memory.h"

#include <algorithm>

#include "engine/memory/planner.h"
#include "engine/step/program.h"

namespace ridgeline {
namespace {

constexpr int64_t kFewMicroSteps = 3;

// Tokens' numbers and their targets, of all micro-steps, each in one storage.
int64_t BytesOfTokens(const RunSpec& spec) {
  if (spec.vocab == 0) return 0;
  return 2 * AlignUp(spec.grad_accumulation * spec.batch_size * spec.seq_length * int64_t{sizeof(int32_t)});
}

}  // namespace

RunSpec WithFewMicroSteps(const RunSpec& spec) {
  RunSpec few = spec;
  few.grad_accumulation = std::min(spec.grad_accumulation, kFewMicroSteps);
  return few;
}

std::optional<MemoryForecast> WithAllMicroSteps(const MemoryForecast& few, const RunSpec& spec) {
  if (spec.grad_accumulation <= kFewMicroSteps) return few;
  if (spec.ranks > 1) return std::nullopt;
  const int64_t more = BytesOfTokens(spec) - BytesOfTokens(WithFewMicroSteps(spec));
  MemoryForecast all = few;
  all.planned_peak_bytes += more;
  all.by_category[std::string(CategoryName(Category::kData))] += more;
  return all;
}

MemoryForecast PredictMemory(const RunSpec& spec) {
  const auto forecast_of = [](const RunSpec& traced) -> MemoryForecast {
    const StepProgram program = BuildStep(traced);
    return {program.layout.slab_bytes, program.layout.by_category};
  };
  const std::optional<MemoryForecast> all = WithAllMicroSteps(forecast_of(WithFewMicroSteps(spec)), spec);
  return all ? *all : forecast_of(spec);
}

}  // namespace ridgeline
