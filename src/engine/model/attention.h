// A layer's attention: the products for queries, keys and values, their rotation, attention, and its projection.
#pragma once

#include "engine/model/sublayer.h"
#include "engine/ops/attention.h"

namespace ridgeline::engine {

class AttentionSublayer final : public Sublayer {
 public:
  explicit AttentionSublayer(const SublayerContext& context);

 private:
  Tensor Branch(const SublayerParameters& p, SavedSublayer& saved, Wanted wanted) override;
  void BranchAgain(const SublayerParameters& /*p*/, SavedSublayer& /*saved*/) override {}
  Tensor BranchBackward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d) override;
  void DropCheapOfBranch(SavedSublayer& /*saved*/) const override {}  // attention has products

  // The columns of (tokens, (heads + 2 kv_heads) * head_dim), of this rank's heads.
  Tensor Query(Tensor qkv) const { return qkv.Cols(0, of_.heads * of_.head_dim); }
  Tensor Key(Tensor qkv) const { return qkv.Cols(of_.heads * of_.head_dim, of_.kv_heads * of_.head_dim); }
  Tensor Value(Tensor qkv) const {
    return qkv.Cols((of_.heads + of_.kv_heads) * of_.head_dim, of_.kv_heads * of_.head_dim);
  }
  void Rotate(Tensor qkv, bool back);

  const AttentionShape of_;
  const Tensor rope_table_;
};

}  // namespace ridgeline::engine
