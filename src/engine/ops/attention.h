// Causal attention that never stores the s x s matrix, forward or backward (Dao, "FlashAttention-2", 2023).
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct AttentionShape {
  int64_t batch = 0;
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // heads % kv_heads == 0; query head h reads key-value head h / (heads / kv_heads)
  int64_t head_dim = 0;
  bool repeats = false;  // gradients are the same bits at every run
};

struct AttentionForwardOperands {
  struct {
    Tensor q, k, v;
  } reads;
  struct {
    Tensor o, lse;
  } writes;
  struct {
    Tensor workspace;  // bytes for cuDNN, on CUDA devices if it may compute the call
  } scratch;
};
extern const Op<AttentionForwardOperands, AttentionShape> kAttentionForward;

struct AttentionBackwardOperands {
  struct {
    Tensor d_o, q, k, v, o, lse;
  } reads;
  struct {
    Tensor dq, dk, dv;
  } writes;
  struct {
    Tensor delta;      // (batch*heads, seq) fp32: the sums of o * d_o over a head
    Tensor dq_sum;     // (batch*heads*seq, head_dim) fp32: dq summed over blocks of keys; undefined if not needed
    Tensor workspace;  // as the forward call's
  } scratch;
};
extern const Op<AttentionBackwardOperands, AttentionShape> kAttentionBackward;

// o = softmax(q k^T / sqrt(head_dim), causal) v, per batch element and head.
// q (tokens, heads*head_dim), k and v (tokens, kv_heads*head_dim), strided views allowed (a fused qkv matrix);
// o (tokens, heads*head_dim); tokens = batch*seq, sequence fastest. All have one floating dtype.
// lse (batch*heads, seq) fp32: the log-sum-exp of each row's scaled scores, kept for the backward pass.
// On CUDA devices, cuDNN computes the call, or finds during preparation that it cannot, if numbers have 16 bits,
// head_dim is a multiple of 8 and at most 256 (backward, from 10.0 on: 128), and rows begin at multiples of 16 bytes.
// FLOPs counted as executed: 4 * batch * heads * head_dim * seq * (seq + 1) / 2.
void AttentionForward(Trace& trace, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, const AttentionShape& shape);

// Writes dq, dk, dv (views as q, k, v; overwritten, not accumulated) from d_o. Takes its workspace from the trace; the
// size does not depend on the number of threads. dq, dk, dv may not alias q, k, v. The result is deterministic, except
// for cuDNN's dq if `shape.repeats` is false: several blocks then add its terms, in no fixed order. If it is true,
// cuDNN keeps the scores' gradients, (batch*heads, seq, seq) in 16 bits, from which one block sums each number of dq.
void AttentionBackward(Trace& trace, Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor dq,
                       Tensor dk, Tensor dv, const AttentionShape& shape);

}  // namespace ridgeline::engine
