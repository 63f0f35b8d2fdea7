#include "engine/model/attention.h"

#include <algorithm>

#include "engine/ops/elementwise.h"

namespace ridgeline::engine {

AttentionSublayer::AttentionSublayer(const SublayerContext& c)
    : Sublayer(c),
      of_{c.spec.batch_size,
          c.spec.seq_length,
          c.spec.heads / c.group.ranks(),
          std::max<int64_t>(1, c.spec.kv_heads / c.group.ranks()),
          c.spec.head_dim,
          c.spec.attention_backward == "deterministic"},
      rope_table_(c.rope_table) {}

void AttentionSublayer::Rotate(Tensor qkv, bool back) {
  if (!rope_table_.defined()) return;
  Rope(trace_, Query(qkv), rope_table_, of_.seq, of_.head_dim, back);
  Rope(trace_, Key(qkv), rope_table_, of_.seq, of_.head_dim, back);
}

Tensor AttentionSublayer::Branch(const SublayerParameters& p, SavedSublayer& saved, Wanted wanted) {
  saved.inner = linears_.Forward(p.in, saved.norm, wanted.saved);
  const Tensor& qkv = saved.inner;
  Rotate(qkv, false);
  saved.last = {.x = New(tokens_, p.out.inputs)};
  saved.lse = trace_.Temporary(DType::kF32, of_.batch * of_.heads, of_.seq, Category::kActivations);
  AttentionForward(trace_, Query(qkv), Key(qkv), Value(qkv), saved.last.x, saved.lse, of_);
  if (!wanted.output) return {};
  return linears_.Forward(p.out, saved.last, false);  // kept as numbers, for the attention's backward pass
}

Tensor AttentionSublayer::BranchBackward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved,
                                         Tensor d) {
  const Tensor& qkv = saved.inner;
  const Tensor d_attention = linears_.Backward(p.out, micro_step, {d}, saved.last);
  const Tensor d_qkv = New(qkv.rows, qkv.cols);
  AttentionBackward(trace_, d_attention, Query(qkv), Key(qkv), Value(qkv), saved.last.x, saved.lse, Query(d_qkv),
                    Key(d_qkv), Value(d_qkv), of_);
  Rotate(d_qkv, true);
  NormAgain(p, saved);
  return linears_.Backward(p.in, micro_step, {d_qkv}, saved.norm);
}

}  // namespace ridgeline::engine
