#include "engine/step/budget.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ridgeline::engine {
namespace {

constexpr BudgetPlace kRecomputed = BesideBudget("computed again instead of kept, as checkpointing says");

BudgetPlace PlaceOf(const OpCall& call) {
  if (call.phase == Phase::kRecompute) return kRecomputed;
  BudgetPlace place = call.op->budget;
  if (call.cost.more_bytes > 0 && !place.reason_of_more.empty()) place.reason = place.reason_of_more;
  return place;
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
  if (format == MathFormat::kF32) return ProductFlops(format, speed);
  switch (call.op->kind) {
    case OpKind::kForwardAttention:
      return speed.attention_flops;
    case OpKind::kBackwardAttention:
      return speed.attention_backward_flops;
    case OpKind::kProduct:
    case OpKind::kPass:
    case OpKind::kTakeOff:
    case OpKind::kAtOnce:
    case OpKind::kLanding:
      break;
  }
  return ProductFlops(format, speed);
}

}  // namespace

MathFormat MultipliedFormat(const OpCall& call) { return call.cost.emulated ? MathFormat::kBF16 : call.cost.format; }

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
    const BudgetPlace place = PlaceOf(call);
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

}  // namespace ridgeline::engine
