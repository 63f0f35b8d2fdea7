#include "predict/memory_forecast.h"

#include <algorithm>

#include "engine/memory/planner.h"
#include "engine/step/program.h"

namespace ridgeline::predict {
namespace {

constexpr int64_t kFewMicroSteps = 3;

// Bytes of the token numbers and of their targets, of all micro-steps. Each of the two has one storage.
int64_t BytesOfTokens(const RunSpec& spec) {
  if (spec.vocab == 0) return 0;
  return 2 * engine::AlignUp(spec.grad_accumulation * spec.batch_size * spec.seq_length * int64_t{sizeof(int32_t)});
}

}  // namespace

RunSpec WithFewMicroSteps(const RunSpec& spec) {
  RunSpec few = spec;
  if (spec.ranks == 1) few.grad_accumulation = std::min(spec.grad_accumulation, kFewMicroSteps);
  return few;
}

MemoryForecast WithAllMicroSteps(MemoryForecast few, const RunSpec& spec) {
  const int64_t more = BytesOfTokens(spec) - BytesOfTokens(WithFewMicroSteps(spec));
  if (more == 0) return few;
  few.planned_peak_bytes += more;
  few.by_category[std::string(engine::CategoryName(engine::Category::kData))] += more;
  return few;
}

MemoryForecast PredictMemory(const RunSpec& spec) {
  const engine::StepProgram program = engine::BuildStep(WithFewMicroSteps(spec));
  return WithAllMicroSteps({program.layout.slab_bytes, program.layout.by_category}, spec);
}

}  // namespace ridgeline::predict
