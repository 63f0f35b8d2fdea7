#include "engine/model/head.h"

#include <algorithm>

#include "engine/ops/elementwise.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gemm.h"
#include "engine/ops/loss.h"
#include "engine/ops/norm.h"
#include "run/parallelism.h"

namespace ridgeline::engine {
namespace {

// Returns a multiple of the spec's chunk: the smallest one that keeps the number of chunks within its limit.
int64_t ChunkTokens(int64_t chunk, int64_t tokens) {
  const int64_t tokens_of_most = chunk * kMaxLogitsChunks;
  return chunk * std::max<int64_t>(1, (tokens + tokens_of_most - 1) / tokens_of_most);
}

}  // namespace

EmbeddingAndHead::EmbeddingAndHead(Trace& trace, ParameterAccess& parameters, const ModelShape& shape,
                                   const RunSpec& spec, const Recipe& recipe, const StepTensors& tensors,
                                   TensorGroup& group)
    : trace_(trace),
      parameters_(parameters),
      shape_(shape),
      spec_(spec),
      compute_(recipe.compute),
      tf32_(recipe.tf32),
      tensors_(tensors),
      tokens_(group.tokens()),
      group_(group) {}

Tensor EmbeddingAndHead::Input(int64_t micro_step) {
  trace_.SetLayer(-1);
  if (shape_.embedding < 0) {
    const Tensor x = trace_.Temporary(compute_, group_.own_tokens(), spec_.hidden, Category::kActivations);
    // Streams count down from the top, clear of those of dropouts, which count up.
    FillUniform(
        trace_, x,
        {static_cast<uint32_t>(0xffffffffU - static_cast<uint32_t>(micro_step)), group_.first_token() * spec_.hidden});
    return x;
  }
  // One rank has a token's row, and the others have zeros: the sum is exact.
  const Tensor x = trace_.Temporary(compute_, tokens_, spec_.hidden, Category::kActivations);
  const Tensor wpe = shape_.positions < 0 ? Tensor{} : parameters_.Weight(shape_.positions);
  Embedding(trace_, tensors_.ids.Rows(micro_step, 1), parameters_.Weight(shape_.embedding), wpe, x, spec_.seq_length,
            FirstOfVocabulary());
  return group_.Land(group_.Sum(x));
}

void EmbeddingAndHead::Loss(Tensor logits, Tensor targets) {
  const double scale = 1.0 / static_cast<double>(tokens_ * spec_.grad_accumulation);
  if (group_.ranks() == 1) return CrossEntropy(trace_, logits, targets, tensors_.loss, scale, tensors_.loss_scale);
  const Tensor part = trace_.Temporary(DType::kF32, 1, kNumbersOfLoss * logits.rows, Category::kWorkspace);
  LossStatistics(trace_, logits, targets, part, FirstOfVocabulary());
  CrossEntropyOfPart(trace_, logits, targets, group_.GatherParts(part), tensors_.loss, scale, FirstOfVocabulary(),
                     tensors_.loss_scale);
}

void EmbeddingAndHead::FinishLoss() {
  if (shape_.head < 0) group_.SumOverTokens(tensors_.loss);
}

Tensor EmbeddingAndHead::LossAndGradient(int64_t micro_step, const ResidualStream& in) {
  const auto& [x, sum] = in;
  trace_.SetLayer(-1);
  trace_.SetPhase(Phase::kForward);
  const int64_t own_tokens = group_.own_tokens();
  const Tensor d = trace_.Temporary(compute_, own_tokens, spec_.hidden, Category::kActivations);
  if (shape_.head < 0) {
    const double scale = static_cast<double>(DataParallelRanks(spec_)) / static_cast<double>(spec_.grad_accumulation);
    if (sum.defined()) DropoutAdd(trace_, sum.branch, sum.residual, x, sum.p, sum.stream);
    SumLoss(trace_, x, tensors_.loss, scale);
    Fill(trace_, d, scale, tensors_.loss_scale);
    return d;
  }

  const Tensor own = trace_.Temporary(compute_, own_tokens, spec_.hidden, Category::kActivations);
  const Tensor rstd = trace_.Temporary(DType::kF32, 1, own_tokens, Category::kActivations);
  Tensor mean;
  const Tensor weight = parameters_.Weight(shape_.final_norm.weight);
  if (shape_.final_norm.bias < 0) {
    RmsNorm(trace_, x, weight, own, rstd, spec_.norm_eps, sum);
  } else {
    mean = trace_.Temporary(DType::kF32, 1, own_tokens, Category::kActivations);
    LayerNorm(trace_, x, weight, parameters_.Weight(shape_.final_norm.bias), own, mean, rstd, spec_.norm_eps, sum);
  }

  // A chunk's logits become their own gradient. The weight's gradient and that of the chunk's input follow from it; the
  // latter takes its place in `normed`.
  const Tensor normed = group_.Land(group_.Gather(own));
  const Tensor head = parameters_.Weight(shape_.head);
  const Tensor targets = tensors_.targets.Rows(micro_step, 1);
  const int64_t chunk_tokens = ChunkTokens(spec_.logits_chunk, tokens_);
  for (int64_t first = 0; first < tokens_; first += chunk_tokens) {
    const int64_t rows = std::min(chunk_tokens, tokens_ - first);
    const Tensor chunk = normed.Rows(first, rows);
    const Tensor logits = trace_.Temporary(compute_, rows, head.rows, Category::kLogits);
    trace_.SetPhase(Phase::kForward);
    Gemm(trace_, chunk, Trans::kNo, head, Trans::kYes, logits, false, {}, tf32_);
    if (tensors_.logits.defined()) {
      const Tensor kept = tensors_.logits.Rows(micro_step * tokens_ + first, rows);
      Gemm(trace_, chunk, Trans::kNo, head, Trans::kYes, kept, false, {}, tf32_);
    }
    Loss(logits, targets.Cols(first, rows));
    trace_.SetPhase(Phase::kBackward);
    const auto dhead = parameters_.NextGradient(shape_.head);
    Gemm(trace_, logits, Trans::kYes, chunk, Trans::kNo, dhead.tensor, dhead.accumulate, {}, tf32_);
    Gemm(trace_, logits, Trans::kNo, head, Trans::kNo, chunk, false, {}, tf32_);
  }
  if (shape_.head != shape_.embedding) parameters_.GradientDone(shape_.head);
  const Tensor d_normed = group_.Land(group_.Sum(normed));

  const auto dweight = parameters_.NextGradient(shape_.final_norm.weight);
  if (shape_.final_norm.bias < 0) {
    RmsNormBackward(trace_, d_normed, x, weight, rstd, d, true, dweight.tensor, dweight.accumulate);
  } else {
    const auto dbias = parameters_.NextGradient(shape_.final_norm.bias);
    LayerNormBackward(trace_, d_normed, x, weight, mean, rstd, d, true, dweight.tensor, dbias.tensor,
                      dweight.accumulate);
    parameters_.GradientDone(shape_.final_norm.bias);
  }
  parameters_.GradientDone(shape_.final_norm.weight);
  return d;
}

void EmbeddingAndHead::InputBackward(int64_t micro_step, Tensor d) {
  if (shape_.embedding < 0) return;
  trace_.SetLayer(-1);
  const auto gradient_with_contents = [&](int parameter) {
    const auto gradient = parameters_.NextGradient(parameter);
    if (!gradient.accumulate) Fill(trace_, gradient.tensor, 0);  // the op adds rows
    return gradient.tensor;
  };
  const Tensor d_all = group_.Land(group_.Gather(d));
  const Tensor d_wte = gradient_with_contents(shape_.embedding);
  const Tensor d_wpe = shape_.positions < 0 ? Tensor{} : gradient_with_contents(shape_.positions);
  EmbeddingBackward(trace_, d_all, tensors_.ids.Rows(micro_step, 1), d_wte, d_wpe, spec_.seq_length,
                    FirstOfVocabulary());
  parameters_.GradientDone(shape_.embedding);
  if (shape_.positions >= 0) parameters_.GradientDone(shape_.positions);
}

}  // namespace ridgeline::engine
