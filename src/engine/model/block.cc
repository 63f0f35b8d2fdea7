#include "engine/model/block.h"

#include "engine/ops/attention.h"
#include "engine/ops/fused_quantize.h"
#include "engine/ops/norm.h"

namespace ridgeline {
namespace {

AttentionShape AttentionOf(const RunSpec& s) {
  return {s.batch_size, s.seq_length, s.heads, s.kv_heads, s.head_dim, s.attention_backward == "deterministic"};
}

}  // namespace

Block::Block(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
             const Recipe& recipe, const DelayedScales& scales, Tensor rope_table, int64_t rank)
    : trace_(trace),
      parameters_(parameters),
      shape_(shape),
      spec_(spec),
      compute_(recipe.compute),
      linears_(trace, parameters, shape, spec, recipe, scales),
      rope_table_(rope_table),
      tokens_(spec.batch_size * spec.seq_length),
      rank_(rank) {}

// Each layer has two dropouts per micro-step. Stream 0 is the model's input.
RandomStream Block::DropoutStream(int64_t layer, int64_t micro_step, int64_t which) const {
  return {static_cast<uint32_t>(1 + 2 * (micro_step * spec_.layers + layer) + which), rank_ * tokens_ * spec_.hidden};
}

Tensor Block::Query(Tensor qkv) const { return qkv.Cols(0, spec_.heads * spec_.head_dim); }
Tensor Block::Key(Tensor qkv) const { return qkv.Cols(spec_.heads * spec_.head_dim, spec_.kv_heads * spec_.head_dim); }
Tensor Block::Value(Tensor qkv) const {
  return qkv.Cols((spec_.heads + spec_.kv_heads) * spec_.head_dim, spec_.kv_heads * spec_.head_dim);
}

LinearInput Block::Norm(LinearLayer of, NormParameters p, const ResidualStream& in, Tensor& mean, Tensor& rstd,
                        bool saved) {
  const auto& [x, sum] = in;
  const bool codes = linears_.TakesCodes();
  const Tensor weight = parameters_.Weight(p.weight);
  LinearInput y;
  if (codes) {
    y.rows = linears_.NewRows(of, x.rows);
  } else {
    y.x = New(x.rows, x.cols);
  }
  rstd = trace_.Temporary(DType::kF32, 1, x.rows, Category::kActivations);
  if (p.bias >= 0) mean = trace_.Temporary(DType::kF32, 1, x.rows, Category::kActivations);
  if (p.bias < 0 && codes) {
    RmsNormQuantize(trace_, x, weight, y.rows, rstd, spec_.norm_eps, linears_.InputScale(of), sum);
  } else if (p.bias < 0) {
    RmsNorm(trace_, x, weight, y.x, rstd, spec_.norm_eps, sum);
  } else if (codes) {
    LayerNormQuantize(trace_, x, weight, parameters_.Weight(p.bias), y.rows, mean, rstd, spec_.norm_eps,
                      linears_.InputScale(of), sum);
  } else {
    LayerNorm(trace_, x, weight, parameters_.Weight(p.bias), y.x, mean, rstd, spec_.norm_eps, sum);
  }
  if (codes && saved) y.columns = Transposed(trace_, y.rows, Category::kActivations);
  return y;
}

void Block::NormAgain(LinearLayer of, NormParameters p, Tensor x, LinearInput& out) {
  if (out.defined()) return;
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kRecompute);
  Tensor mean, rstd;  // the same values again; the saved ones are read
  out = Norm(of, p, {x}, mean, rstd, true);
  trace_.SetPhase(phase);
}

void Block::NormBackward(NormParameters p, Tensor dy, Tensor x, Tensor mean, Tensor rstd, Tensor d) {
  const auto dweight = parameters_.NextGradient(p.weight);
  if (p.bias < 0) {
    RmsNormBackward(trace_, dy, x, parameters_.Weight(p.weight), rstd, d, false, dweight.tensor, dweight.accumulate);
  } else {
    const auto dbias = parameters_.NextGradient(p.bias);
    LayerNormBackward(trace_, dy, x, parameters_.Weight(p.weight), mean, rstd, d, false, dweight.tensor, dbias.tensor,
                      dweight.accumulate);
    parameters_.GradientDone(p.bias);
  }
  parameters_.GradientDone(p.weight);
}

LinearInput Block::Activation(Tensor up, Wanted wanted) {
  LinearInput act;
  if (linears_.TakesCodes()) {
    if (wanted.output) act.rows = linears_.NewRows(LinearLayer::kDown, tokens_);
    if (wanted.saved) act.columns = linears_.NewColumns(LinearLayer::kDown, tokens_);
    const auto quantize = shape_.gated ? SwiGluQuantize : GeluQuantize;
    quantize(trace_, up, wanted.output ? &act.rows : nullptr, wanted.saved ? &act.columns : nullptr,
             linears_.InputScale(LinearLayer::kDown));
    return act;
  }
  act.x = New(tokens_, spec_.ffn);
  if (shape_.gated) {
    SwiGlu(trace_, up, act.x);
  } else {
    Gelu(trace_, up, act.x);
  }
  return act;
}

LinearGradient Block::ActivationBackward(Tensor d_act, Tensor up) {
  if (!shape_.gated) {
    GeluBackward(trace_, d_act, up, d_act);
    return {d_act};
  }
  if (linears_.TakesGradientCodes(LinearLayer::kUp)) {
    const LinearGradient d_up = linears_.NewGradientCodes(LinearLayer::kUp, tokens_);
    SwiGluBackwardQuantize(trace_, d_act, up, d_up.rows, d_up.columns, linears_.GradientScale(LinearLayer::kUp));
    return d_up;
  }
  SwiGluBackward(trace_, d_act, up, up);
  return {up};
}

ResidualStream Block::Forward(int64_t layer, int64_t micro_step, const ResidualStream& in, SavedLayer& saved,
                              Wanted wanted) {
  const LayerParameters& p = shape_.layers[static_cast<size_t>(layer)];
  trace_.SetLayer(layer);
  saved.x = in.x;
  saved.norm1 = Norm(LinearLayer::kQkv, {p.norm1, p.norm1_bias}, in, saved.norm1_mean, saved.norm1_rstd, wanted.saved);
  saved.qkv = linears_.Forward(LinearLayer::kQkv, saved.norm1, wanted.saved);
  if (rope_table_.defined()) {
    Rope(trace_, Query(saved.qkv), rope_table_, spec_.seq_length, spec_.head_dim, false);
    Rope(trace_, Key(saved.qkv), rope_table_, spec_.seq_length, spec_.head_dim, false);
  }
  saved.attention_out = New(tokens_, spec_.heads * spec_.head_dim);
  saved.lse = trace_.Temporary(DType::kF32, spec_.batch_size * spec_.heads, spec_.seq_length, Category::kActivations);
  AttentionForward(trace_, Query(saved.qkv), Key(saved.qkv), Value(saved.qkv), saved.attention_out, saved.lse,
                   AttentionOf(spec_));
  LinearInput attention_out{.x = saved.attention_out};  // kept as it is, for the attention's backward pass
  saved.x_mid = linears_.Forward(LinearLayer::kOut, attention_out, false);
  const ResidualStream mid = Add(saved.x_mid, in.x, DropoutStream(layer, micro_step, 0));
  saved.norm2 = Norm(LinearLayer::kUp, {p.norm2, p.norm2_bias}, mid, saved.norm2_mean, saved.norm2_rstd, wanted.saved);
  saved.up = linears_.Forward(LinearLayer::kUp, saved.norm2, wanted.saved);
  saved.act = Activation(saved.up, wanted);
  if (!wanted.output) return {};
  const Tensor y = linears_.Forward(LinearLayer::kDown, saved.act, wanted.saved);
  return Add(y, saved.x_mid, DropoutStream(layer, micro_step, 1));
}

void Block::Backward(int64_t layer, int64_t micro_step, SavedLayer& s, Tensor d) {
  const LayerParameters& p = shape_.layers[static_cast<size_t>(layer)];
  trace_.SetLayer(layer);
  const auto dropped = [&](int64_t which) {  // the gradient of the branch that dropout fed into the residual
    if (spec_.dropout == 0) return d;
    const Tensor branch = New(tokens_, spec_.hidden);
    DropoutBackward(trace_, d, branch, spec_.dropout, DropoutStream(layer, micro_step, which));
    return branch;
  };

  if (!s.act.defined()) {
    const Phase phase = trace_.phase();
    trace_.SetPhase(Phase::kRecompute);
    s.act = Activation(s.up, {.output = false});
    trace_.SetPhase(phase);
  }
  const Tensor d_act = linears_.Backward(LinearLayer::kDown, micro_step, {dropped(1)}, s.act);
  const LinearGradient d_up = ActivationBackward(d_act, s.up);
  NormAgain(LinearLayer::kUp, {p.norm2, p.norm2_bias}, s.x_mid, s.norm2);
  const Tensor d_norm2 = linears_.Backward(LinearLayer::kUp, micro_step, d_up, s.norm2);
  NormBackward({p.norm2, p.norm2_bias}, d_norm2, s.x_mid, s.norm2_mean, s.norm2_rstd, d);

  const Tensor d_attention = linears_.Backward(LinearLayer::kOut, micro_step, {dropped(0)}, {.x = s.attention_out});
  const Tensor d_qkv = New(s.qkv.rows, s.qkv.cols);
  AttentionBackward(trace_, d_attention, Query(s.qkv), Key(s.qkv), Value(s.qkv), s.attention_out, s.lse, Query(d_qkv),
                    Key(d_qkv), Value(d_qkv), AttentionOf(spec_));
  if (rope_table_.defined()) {
    Rope(trace_, Query(d_qkv), rope_table_, spec_.seq_length, spec_.head_dim, true);
    Rope(trace_, Key(d_qkv), rope_table_, spec_.seq_length, spec_.head_dim, true);
  }
  NormAgain(LinearLayer::kQkv, {p.norm1, p.norm1_bias}, s.x, s.norm1);
  const Tensor d_norm1 = linears_.Backward(LinearLayer::kQkv, micro_step, {d_qkv}, s.norm1);
  NormBackward({p.norm1, p.norm1_bias}, d_norm1, s.x, s.norm1_mean, s.norm1_rstd, d);
}

}  // namespace ridgeline
