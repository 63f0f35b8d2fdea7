#include "engine/step/call_shape.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "engine/step/budget.h"

namespace ridgeline::engine {
namespace {

constexpr unsigned kOperandBits = 4;

int64_t ColumnsOfLargest(const OpCall& call) {
  const Tensor* largest = nullptr;
  for (const Tensor& tensor : call.tensors()) {
    if (tensor.defined() && (largest == nullptr || tensor.elements() > largest->elements())) largest = &tensor;
  }
  return largest == nullptr ? 1 : largest->cols;
}

}  // namespace

CallShape CallShapeOf(const OpCall& call) {
  CallShape shape;
  shape.of.op = call.op;
  unsigned at = 0;
  for (const auto& group : {call.reads(), call.writes()}) {
    for (const Tensor& tensor : group) {
      if (tensor.defined())
        shape.of.operands |= (uint64_t{1} + static_cast<uint64_t>(tensor.dtype)) << (kOperandBits * at);
      ++at;
    }
  }
  shape.of.operands |= uint64_t{0xf} << (kOperandBits * at);  // an end mark, so that names show where operands end
  if (call.op->variants.of != nullptr) shape.of.variant = call.op->variants.of(call);
  switch (call.op->kind) {
    case OpKind::kProduct:
    case OpKind::kForwardAttention:
    case OpKind::kBackwardAttention:
      shape.dims = call.op->dims(call);
      break;
    case OpKind::kTakeOff:
    case OpKind::kAtOnce:
      shape.dims = {std::max<int64_t>(1, static_cast<int64_t>(call.cost.wire_bytes)), 0, 0};
      break;
    case OpKind::kPass:
    case OpKind::kLanding:
      shape.dims = {static_cast<int64_t>(std::max(1.0, call.bytes() + ScratchBytes(call))), ColumnsOfLargest(call), 0};
      break;
  }
  return shape;
}

size_t DimsOf(const CallClass& of) {
  switch (of.op->kind) {
    case OpKind::kProduct:
    case OpKind::kForwardAttention:
    case OpKind::kBackwardAttention:
      return 3;
    case OpKind::kTakeOff:
    case OpKind::kAtOnce:
      return 1;
    case OpKind::kPass:
    case OpKind::kLanding:
      break;
  }
  return 2;
}

std::string ClassName(const CallClass& of) {
  static constexpr std::string_view kNames[] = {"-", "fp32", "bf16", "fp16", "int16", "int32", "uint8"};
  std::string name = of.op->name;
  if (of.op->variants.name != nullptr) name += of.op->variants.name(of.variant);
  for (uint64_t left = of.operands; left != 0xf && left != 0; left >>= kOperandBits) {
    name += ' ';
    name += kNames[std::min<uint64_t>(left & 0xfU, 6)];
  }
  return name;
}

size_t HashOfClass::operator()(const CallClass& of) const {
  constexpr size_t kMix = 0x9e3779b97f4a7c15;
  size_t hash = std::hash<const void*>()(of.op);
  hash = (hash ^ of.operands) * kMix;
  return (hash ^ hash >> 29U ^ of.variant) * kMix;
}

}  // namespace ridgeline::engine
