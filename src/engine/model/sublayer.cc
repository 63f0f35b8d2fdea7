#include "engine/model/sublayer.h"

#include "engine/ops/elementwise.h"
#include "engine/ops/fused_quantize.h"
#include "engine/ops/norm.h"

namespace ridgeline::engine {

Sublayer::Sublayer(const SublayerContext& c)
    : trace_(c.trace),
      shape_(c.shape),
      spec_(c.spec),
      group_(c.group),
      tokens_(c.group.tokens()),
      linears_(c.trace, c.parameters, c.shape, c.spec, c.recipe, c.scales, c.group),
      parameters_(c.parameters),
      compute_(c.recipe.compute) {}

// Each sublayer has one dropout per micro-step. Stream 0 is the model's input.
RandomStream Sublayer::DropoutStream(const SublayerParameters& p, int64_t micro_step) const {
  return {static_cast<uint32_t>(1 + micro_step * shape_.sublayers + p.number), group_.first_token() * spec_.hidden};
}

LinearInput Sublayer::Norm(const SublayerParameters& p, const ResidualStream& in, Tensor& mean, Tensor& rstd,
                           bool saved) {
  const auto& [x, sum] = in;
  const auto [weight_of, bias_of] = p.norm;
  const bool codes = linears_.TakesCodes(p.in);
  const Tensor weight = parameters_.Weight(weight_of);
  LinearInput y;
  if (codes) {
    y.rows = linears_.NewRows(p.in, x.rows);
  } else {
    y.x = New(x.rows, x.cols);
  }
  rstd = trace_.Temporary(DType::kF32, 1, x.rows, Category::kActivations);
  if (bias_of >= 0) mean = trace_.Temporary(DType::kF32, 1, x.rows, Category::kActivations);
  if (bias_of < 0 && codes) {
    RmsNormQuantize(trace_, x, weight, y.rows, rstd, spec_.norm_eps, linears_.InputScale(p.in), sum);
  } else if (bias_of < 0) {
    RmsNorm(trace_, x, weight, y.x, rstd, spec_.norm_eps, sum);
  } else if (codes) {
    LayerNormQuantize(trace_, x, weight, parameters_.Weight(bias_of), y.rows, mean, rstd, spec_.norm_eps,
                      linears_.InputScale(p.in), sum);
  } else {
    LayerNorm(trace_, x, weight, parameters_.Weight(bias_of), y.x, mean, rstd, spec_.norm_eps, sum);
  }
  if (codes && saved) y.columns = Transposed(trace_, y.rows, Category::kActivations);
  return y;
}

void Sublayer::NormAgain(const SublayerParameters& p, SavedSublayer& saved) {
  if (saved.norm.defined()) return;
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kRecompute);
  Tensor mean, rstd;  // the same values again; the saved ones are read
  saved.norm = Norm(p, {saved.x}, mean, rstd, true);
  trace_.SetPhase(phase);
}

void Sublayer::NormBackward(NormParameters p, const SavedSublayer& saved, Tensor dy, Tensor d) {
  const auto dweight = parameters_.NextGradient(p.weight);
  if (p.bias < 0) {
    RmsNormBackward(trace_, dy, saved.x, parameters_.Weight(p.weight), saved.norm_rstd, d, false, dweight.tensor,
                    dweight.accumulate);
  } else {
    const auto dbias = parameters_.NextGradient(p.bias);
    LayerNormBackward(trace_, dy, saved.x, parameters_.Weight(p.weight), saved.norm_mean, saved.norm_rstd, d, false,
                      dweight.tensor, dbias.tensor, dweight.accumulate);
    parameters_.GradientDone(p.bias);
  }
  parameters_.GradientDone(p.weight);
}

ResidualStream Sublayer::Forward(const SublayerParameters& p, int64_t micro_step, const ResidualStream& in,
                                 SavedSublayer& saved, Wanted wanted) {
  saved.x = in.x;
  saved.norm = Norm(p, in, saved.norm_mean, saved.norm_rstd, wanted.saved);
  const Tensor branch = Branch(p, saved, wanted);
  if (!wanted.output) return {};
  // residual + dropout(branch), stored in the branch's place.
  return {branch, {branch, in.x, spec_.dropout, DropoutStream(p, micro_step)}};
}

void Sublayer::Backward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d) {
  BranchAgain(p, saved);
  Tensor of_branch = d;  // the gradient of the branch that dropout fed into the residual
  if (spec_.dropout != 0) {
    of_branch = New(d.rows, spec_.hidden);
    DropoutBackward(trace_, d, of_branch, spec_.dropout, DropoutStream(p, micro_step));
  }
  const Tensor d_norm = BranchBackward(p, micro_step, saved, of_branch);
  NormBackward(p.norm, saved, d_norm, d);
}

}  // namespace ridgeline::engine
