#include "predict/framework.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/families.h"
#include "run/fields.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline::predict {
namespace {

// Weights of a factor of e in each size, beside 1 for what differs at the same size.
constexpr double kWidensByTokens = 1.2;
constexpr double kWidensByRanks = 0.4;
constexpr double kWidensByParameters = 0.2;
// The sizes of the published rows, of their ladders, and of this engine's steps on an H200.
constexpr StepSize kSmallestOfRows = {.tokens = 2048, .ranks = 1, .parameters = 1e9};
constexpr StepSize kLargestOfRows = {.tokens = 32768, .ranks = 2048, .parameters = 71e9};

constexpr Checkpointing kEveryLayer{Checkpointing::Policy::kFull};

double BytesOfNumber(const RunSpec& spec) {
  return spec.precision == Precision::kFp32 || spec.precision == Precision::kTf32 ? 4 : 2;
}

// Bytes for each element of an operand that a product of quantized weights keeps: the codes of its rows and of its
// columns, with their scales. Without quantization, the numbers themselves, once.
double BytesOfOperand(const RunSpec& spec) {
  if (spec.precision == Precision::kFp8) return 2;
  if (spec.precision == Precision::kMxfp8) return 2 * (1 + 1.0 / 32);
  if (spec.precision == Precision::kNvfp4) return 2 * (0.5 + 1.0 / 16);
  return BytesOfNumber(spec);
}

double BytesOfLayer(const KeptOfLayer& kept, const RunSpec& s) {
  const double tokens = static_cast<double>(s.batch_size) * static_cast<double>(s.seq_length);
  const double number = BytesOfNumber(s);
  const double operand = BytesOfOperand(s);
  const auto hidden = static_cast<double>(s.hidden);
  const auto ffn = static_cast<double>(s.ffn);
  const double kv = static_cast<double>(s.kv_heads) * static_cast<double>(s.head_dim);
  const double of_mlp = FamilyOf(s).gated ? kept.gated_ffn : kept.ffn;
  const double masks = s.dropout > 0 ? kept.dropout_masks : 0;
  return tokens * (hidden * (kept.hidden * number + kept.hidden_operands * operand + masks) + kv * kept.kv * number +
                   ffn * (of_mlp * number + kept.ffn_operands * operand));
}

double PercentOf(double share) { return std::round(1000 * share) / 10; }

}  // namespace

bool PublishedEvidence::Backs(const std::string& gpu) const {
  return rows > 0 && std::ranges::find(gpus, gpu) != gpus.end();
}

std::string Correction::Text() const {
  std::string text = shares ? "shares learnt from" : fmt::format("corrected x {:.3f} by", factor);
  text += fmt::format(" {} ({})", CountOf(runs, "run"), from);
  if (error) text += fmt::format(", each from the others ±{:g} %", PercentOf(*error));
  if (typed) text += ", assumed";
  return text;
}

std::string Framework::Basis(const std::string& gpu) const {
  if (correction) {
    return fmt::format("{}: time {}, memory {}", is_ours() ? "predicted" : "estimated as " + name, correction->Text(),
                       plans                        ? "planned"
                       : memory_evidence.Backs(gpu) ? "by rows"
                                                    : "assumed");
  }
  if (is_ours()) return {};
  const auto part = [&](const char* what, const PublishedEvidence& evidence) {
    return evidence.Backs(gpu)
               ? fmt::format("{} ±{:g} % on {} published rows", what, PercentOf(evidence.error), evidence.rows)
               : fmt::format("{} assumed", what);
  };
  return fmt::format("estimated as {}: {}, {}", name, part("time", time_evidence), part("memory", memory_evidence));
}

StepSize SizeOfStep(const RunSpec& spec) {
  return {.tokens = static_cast<double>(spec.seq_length),
          .ranks = static_cast<double>(spec.ranks),
          .parameters = static_cast<double>(CountParameters(spec))};
}

double Widening(const StepSize& known, const StepSize& predicted) {
  const auto by = [](double weight, double a, double b) { return weight * std::log(b / a); };
  return std::hypot(1.0, by(kWidensByTokens, known.tokens, predicted.tokens),
                    std::hypot(by(kWidensByRanks, known.ranks, predicted.ranks),
                               by(kWidensByParameters, known.parameters, predicted.parameters)));
}

double Framework::Spread(const std::string& gpu, const StepSize& size) const {
  const double of_rows = [&] {
    if (is_ours()) return gpu == kGpuHere && size.ranks == 1 ? kSpreadHere : kSpreadOfGpu;
    if (time_evidence.rows > 0) return time_evidence.Backs(gpu) ? time_evidence.spread : kSpreadOfGpu;
    return std::ranges::find(kGpusOfRows, gpu) != std::end(kGpusOfRows) ? kSpreadOfProgram : kSpreadOfBoth;
  }();
  const StepSize nearest = {
      .tokens = std::clamp(size.tokens, kSmallestOfRows.tokens, kLargestOfRows.tokens),
      .ranks = std::clamp(size.ranks, kSmallestOfRows.ranks, kLargestOfRows.ranks),
      .parameters = std::clamp(size.parameters, kSmallestOfRows.parameters, kLargestOfRows.parameters)};
  double spread = std::pow(of_rows, Widening(nearest, size));
  if (!correction) return spread;
  for (const StepSize& known : correction->sizes) {
    spread = std::min(spread, std::pow(correction->spread, Widening(known, size)));
  }
  return spread;
}

std::string NotEstimated(const Framework& framework, const RunSpec& spec) {
  if (framework.is_ours()) return {};
  if (!FamilyOf(spec).priced || spec.experts > 0) {
    return fmt::format("{} is a model whose layers cannot be priced yet",
                       spec.model.empty() ? NameOf(spec.family) : spec.model);
  }
  for (const auto& [field, ranks] : {std::pair{"tensor_parallel", spec.tensor_parallel},
                                     {"pipeline_parallel", spec.pipeline_parallel},
                                     {"context_parallel", spec.context_parallel},
                                     {"expert_parallel", spec.expert_parallel}}) {
    if (ranks > 1) return fmt::format("{}: {} is not predicted yet", field, ranks);
  }
  for (const auto& [field, values] : framework.supports) {
    const std::string value = FieldText(spec, *FindField(field));
    if (std::ranges::find(values, value) == values.end()) {
      return fmt::format("{} is known with {}: {}, not {}", framework.name, field, Join(values, " or "), value);
    }
  }
  if (spec.checkpointing != Checkpointing() && !framework.recomputes.contains(NameOf(spec.checkpointing))) {
    return fmt::format("what {} computes again with checkpointing: {} is not known", framework.name,
                       spec.checkpointing);
  }
  RunSpec priced = AsPriced(framework, spec).first;
  if (const auto problems = CheckSpec(priced); !problems.empty()) return problems.front().message;
  if (const auto problems = BeyondTheEngine(priced); !problems.empty()) return problems.front().message;
  return {};
}

std::pair<RunSpec, Framework> AsPriced(const Framework& framework, const RunSpec& spec) {
  if (framework.is_ours()) return {spec, framework};
  std::pair<RunSpec, Framework> priced = {spec, framework};
  auto& [step, as] = priced;
  as.again = {0, 0, 0};
  if (const auto known = framework.recomputes.find(NameOf(spec.checkpointing)); known != framework.recomputes.end()) {
    as.again = known->second;
  }
  if (!framework.compile.empty() && framework.eager_passes > 0) {
    const auto field = spec.own.find(framework.compile);
    const bool another_trainer = spec.trainer != kOurTrainer;
    const bool compiles = field != spec.own.end() ? field->second == FieldValue(true) : !another_trainer;
    if (!compiles) as.passes = framework.eager_passes;
  }
  step.trainer = kOurTrainer;
  step.device = "meta";  // a point is priced for any device, whatever its own `device`
  step.own.clear();
  step.family = FamilyOf(spec).priced_as;
  step.checkpointing = as.again.any() ? kEveryLayer : Checkpointing();
  if (step.family != spec.family) {
    step.model.clear();
    step.parameters = step.active_parameters = 0;
    step.flops_per_token = 0;
    if (FamilyOf(step).learned_positions) step.positions = std::max(step.positions, step.seq_length);
  }
  if (!IsQuantized(step.precision)) step.scaling = "none";
  step.communicator.clear();
  if (step.shard == ShardMode::kFull) as.overlap = framework.overlap_full;
  if (step.shard_ranks == 1) {  // each rank has a copy
    step.shard_ranks = 0;
    step.shard = ShardMode::kNone;
  }
  Canonicalize(step);
  return priced;
}

int64_t PeakBytes(const Framework& framework, const RunSpec& s) {
  const FrameworkMemory& memory = framework.memory;
  const double number = BytesOfNumber(s);
  const auto parameters = static_cast<double>(CountParameters(s));
  const auto layers = static_cast<double>(s.layers);
  const auto ranks = static_cast<double>(ShardRanks(s));
  const double tokens = static_cast<double>(s.batch_size) * static_cast<double>(s.seq_length);
  const auto vocab = static_cast<double>(s.vocab);
  const double outside = vocab * static_cast<double>(s.hidden) * (s.tied_head ? 1 : 2);
  const double of_layer = (parameters - outside) / layers;

  const bool full = s.shard == ShardMode::kFull;
  const bool whole_in_a_step = s.shard == ShardMode::kGradients && memory.splits_weights;
  const auto split = [&](bool is_split) { return parameters / (is_split ? ranks : 1); };
  const double moments = memory.moments.Bytes(number) + (number == 2 ? memory.master.Bytes(number) : 0);
  double state =
      split(full || whole_in_a_step) * memory.weights.Bytes(number) + split(s.shard != ShardMode::kNone) * moments;
  const double gradients = split(full || s.shard == ShardMode::kGradients) * memory.gradients.Bytes(number);
  if (s.shard == ShardMode::kNone && s.ranks > 1) state += parameters * memory.buckets.Bytes(number);
  double whole = whole_in_a_step ? parameters * number : 0;
  if (full) {
    whole = of_layer * number * memory.gathered_layers;
    if (memory.gathers_head) whole += outside * number;
  }
  const double reduced = full || s.shard == ShardMode::kGradients ? of_layer * number * memory.reduced_layers : 0;

  const double of_one = BytesOfLayer(memory.kept, s);
  double kept = layers * of_one;
  double working = 0;  // what is computed again for the layer in its backward pass
  if (s.checkpointing == kEveryLayer) {
    kept = layers * number * tokens * static_cast<double>(s.hidden);
    working = of_one;
  } else if (s.checkpointing.policy == Checkpointing::Policy::kSelective) {
    kept = layers * BytesOfLayer(memory.kept_selective, s);
    working = of_one;
  }
  // Codes are kept from the forward pass to the backward pass. With full checkpointing, nothing lies between the two.
  const double codes = memory.keeps_codes && IsQuantized(s.precision) && s.checkpointing != kEveryLayer
                           ? parameters * BytesOfOperand(s)
                           : 0;
  const double logits = tokens * vocab * memory.logits;

  // The peak is when the loss is computed, when the first layer's backward pass runs, or after the last one's.
  const bool sums = s.grad_accumulation > 1 || !memory.frees_gradients;
  const double at_loss = state + (sums ? gradients : 0) + whole + codes + kept + logits;
  const double going_back = state + (sums ? gradients : 0) + whole + reduced + codes + kept + working;
  const double at_end = state + gradients + whole + reduced + codes + working;
  return std::llround(memory.fixed + memory.reserved * std::max({at_loss, going_back, at_end}));
}

}  // namespace ridgeline::predict
