#include "predict/memory.h"

#include "engine/step/program.h"

namespace ridgeline {

MemoryForecast PredictMemory(const RunSpec& spec) {
  const StepProgram program = BuildStep(spec);
  return {program.layout.slab_bytes, program.layout.by_category};
}

}  // namespace ridgeline
