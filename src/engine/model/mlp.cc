#include "engine/model/mlp.h"

#include "engine/ops/elementwise.h"
#include "engine/ops/fused_quantize.h"

namespace ridgeline::engine {

LinearInput MlpSublayer::Activation(const SublayerParameters& p, Tensor up, Wanted wanted) {
  const bool gated = shape_.activation == MlpActivation::kSwiGlu;
  LinearInput act;
  if (linears_.TakesCodes(p.out)) {
    if (wanted.output) act.rows = linears_.NewRows(p.out, tokens_);
    if (wanted.saved) act.columns = linears_.NewColumns(p.out, tokens_);
    const auto quantize = gated ? SwiGluQuantize : GeluQuantize;
    quantize(trace_, up, wanted.output ? &act.rows : nullptr, wanted.saved ? &act.columns : nullptr,
             linears_.InputScale(p.out));
    return act;
  }
  act.x = New(tokens_, p.out.inputs);
  (gated ? SwiGlu : Gelu)(trace_, up, act.x);
  return act;
}

LinearGradient MlpSublayer::ActivationBackward(const SublayerParameters& p, Tensor d_act, Tensor up) {
  const bool gated = shape_.activation == MlpActivation::kSwiGlu;
  if (linears_.TakesGradientCodes(p.in)) {
    const LinearGradient d_up = linears_.NewGradientCodes(p.in, tokens_);
    const DelayedScale scale = linears_.GradientScale(p.in);
    if (gated) {
      SwiGluBackwardQuantize(trace_, d_act, up, d_up.rows, d_up.columns, scale);
    } else {
      const auto db = linears_.BiasGradient(p.in);
      GeluBackwardQuantize(trace_, d_act, up, d_up.rows, d_up.columns, scale, db.tensor, db.accumulate);
    }
    return d_up;
  }
  if (!gated) {
    GeluBackward(trace_, d_act, up, d_act);
    return {d_act};
  }
  SwiGluBackward(trace_, d_act, up, up);
  return {up};
}

Tensor MlpSublayer::Branch(const SublayerParameters& p, SavedSublayer& saved, Wanted wanted) {
  saved.inner = linears_.Forward(p.in, saved.norm, wanted.saved);
  saved.last = Activation(p, saved.inner, wanted);
  if (!wanted.output) return {};
  return linears_.Forward(p.out, saved.last, wanted.saved);
}

void MlpSublayer::BranchAgain(const SublayerParameters& p, SavedSublayer& saved) {
  if (saved.last.defined()) return;
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kRecompute);
  saved.last = Activation(p, saved.inner, {.output = false});
  trace_.SetPhase(phase);
}

Tensor MlpSublayer::BranchBackward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d) {
  const Tensor d_act = linears_.Backward(p.out, micro_step, {d}, saved.last);
  const LinearGradient d_up = ActivationBackward(p, d_act, saved.inner);
  NormAgain(p, saved);
  return linears_.Backward(p.in, micro_step, d_up, saved.norm);
}

}  // namespace ridgeline::engine
