// Token and position embeddings.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct EmbeddingAttrs {
  int64_t seq = 0;
  int64_t first = 0;  // the id of wte's first row
};
struct EmbeddingOperands {
  struct {
    Tensor ids, wte, wpe;
  } reads;
  struct {
    Tensor x;
  } writes;
};
extern const Op<EmbeddingOperands, EmbeddingAttrs> kEmbedding;

struct EmbeddingBackwardOperands {
  struct {
    Tensor dx, ids, d_wte, d_wpe;
  } reads;
  struct {
    Tensor d_wte, d_wpe;
  } writes;
  struct {
    Tensor order;  // (2, tokens) int32: the tokens in the order of their ids, and space for sorting them
  } scratch;
};
extern const Op<EmbeddingBackwardOperands, EmbeddingAttrs> kEmbeddingBackward;

// x (tokens, hidden) = wte[token] (+ wpe[position] if wpe is defined; position = index in the sequence of `seq`). ids
// (1, tokens) int32, not negative. wte (vocab, hidden) and wpe (positions, hidden) have x's dtype, which is floating.
// wte has the rows of ids [first, first + vocab). Rows of x with another id are zeros, without a position.
void Embedding(Trace& trace, Tensor ids, Tensor wte, Tensor wpe, Tensor x, int64_t seq, int64_t first = 0);

// d_wte += scattered rows of dx (d_wte must hold zeros or an earlier gradient), except those with an id outside of it.
// The same for d_wpe, with the rows of all ids, if it is defined. Floating gradients. Deterministic: a row's
// contributions are added in token order.
void EmbeddingBackward(Trace& trace, Tensor dx, Tensor ids, Tensor d_wte, Tensor d_wpe, int64_t seq, int64_t first = 0);

}  // namespace ridgeline::engine
