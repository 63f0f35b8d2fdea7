#include "engine/ops/embedding.h"

#include "engine/ops/record.h"

namespace ridgeline::engine {

const Op<EmbeddingOperands, EmbeddingAttrs> kEmbedding{OpDef::Pass("embedding", BesideBudget("a row a token"))};
const Op<EmbeddingBackwardOperands, EmbeddingAttrs> kEmbeddingBackward{
    OpDef::Pass("embedding_backward", BesideBudget("a row a token, added to the table's gradient"))};

namespace {

bool Fits(const Tensor& ids, const Tensor& wte, const Tensor& wpe, const Tensor& x, int64_t seq) {
  return IsFloat(x) && x.contiguous() && Is(ids, DType::kI32, 1, x.rows) && seq > 0 && x.rows % seq == 0 &&
         IsFloat(wte) && Is(wte, wte.dtype, wte.rows, x.cols) && wte.rows > 0 &&
         (!wpe.defined() || (Is(wpe, wte.dtype, wpe.rows, x.cols) && wpe.rows >= seq));
}

}  // namespace

void Embedding(Trace& trace, Tensor ids, Tensor wte, Tensor wpe, Tensor x, int64_t seq, int64_t first) {
  Require(Fits(ids, wte, wpe, x, seq) && wte.dtype == x.dtype, kEmbedding,
          "x must be (tokens, hidden) in whole sequences, ids (1, tokens) int32, wte (vocab, hidden) and wpe "
          "(positions >= seq, hidden) of x's dtype",
          {{"ids", ids}, {"wte", wte}, {"wpe", wpe}, {"x", x}});
  // The op reads a row of wte, and of wpe, for each row of x.
  const int64_t looked_up = wpe.defined() ? 2 * x.bytes() : x.bytes();
  const auto less = static_cast<double>(wte.bytes() + (wpe.defined() ? wpe.bytes() : 0) - looked_up);
  trace.Call(kEmbedding, {{ids, wte, wpe}, {x}}, {.more_bytes = -less}, {seq, first});
}

void EmbeddingBackward(Trace& trace, Tensor dx, Tensor ids, Tensor d_wte, Tensor d_wpe, int64_t seq, int64_t first) {
  Require(Fits(ids, d_wte, d_wpe, dx, seq), kEmbeddingBackward,
          "dx must be (tokens, hidden) in whole sequences, ids (1, tokens) int32, d_wte (vocab, hidden) and d_wpe "
          "(positions >= seq, hidden) of one dtype",
          {{"dx", dx}, {"ids", ids}, {"d_wte", d_wte}, {"d_wpe", d_wpe}});
  const Tensor order = trace.Temporary(DType::kI32, 2, dx.rows, Category::kWorkspace);
  // Only those rows of the gradients change that have tokens: at most one for each row of dx, if every id is different.
  double more = 2.0 * static_cast<double>(dx.elements() * SizeOf(d_wte.dtype) - d_wte.bytes());
  if (d_wpe.defined()) {
    more += static_cast<double>(dx.bytes());  // read again
    more += 2.0 * static_cast<double>(seq * dx.cols * SizeOf(d_wpe.dtype) - d_wpe.bytes());
  }
  trace.Call(kEmbeddingBackward, {{dx, ids, d_wte, d_wpe}, {d_wte, d_wpe}, {order}}, {.more_bytes = more},
             {seq, first});
}

}  // namespace ridgeline::engine
