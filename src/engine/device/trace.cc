#include "engine/device/trace.h"

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::engine {
namespace {

constexpr size_t kMostSpareCalls = 4096;  // memory for more calls is freed

struct SpareCalls {
  ~SpareCalls() { is_gone = true; }
  std::vector<OpCall> calls;  // empty, but with capacity
  static thread_local bool is_gone;
};
thread_local bool SpareCalls::is_gone = false;
thread_local SpareCalls spare_calls;

}  // namespace

void CallList::TakeRoom() {
  if (!SpareCalls::is_gone) calls.swap(spare_calls.calls);
}

CallList::~CallList() {
  if (SpareCalls::is_gone || calls.capacity() <= spare_calls.calls.capacity() || calls.capacity() > kMostSpareCalls)
    return;
  calls.clear();
  calls.swap(spare_calls.calls);
}

double OpCall::bytes() const {
  double bytes = cost.more_bytes;
  for (const auto& group : {reads(), writes()}) {
    for (const Tensor& tensor : group) {
      if (tensor.defined()) bytes += static_cast<double>(tensor.bytes());
    }
  }
  return bytes;
}

void OpCall::RequireOp(const OpDef& of) const {
  if (op == &of) return;
  throw Error(ErrorKind::kInternal, fmt::format("a call of {} was taken for one of {}", op->name, of.name));
}

void OpCall::RequireAttrs(const void* type) const {
  if (op->attrs_type == type) return;
  throw Error(ErrorKind::kInternal, fmt::format("a call of {} has attributes of another type", op->name));
}

void Trace::RequireCostOfKind(const OpDef& op, const Cost& cost) {
  if (cost.flops > 0 && !Multiplies(op.kind)) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{} states FLOPs, and its row says that it multiplies nothing", op.name));
  }
  if (cost.wire_bytes > 0 && !MovesBetweenRanks(op.kind)) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{} states bytes to other ranks, and its row says that it is no collective", op.name));
  }
}

Tensor Trace::Inputs() {
  if (!inputs_.defined()) {
    inputs_ = Persistent(DType::kI32, 1, sizeof(StepInputs) / sizeof(int32_t), Category::kData);
  }
  return inputs_;
}

Tensor Trace::Add(DType dtype, int64_t rows, int64_t cols, Category category, bool persistent) {
  const auto id = static_cast<StorageId>(storages_.size());
  storages_.push_back({rows * cols * SizeOf(dtype), category, persistent});
  return {id, dtype, rows, cols, cols, 0};
}

}  // namespace ridgeline::engine
