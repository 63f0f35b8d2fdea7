#include "engine/ops/cuda/attention_plans.h"

namespace ridgeline::engine {
namespace {

using enum CudnnAttention::Id;

// A call's tensors as cuDNN sees them: (batch, heads, seq, head_dim).
struct View {
  const AttentionShape& s;
  cudnnDataType_t type;
  const std::array<int64_t, 8>& row_strides;

  explicit View(const CudnnAttention& a)
      : s(a.shape), type(a.dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF), row_strides(a.row_strides) {}
  CudnnDims OfHeads(int64_t heads, int64_t cols) const { return {s.batch, heads, s.seq, cols}; }
  CudnnDims Rows() const { return OfHeads(s.heads, 1); }
  CudnnDims Strides(size_t tensor) const { return {s.seq * row_strides[tensor], s.head_dim, row_strides[tensor], 1}; }
  CudnnTensor Stored(CudnnGraph& g, CudnnAttention::Id id, int64_t heads, size_t tensor) const {
    return g.Stored(id, type, OfHeads(heads, s.head_dim), Strides(tensor));
  }
  // (batch, heads, head_dim, seq)
  CudnnTensor StoredTurned(CudnnGraph& g, CudnnAttention::Id id, int64_t heads, size_t tensor) const {
    const CudnnDims strides = Strides(tensor);
    return g.Stored(id, type, {s.batch, heads, s.head_dim, s.seq}, {strides[0], strides[1], strides[3], strides[2]});
  }
};
// Indices of row_strides.
enum Place : size_t { kPlaceQ, kPlaceK, kPlaceV, kPlaceO, kPlaceDO, kPlaceDQ, kPlaceDK, kPlaceDV };

// o = softmax(scale q k^T, causal) v; lse = max + log sum of exponentials.
void AddForward(CudnnGraph& g, const CudnnAttention& attention) {
  const View view(attention);
  const AttentionShape& s = attention.shape;
  const CudnnTensor q = view.Stored(g, kQ, s.heads, kPlaceQ);
  const CudnnTensor k_turned = view.StoredTurned(g, kK, s.kv_heads, kPlaceK);
  const CudnnTensor v = view.Stored(g, kV, s.kv_heads, kPlaceV);
  const CudnnTensor o = view.Stored(g, kO, s.heads, kPlaceO);
  const CudnnTensor lse = g.Stored(kLse, CUDNN_DATA_FLOAT, view.Rows(), CudnnPacked(view.Rows()));
  const CudnnTensor scale = g.Scalar(kScale);
  const CudnnTensor minus_infinity = g.Scalar(kMinusInfinity);

  const CudnnTensor products = g.Virtual(CUDNN_DATA_FLOAT, view.OfHeads(s.heads, s.seq));
  g.Matmul(q, k_turned, products);
  const CudnnTensor scores = g.LowerTriangle(g.Binary(CUDNN_POINTWISE_MUL, products, scale), minus_infinity);
  const CudnnTensor largest = g.Virtual(CUDNN_DATA_FLOAT, view.Rows());
  g.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const CudnnTensor e = g.Unary(CUDNN_POINTWISE_EXP, g.Binary(CUDNN_POINTWISE_SUB, scores, largest));
  const CudnnTensor sum = g.Virtual(CUDNN_DATA_FLOAT, view.Rows());
  g.Reduce(CUDNN_REDUCE_TENSOR_ADD, e, sum);
  g.Binary(CUDNN_POINTWISE_ADD, largest, g.Unary(CUDNN_POINTWISE_LOG, sum), lse);
  g.Matmul(g.Binary(CUDNN_POINTWISE_DIV, e, sum, view.type), v, o);
}

// p = exp(scores - lse), ds = p (d_o v^T - delta) scale; dv = p^T d_o, dk = ds^T q, dq = ds k. cuDNN recognizes the
// graph because delta and dq's sums are stored, which go from one of its kernels to the next. Without those sums it
// stores ds, and one block sums each number of dq.
void AddBackward(CudnnGraph& g, const CudnnAttention& attention) {
  const View view(attention);
  const AttentionShape& s = attention.shape;
  const CudnnDims heads = view.OfHeads(s.heads, s.head_dim);
  const CudnnTensor q = view.Stored(g, kQ, s.heads, kPlaceQ);
  const CudnnTensor k_turned = view.StoredTurned(g, kK, s.kv_heads, kPlaceK);
  const CudnnTensor v_turned = view.StoredTurned(g, kV, s.kv_heads, kPlaceV);
  const CudnnTensor o = view.Stored(g, kO, s.heads, kPlaceO);
  const CudnnTensor d_o = view.Stored(g, kDO, s.heads, kPlaceDO);
  const CudnnTensor lse = g.Stored(kLse, CUDNN_DATA_FLOAT, view.Rows(), CudnnPacked(view.Rows()));
  const CudnnTensor dq = view.Stored(g, kDQ, s.heads, kPlaceDQ);
  const CudnnTensor dk = view.Stored(g, kDK, s.kv_heads, kPlaceDK);
  const CudnnTensor dv = view.Stored(g, kDV, s.kv_heads, kPlaceDV);
  const CudnnTensor delta = g.Stored(kDelta, CUDNN_DATA_FLOAT, view.Rows(), CudnnPacked(view.Rows()));
  const CudnnTensor scale = g.Scalar(kScale);
  const CudnnTensor minus_infinity = g.Scalar(kMinusInfinity);
  const CudnnTensor one = g.Scalar(kOne);

  const CudnnTensor o_d_o =
      g.Virtual(CUDNN_DATA_FLOAT, heads, {s.heads * s.seq * s.head_dim, s.head_dim, s.heads * s.head_dim, 1});
  g.Binary(CUDNN_POINTWISE_MUL, d_o, o, o_d_o);
  const CudnnTensor sums = g.Virtual(CUDNN_DATA_FLOAT, view.Rows());
  g.Reduce(CUDNN_REDUCE_TENSOR_ADD, o_d_o, sums);
  g.Binary(CUDNN_POINTWISE_MUL, sums, one, delta);

  const CudnnTensor products = g.Virtual(CUDNN_DATA_FLOAT, view.OfHeads(s.heads, s.seq));
  g.Matmul(q, k_turned, products);
  const CudnnTensor logs = g.Binary(CUDNN_POINTWISE_SUB, g.Binary(CUDNN_POINTWISE_MUL, products, scale), lse);
  const CudnnTensor p = g.Unary(CUDNN_POINTWISE_EXP, g.LowerTriangle(logs, minus_infinity));
  const auto to_kv_heads = [&](const CudnnTensor& left, const CudnnTensor& right, const CudnnTensor& result) {
    if (s.heads == s.kv_heads) return g.Matmul(left, right, result);
    const CudnnTensor of_all_heads = g.Virtual(view.type, heads);
    g.Matmul(left, right, of_all_heads);
    g.Reduce(CUDNN_REDUCE_TENSOR_ADD, of_all_heads, result);
  };
  to_kv_heads(g.Transposed(p, view.type), d_o, dv);

  const CudnnTensor dp = g.Virtual(CUDNN_DATA_FLOAT, view.OfHeads(s.heads, s.seq));
  g.Matmul(d_o, v_turned, dp);
  const CudnnTensor p_dp = g.Binary(CUDNN_POINTWISE_MUL, g.Binary(CUDNN_POINTWISE_SUB, dp, delta), p);
  const CudnnTensor ds = g.Binary(CUDNN_POINTWISE_MUL, p_dp, scale, view.type);
  to_kv_heads(g.Transposed(ds, view.type), q, dk);
  const CudnnTensor k = g.Transposed(k_turned, view.type);
  if (s.repeats) return g.Matmul(ds, k, dq);
  const CudnnTensor dq_sum = g.Stored(kDqSum, CUDNN_DATA_FLOAT, heads, CudnnPacked(heads));
  g.Matmul(ds, k, dq_sum);
  g.Unary(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
}

}  // namespace

CudnnAttention::CudnnAttention(const OpCall& call) {
  if (call.op == &kAttentionForward) {
    const auto [reads, writes, scratch] = call.operands(kAttentionForward);
    shape = call.attrs(kAttentionForward);
    dtype = reads.q.dtype;
    row_strides = {reads.q.row_stride, reads.k.row_stride, reads.v.row_stride, writes.o.row_stride};
    workspace_bytes = scratch.workspace.bytes();
  } else {
    const auto [reads, writes, scratch] = call.operands(kAttentionBackward);
    shape = call.attrs(kAttentionBackward);
    dtype = reads.q.dtype;
    row_strides = {reads.q.row_stride,   reads.k.row_stride,   reads.v.row_stride,   reads.o.row_stride,
                   reads.d_o.row_stride, writes.dq.row_stride, writes.dk.row_stride, writes.dv.row_stride};
    workspace_bytes = scratch.workspace.bytes();
  }
}

std::vector<CudnnPlan> PlanAttentionForward(const Cudnn& cudnn, const CudnnAttention& attention,
                                            const CudnnDevice& device, std::string& why) {
  CudnnGraph graph(cudnn);
  AddForward(graph, attention);
  return CudnnPlan::Make(graph, device, {attention.workspace_bytes, attention.shape.repeats, attention.most_plans},
                         why);
}
std::vector<CudnnPlan> PlanAttentionBackward(const Cudnn& cudnn, const CudnnAttention& attention,
                                             const CudnnDevice& device, std::string& why) {
  CudnnGraph graph(cudnn);
  AddBackward(graph, attention);
  return CudnnPlan::Make(graph, device, {attention.workspace_bytes, attention.shape.repeats, attention.most_plans},
                         why);
}

}  // namespace ridgeline::engine
