#include "engine/step/budget.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/comm/collective.h"
#include "engine/ops/attention.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/embedding.h"
#include "engine/ops/fused_quantize.h"
#include "engine/ops/gemm.h"
#include "engine/ops/loss.h"
#include "engine/ops/norm.h"
#include "engine/ops/optimizer.h"
#include "engine/ops/quantize.h"

namespace ridgeline {
namespace {

struct Place {
  std::string_view part;
  std::string_view reason;
};

constexpr Place kProducts = {"linear products and head", ""};
constexpr Place kAttention = {"attention", ""};
constexpr Place kUpdates = {"optimizer, one pass", ""};
constexpr Place kBetween = {"norms, residual, RoPE, activation", ""};
constexpr Place kLosses = {"loss, gradient in place", ""};
constexpr Place kRecomputed = {"", "computed again instead of kept, as checkpointing says"};
constexpr Place kOwnPass = {"", "a separate pass: the kernel that makes the numbers could write their codes"};
constexpr Place kTwoPasses = {"", "two passes of their own: the scale needs the largest of the numbers first"};
constexpr Place kGradientNorm = {"", "no update may begin before the norm of all gradients is known"};
constexpr Place kRanks = {"", "between ranks"};

const std::unordered_map<const OpDef*, Place>& Places() {
  static const std::unordered_map<const OpDef*, Place> places = {
      {&kGemm, kProducts},
      {&kQuantizedGemm, kProducts},
      {&kAttentionForward, kAttention},
      {&kAttentionBackward, kAttention},
      {&kAdam, kUpdates},
      {&kRmsNorm, kBetween},
      {&kRmsNormBackward, kBetween},
      {&kLayerNorm, kBetween},
      {&kLayerNormBackward, kBetween},
      {&kDropoutAdd, kBetween},
      {&kRope, kBetween},
      {&kSwiGlu, kBetween},
      {&kSwiGluBackward, kBetween},
      {&kGelu, kBetween},
      {&kResidualRmsNorm, kBetween},
      {&kResidualLayerNorm, kBetween},
      {&kRmsNormQuantize, kBetween},
      {&kLayerNormQuantize, kBetween},
      {&kResidualRmsNormQuantize, kBetween},
      {&kResidualLayerNormQuantize, kBetween},
      {&kSwiGluQuantize, kBetween},
      {&kGeluQuantize, kBetween},
      {&kSwiGluBackwardQuantize, kBetween},
      {&kGeluBackward, kBetween},
      {&kCrossEntropy, kLosses},
      {&kSumLoss, kLosses},
      {&kQuantize, kOwnPass},
      {&kDequantize, kOwnPass},
      {&kTransposeQuantized, kOwnPass},
      {&kUpdateDelayedScales, {"", "scales of the next step, from a history of each"}},
      {&kSquaredSum, kGradientNorm},
      {&kClipScale, kGradientNorm},
      {&kLossScale, kGradientNorm},
      {&kFill, {"", "sets what others add to"}},
      {&kFillUniform, {"", "the input of a model without an embedding"}},
      {&kEmbedding, {"", "a row a token"}},
      {&kEmbeddingBackward, {"", "a row a token, added to the table's gradient"}},
      {&kColumnSum, {"", "a bias's gradient: a product of the same numbers could add it up"}},
      {&kDropoutBackward, {"", "the gradient of a branch beside the residual's"}},
      {&kAllGather, kRanks},
      {&kReduceScatter, kRanks},
      {&kAllReduce, kRanks},
      {&kSumOverRanks, kRanks},
      {&kMaxOverRanks, kRanks},
      {&kLand, kRanks},
  };
  return places;
}

Place PlaceOf(const OpCall& call) {
  if (call.phase == Phase::kRecompute) return kRecomputed;
  if (call.op == &kQuantize && call.cost.more_bytes > 0) return kTwoPasses;
  const auto found = Places().find(call.op);
  return found == Places().end() ? Place{"", "the budget does not know this op"} : found->second;
}

double ProductFlops(MathFormat format, const DeviceSpeed& speed) {
  switch (format) {
    case MathFormat::kF32:
      return speed.fp32_flops;
    case MathFormat::kTF32:
      return speed.tf32_flops;
    case MathFormat::kFp8:
      return speed.fp8_flops;
    case MathFormat::kMxfp8:
      return speed.mxfp8_flops;
    case MathFormat::kFp4:
      return speed.fp4_flops;
    case MathFormat::kBF16:
    case MathFormat::kF16:
      break;
  }
  return speed.flops;
}

double FlopsOf(const OpCall& call, const DeviceSpeed& speed) {
  const MathFormat format = MultipliedFormat(call);
  if (format != MathFormat::kF32 && call.op == &kAttentionForward) return speed.attention_flops;
  if (format != MathFormat::kF32 && call.op == &kAttentionBackward) return speed.attention_backward_flops;
  return ProductFlops(format, speed);
}

}  // namespace

MathFormat MultipliedFormat(const OpCall& call) { return IsEmulated(call) ? MathFormat::kBF16 : call.cost.format; }

std::string_view MathFormatName(MathFormat format) {
  switch (format) {
    case MathFormat::kF32:
      return "fp32";
    case MathFormat::kTF32:
      return "tf32";
    case MathFormat::kBF16:
      return "bf16";
    case MathFormat::kF16:
      return "fp16";
    case MathFormat::kFp8:
      return "fp8";
    case MathFormat::kMxfp8:
      return "mxfp8";
    case MathFormat::kFp4:
      return "fp4";
  }
  return "";
}

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "";
}

double ScratchBytes(const OpCall& call) {
  double bytes = 0;
  for (const Tensor& tensor : call.scratch()) {
    if (tensor.defined() && tensor.dtype != DType::kU8) bytes += 2 * static_cast<double>(tensor.bytes());
  }
  return bytes;
}

Peak PeakOf(const Trace& trace, const DeviceSpeed& speed) {
  std::map<MathFormat, double> flops;
  for (const OpCall& call : trace.calls()) flops[MultipliedFormat(call)] += call.cost.flops;
  const MathFormat most = std::ranges::max_element(flops, {}, &std::pair<const MathFormat, double>::second)->first;
  return {MathFormatName(most), ProductFlops(most, speed) / (most == MathFormat::kF32 ? 1 : speed.product_share)};
}

double LeastNs(const OpCall& call, const DeviceSpeed& speed) {
  return 1e9 * std::max(call.cost.flops / FlopsOf(call, speed), (call.bytes() + ScratchBytes(call)) / speed.bytes);
}

std::vector<BudgetLine> Budget(const Trace& trace, const DeviceSpeed& speed) {
  std::map<std::pair<std::string_view, Phase>, BudgetLine> by_op;
  for (const OpCall& call : trace.calls()) {
    BudgetLine& line = by_op[{call.op->name, call.phase}];
    const Place place = PlaceOf(call);
    line.part = place.part;
    line.reason = place.reason;
    line.op = call.op->name;
    line.phase = call.phase;
    const double scratch = ScratchBytes(call);
    line.calls += 1;
    line.bytes += call.bytes();
    line.scratch_bytes += scratch;
    line.flops += call.cost.flops;
    line.floor_ns += LeastNs(call, speed);
  }
  std::map<std::string_view, double> part_ns;
  std::vector<BudgetLine> lines;
  for (const auto& [key, line] : by_op) {
    part_ns[line.part] += line.floor_ns;
    lines.push_back(line);
  }
  std::stable_sort(lines.begin(), lines.end(), [&](const BudgetLine& a, const BudgetLine& b) {
    if (a.part != b.part) return b.part.empty() || (!a.part.empty() && part_ns[a.part] > part_ns[b.part]);
    return a.floor_ns > b.floor_ns;
  });
  return lines;
}

}  // namespace ridgeline
