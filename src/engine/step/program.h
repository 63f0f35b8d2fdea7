// The step program: forward, backward and optimizer of one step, recorded on the meta device.
#pragma once

#include <string>
#include <vector>

#include "engine/device/layout.h"
#include "engine/device/trace.h"
#include "engine/model/delayed_scales.h"
#include "engine/model/head.h"
#include "engine/model/parameter.h"
#include "engine/precision/recipe.h"
#include "engine/shard/parameter_store.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct StepProgram {
  RunSpec spec;
  int64_t rank = 0;  // the rank whose program it is
  ModelShape shape;
  const Recipe* recipe = nullptr;
  Trace trace;
  StepTensors tensors;
  Tensor grad_norm;  // (1, 1) fp32; undefined if no update waits for it
  std::vector<ParameterState> states;
  std::vector<DelayedScaling> delayed_scaling;  // empty in other recipes
  // Persistent tensors, besides the parameters', that one step leaves for the next (a loss scale, say). Checkpoint
  // files keep them under these names.
  std::vector<NamedTensor> other_state;
  Layout layout;

  int64_t tokens_per_micro_step() const { return spec.batch_size * spec.seq_length; }
  int64_t tokens_per_step() const { return tokens_per_micro_step() * spec.grad_accumulation; }  // of one rank
};

// Traces and plans a rank's step, for the spec's `gpu` or for CPUs. Takes milliseconds and allocates nothing but the
// record. `keep_gradients`: every parameter's gradient and the logits can be read after the step. Throws
// Error(kInvalidInput) if the engine lacks the precision. REQUIRES: the spec is canonical and checked.
StepProgram BuildStep(const RunSpec& spec, bool keep_gradients = false, int64_t rank = 0);

// The same without the plan, which takes most of the time: the layout is empty.
StepProgram TraceStep(const RunSpec& spec, bool keep_gradients = false, int64_t rank = 0);

// Matrix-product FLOPs of a step and rank. Model FLOPs are 3 x the forward pass's (Kaplan et al., 2020), with embedding
// lookups free and attention counted causally (s (s + 1) / 2 pairs) and over the whole square. `executed` is the
// trace's own sum.
FlopFigures CountFlops(const StepProgram& program);

}  // namespace ridgeline::engine
