#include "engine/ops/attention.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr BudgetPlace kAttentionBudget = PartOfBudget("attention");

std::array<int64_t, 3> DimsOfAttention(const OpCall& call) {
  const auto& shape = call.attrs<AttentionShape>();
  return {shape.batch * shape.heads, shape.seq, shape.head_dim};
}

}  // namespace

const Op<AttentionForwardOperands, AttentionShape> kAttentionForward{
    OpDef::ForwardAttention("attention_forward", kAttentionBudget, DimsOfAttention)};
const Op<AttentionBackwardOperands, AttentionShape> kAttentionBackward{
    OpDef::BackwardAttention("attention_backward", kAttentionBudget, DimsOfAttention)};

namespace {

// FLOPs of the multiply-adds in one product of a (seq, head_dim) and a (head_dim, seq) matrix below the diagonal, over
// all heads.
double CausalProductFlops(const AttentionShape& s) {
  const auto seq = static_cast<double>(s.seq);
  return static_cast<double>(s.batch * s.heads * s.head_dim) * seq * (seq + 1);
}

class Check {
 public:
  Check(const OpDef& op, const AttentionShape& shape, std::initializer_list<Operand> operands)
      : op_(op), shape_(shape), operands_(operands) {
    const bool ok = shape.batch > 0 && shape.seq > 0 && shape.heads > 0 && shape.kv_heads > 0 && shape.head_dim > 0 &&
                    shape.heads % shape.kv_heads == 0;
    Require(ok, "batch, seq, heads and head_dim are positive and kv_heads divides heads");
  }
  // Requires tensors of (tokens, heads * head_dim), strided or not.
  void Heads(std::initializer_list<Tensor> tensors, DType dtype, int64_t heads, const char* rule) const {
    for (const Tensor& t : tensors) {
      Require(IsFloat(t) && t.dtype == dtype && t.rows == shape_.batch * shape_.seq &&
                  t.cols == heads * shape_.head_dim && (t.row_stride >= t.cols || t.rows == 1),
              rule);
    }
  }
  void Lse(const Tensor& lse) const {
    Require(Is(lse, DType::kF32, shape_.batch * shape_.heads, shape_.seq), "lse is (batch*heads, seq) fp32");
  }
  void Require(bool ok, const char* rule) const {
    if (ok) return;
    const std::string with_shape =
        fmt::format("{} (batch {}, seq {}, heads {}, kv_heads {}, head_dim {})", rule, shape_.batch, shape_.seq,
                    shape_.heads, shape_.kv_heads, shape_.head_dim);
    engine::Require(false, op_, with_shape.c_str(), operands_);
  }

 private:
  const OpDef& op_;
  const AttentionShape& shape_;
  std::initializer_list<Operand> operands_;
};

// Whether cuDNN may compute a call with these (tokens, heads * head_dim) tensors.
bool ForCudnn(const DeviceDescription& device, std::initializer_list<Tensor> tensors, int64_t head_dim,
              int64_t most_head_dim) {
  constexpr int64_t kUnit = 8;  // numbers of 16 bytes
  return device.cuda() && head_dim % kUnit == 0 && head_dim <= most_head_dim &&
         std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) {
           return SizeOf(t.dtype) == 2 && t.offset % kUnit == 0 && (t.row_stride % kUnit == 0 || t.rows == 1);
         });
}
Tensor Workspace(Trace& trace, int64_t bytes) { return trace.Temporary(DType::kU8, 1, bytes, Category::kWorkspace); }

// The workspace for cuDNN's plans, at least as much as those of cuDNN 9.19 want. A plan that wants more is not used.
// - All plans: 256 bytes.
// - If heads share keys: dk and dv of every head, in 16 bits.
// - From compute capability 10.0 on, for short sequences: dq of rows in groups of 8, in fp32.
// - If dq must repeat to the bit: the scores' gradients in 16 bits, in whole tiles.
constexpr int64_t kForwardWorkspaceBytes = 256;
int64_t BackwardWorkspaceBytes(const DeviceDescription& device, const AttentionShape& s) {
  constexpr int64_t kShort = 128;
  const auto up = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; };
  int64_t bytes = 256;
  if (s.repeats) {
    bytes += 2 * s.batch * s.heads * up(s.seq, 64) * up(s.seq, device.compute_capability >= 100 ? 64 : 128);
  }
  if (s.heads > s.kv_heads) bytes += 4 * s.batch * s.heads * s.seq * s.head_dim;
  if (device.compute_capability >= 100 && s.seq <= kShort && !s.repeats) {
    bytes += 4 * s.batch * s.heads * up(s.seq, 8) * s.head_dim;
  }
  return bytes;
}

constexpr const char* kQueryRule = "q, o and their gradients are (batch*seq, heads*head_dim), all of q's dtype";
constexpr const char* kKeyRule = "k, v and their gradients are (batch*seq, kv_heads*head_dim), all of q's dtype";

}  // namespace

void AttentionForward(Trace& trace, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, const AttentionShape& shape) {
  const std::initializer_list<Operand> operands = {{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"lse", lse}};
  const Check check(kAttentionForward, shape, operands);
  check.Heads({q, o}, q.dtype, shape.heads, kQueryRule);
  check.Heads({k, v}, q.dtype, shape.kv_heads, kKeyRule);
  check.Lse(lse);

  const double flops = 2 * CausalProductFlops(shape);  // scores, output
  AttentionForwardOperands on = {{q, k, v}, {o, lse}, {}};
  if (ForCudnn(trace.device(), {q, k, v, o}, shape.head_dim, 256)) {
    on.scratch.workspace = Workspace(trace, kForwardWorkspaceBytes);
  }
  trace.Call(kAttentionForward, on, {.flops = flops, .format = MathFormatOf(q.dtype)}, shape);
}

void AttentionBackward(Trace& trace, Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor dq,
                       Tensor dk, Tensor dv, const AttentionShape& shape) {
  const std::initializer_list<Operand> operands = {{"d_o", d_o}, {"q", q},   {"k", k},   {"v", v},  {"o", o},
                                                   {"lse", lse}, {"dq", dq}, {"dk", dk}, {"dv", dv}};
  const Check check(kAttentionBackward, shape, operands);
  check.Heads({d_o, q, o, dq}, q.dtype, shape.heads, kQueryRule);
  check.Heads({k, v, dk, dv}, q.dtype, shape.kv_heads, kKeyRule);
  check.Lse(lse);

  const double flops = 5 * CausalProductFlops(shape);  // scores again, dp, dq, dk, dv
  const Tensor delta = trace.Temporary(DType::kF32, shape.batch * shape.heads, shape.seq, Category::kWorkspace);
  Tensor dq_sum;
  if (!shape.repeats || !trace.device().cuda()) {
    dq_sum = trace.Temporary(DType::kF32, shape.batch * shape.heads * shape.seq, shape.head_dim, Category::kWorkspace);
  }
  AttentionBackwardOperands on = {{d_o, q, k, v, o, lse}, {dq, dk, dv}, {delta, dq_sum, {}}};
  const int64_t most_head_dim = trace.device().compute_capability >= 100 ? 128 : 256;
  if (ForCudnn(trace.device(), {d_o, q, k, v, o, dq, dk, dv}, shape.head_dim, most_head_dim)) {
    on.scratch.workspace = Workspace(trace, BackwardWorkspaceBytes(trace.device(), shape));
  }
  trace.Call(kAttentionBackward, on, {.flops = flops, .format = MathFormatOf(q.dtype)}, shape);
}

}  // namespace ridgeline::engine
