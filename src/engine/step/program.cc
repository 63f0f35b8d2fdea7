#include "engine/step/program.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/optimizer.h"
#include "engine/recompute/policy.h"
#include "run/gpus.h"
#include "run/parallelism.h"
#include "run/presets.h"

namespace ridgeline::engine {

namespace {

// Layers times micro-steps: each has about 30 calls, and 32,768 of them take a gigabyte.
constexpr int64_t kMostLayerPasses = 1 << 17;

void RequireShortStep(const RunSpec& spec) {
  const int64_t passes = spec.layers * spec.grad_accumulation;
  if (passes <= kMostLayerPasses) return;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("a step of {} layers x {} micro-steps passes through {} layers, and {} are the most that are "
                          "planned",
                          spec.layers, spec.grad_accumulation, passes, kMostLayerPasses),
              "set a smaller grad_accumulation, or fewer layers");
}

// Codes of weights that are kept as codes are state of their own: delayed scaling made them with the scale of that
// time, and stochastic rounding cannot be repeated.
void AddCodes(StepProgram& program) {
  for (size_t p = 0; p < program.states.size(); ++p) {
    const std::string& name = program.shape.parameters[p].parts.front().name;
    const auto add = [&](const char* suffix, const Tensor& tensor) {
      if (tensor.defined()) program.other_state.push_back({name + suffix, tensor});
    };
    const ParameterState& state = program.states[p];
    add(".codes", state.rows.codes);
    add(".scales", state.rows.scales);
    add(".tensor_scale", state.rows.tensor_scale);
    add(".columns.codes", state.columns.codes);
    add(".columns.scales", state.columns.scales);
  }
}

DeviceDescription DeviceOf(const RunSpec& spec) {
  const Gpu* gpu = FindGpu(spec.gpu);
  return gpu == nullptr ? DeviceDescription{} : CudaDevice(gpu->compute_capability);
}

// Records a step. Returns the order in which it uses gathered weights.
UseOrder RecordStep(const RunSpec& spec, bool keep_gradients, int64_t rank, const UseOrder& uses,
                    StepProgram& program) {
  if (const auto beyond = BeyondTheEngine(spec); !beyond.empty()) {
    throw Error(ErrorKind::kInvalidInput, beyond.front().message);
  }
  RequireShortStep(spec);
  program.spec = spec;
  program.rank = rank;
  program.trace = Trace(DeviceOf(spec));
  program.shape = ShapeOf(spec, rank);
  const RunSpec& s = program.spec;
  program.recipe = &RecipeOf(s.precision, s.scaling, s.state_precision);
  const Recipe& recipe = *program.recipe;
  Trace& trace = program.trace;
  const int64_t tokens = program.tokens_per_micro_step();

  ParameterStoreOptions options;
  options.adam = {s.beta1, s.beta2, s.epsilon, s.weight_decay, s.optimizer == OptimizerKind::kAdamw};
  options.grad_clip = s.grad_clip;
  options.micro_steps = s.grad_accumulation;
  options.shard = s.shard;
  options.rank = rank;
  options.keep_gradients = keep_gradients;
  options.uses = uses;
  StepTensors& tensors = program.tensors;
  if (recipe.loss_scaled()) {
    tensors.loss_scale = options.loss_scale = trace.Persistent(DType::kF32, 1, kLossScaleState, Category::kData);
  }
  DelayedScales scales(trace, program.shape, s, recipe);
  options.quantized = QuantizedWeights(program.shape, s, recipe, scales);
  Flights flights(trace, MeshOf(s));
  TensorGroup group(trace, flights, s, rank);
  options.splits_tokens = group.splits_tokens();
  ParameterStore parameters(trace, flights, program.shape, recipe, options);

  tensors.loss = trace.Persistent(DType::kF32, 1, 1, Category::kData);
  if (program.shape.embedding >= 0) {
    tensors.ids = trace.Persistent(DType::kI32, s.grad_accumulation, tokens, Category::kData);
    tensors.targets = trace.Persistent(DType::kI32, s.grad_accumulation, tokens, Category::kData);
  }
  if (keep_gradients && program.shape.head >= 0) {
    tensors.logits =
        trace.Persistent(recipe.compute, program.tokens_per_step(), s.vocab / group.ranks(), Category::kLogits);
  }
  if (program.shape.rotary) {
    tensors.rope_table = trace.Persistent(DType::kF32, s.seq_length, s.head_dim, Category::kData);
  }

  Block block({trace, parameters, program.shape, s, recipe, scales, tensors.rope_table, group});
  EmbeddingAndHead embedding_and_head(trace, parameters, program.shape, s, recipe, tensors, group);
  LayerRunner layers(trace, parameters, block, s.layers, s.checkpointing);
  // The last micro-step ends after the updates, which quantize weights that are kept as codes.
  const auto end_micro_step = [&] {
    for (const DelayedScaling& scaling : scales.states()) parameters.MaxOverRanks(scaling.amax);
    scales.EndMicroStep();
  };
  Fill(trace, tensors.loss, 0);
  for (int64_t micro_step = 0; micro_step < s.grad_accumulation; ++micro_step) {
    if (micro_step > 0) end_micro_step();
    parameters.BeginMicroStep(micro_step);
    trace.SetPhase(Phase::kForward);
    const Tensor x = embedding_and_head.Input(micro_step);
    parameters.EndUse();
    const ResidualStream y = layers.Forward(micro_step, x);
    const Tensor d = embedding_and_head.LossAndGradient(micro_step, y);
    parameters.EndUse();
    layers.Backward(micro_step, d);
    embedding_and_head.InputBackward(micro_step, d);
    parameters.EndUse();
  }
  embedding_and_head.FinishLoss();
  parameters.FinishStep();
  end_micro_step();
  program.grad_norm = parameters.grad_norm();
  program.states = parameters.states();
  program.delayed_scaling = scales.states();
  if (tensors.loss_scale.defined()) program.other_state.push_back({"loss_scale", tensors.loss_scale});
  for (const DelayedScaling& scaling : program.delayed_scaling) {
    const std::string name = scaling.format == Format::kE4M3 ? "fp8.forward." : "fp8.backward.";
    program.other_state.push_back({name + "amax_history", scaling.history});
    program.other_state.push_back({name + "scale", scaling.scale});
  }
  AddCodes(program);
  return parameters.uses();
}

}  // namespace

StepProgram BuildStep(const RunSpec& spec, bool keep_gradients, int64_t rank) {
  StepProgram program = TraceStep(spec, keep_gradients, rank);
  program.layout = PlanLayout(program.trace);
  return program;
}

StepProgram TraceStep(const RunSpec& spec, bool keep_gradients, int64_t rank) {
  StepProgram program;
  UseOrder uses;
  if (ShardRanks(spec) > 1 && spec.shard == ShardMode::kFull) {  // the next weights are gathered ahead
    StepProgram ahead;
    uses = RecordStep(spec, keep_gradients, rank, {}, ahead);
  }
  RecordStep(spec, keep_gradients, rank, uses, program);
  return program;
}

FlopFigures CountFlops(const StepProgram& program) {
  FlopFigures flops = ModelFlops(program.spec);
  for (const OpCall& call : program.trace.calls()) flops.executed += call.cost.flops;
  return flops;
}

}  // namespace ridgeline::engine
