#include "engine/step/call_shape.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "engine/comm/collective.h"
#include "engine/ops/attention.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/gemm.h"
#include "engine/ops/quantize.h"
#include "engine/step/budget.h"

namespace ridgeline {
namespace {

constexpr unsigned kOperandBits = 4;
constexpr unsigned kQuantizerBits = 7;

bool IsAttention(const OpDef* op) { return op == &kAttentionForward || op == &kAttentionBackward; }
bool IsProduct(const OpDef* op) { return op == &kGemm || op == &kQuantizedGemm; }
bool IsCollective(const OpDef* op) {
  return op == &kAllGather || op == &kReduceScatter || op == &kAllReduce || op == &kSumOverRanks ||
         op == &kMaxOverRanks;
}

uint32_t BitsOf(const Quantizer& quantizer) {
  return static_cast<uint32_t>(quantizer.format) | static_cast<uint32_t>(quantizer.scaling) << 2U |
         static_cast<uint32_t>(quantizer.rounding) << 5U | static_cast<uint32_t>(quantizer.hadamard) << 6U;
}

std::string NameOfBits(uint32_t bits) {
  static constexpr std::string_view kFormats[] = {"e4m3", "e5m2", "e2m1", "?"};
  static constexpr std::string_view kScalings[] = {"delayed",    "current", "block32", "block16",
                                                   "block16x16", "?",       "?",       "?"};
  return fmt::format("{}.{}{}{}", kFormats[bits & 3U], kScalings[bits >> 2U & 7U],
                     (bits >> 5U & 1U) != 0 ? ".stochastic" : "", (bits >> 6U & 1U) != 0 ? ".hadamard" : "");
}

uint32_t VariantOf(const OpCall& call) {
  if (call.op == &kGemm) {
    const GemmAttrs& attrs = call.attrs(kGemm);
    return static_cast<uint32_t>(attrs.trans_a) | static_cast<uint32_t>(attrs.trans_b) << 1U |
           static_cast<uint32_t>(attrs.tf32) << 2U;
  }
  if (call.op == &kQuantizedGemm) {
    const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
    return BitsOf(attrs.a) | BitsOf(attrs.b) << kQuantizerBits;
  }
  if (call.op == &kQuantize) {
    const QuantizeAttrs& attrs = call.attrs(kQuantize);
    const QuantizeOperands on = call.operands(kQuantize);
    return (on.writes.row.codes.defined() ? BitsOf(attrs.row) : 0) |
           (on.writes.col.codes.defined() ? BitsOf(attrs.col) : 0) << kQuantizerBits;
  }
  if (call.op == &kDequantize) return BitsOf(call.attrs(kDequantize));
  if (call.op == &kTransposeQuantized) return BitsOf(call.attrs(kTransposeQuantized));
  if (call.op == &kDropoutAdd) return call.attrs(kDropoutAdd).p > 0 ? 1 : 0;
  return 0;
}

std::string NameOfVariant(const CallClass& of) {
  constexpr uint32_t kOne = (1U << kQuantizerBits) - 1;
  if (of.op == &kGemm) {
    return fmt::format(" {}{}{}", (of.variant & 1U) != 0 ? 't' : 'n', (of.variant >> 1U & 1U) != 0 ? 't' : 'n',
                       of.variant >> 2U != 0 ? " tf32" : "");
  }
  if (of.op == &kQuantizedGemm || of.op == &kQuantize) {
    return fmt::format(" {} {}", NameOfBits(of.variant & kOne), NameOfBits(of.variant >> kQuantizerBits));
  }
  if (of.op == &kDequantize || of.op == &kTransposeQuantized) return " " + NameOfBits(of.variant);
  if (of.op == &kDropoutAdd) return of.variant != 0 ? " dropped" : " kept";
  return "";
}

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
  shape.of.variant = VariantOf(call);
  const double bytes = std::max(1.0, call.bytes() + ScratchBytes(call));
  if (IsProduct(call.op)) {
    const ProductSize size = ProductSizeOf(call);
    shape.dims = {size.m, size.n, size.k};
  } else if (IsAttention(call.op)) {
    const AttentionShape& attention =
        call.op == &kAttentionForward ? call.attrs(kAttentionForward) : call.attrs(kAttentionBackward);
    shape.dims = {attention.batch * attention.heads, attention.seq, attention.head_dim};
  } else if (IsCollective(call.op)) {
    shape.dims = {std::max<int64_t>(1, static_cast<int64_t>(call.cost.wire_bytes)), 0, 0};
  } else {
    shape.dims = {static_cast<int64_t>(bytes), ColumnsOfLargest(call), 0};
  }
  return shape;
}

size_t DimsOf(const CallClass& of) {
  if (IsProduct(of.op) || IsAttention(of.op)) return 3;
  return IsCollective(of.op) ? 1 : 2;
}

std::string ClassName(const CallClass& of) {
  static constexpr std::string_view kNames[] = {"-", "fp32", "bf16", "fp16", "int16", "int32", "uint8"};
  std::string name = of.op->name + NameOfVariant(of);
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

}  // namespace ridgeline
