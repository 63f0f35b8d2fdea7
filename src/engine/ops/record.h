// Helpers of the functions that record calls: they check operands, and size deterministic reductions.
//
// The contract of every op header: a function records one call and computes nothing. It throws Error(kInternal), naming
// the op, the rule and every operand's dtype and shape, if an operand breaks what the header says about it. That is the
// caller's fault, not the user's. "Floating" is fp32, bf16 or fp16; all computation between loading and storing is
// fp32. Operands are contiguous unless the header allows strides, and may share memory only if it says so.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

#include "base/error.h"
#include "engine/device/trace.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

struct Operand {
  const char* name;
  const Tensor& tensor;
};

// Throws "op: rule; got x bf16 (3, 4), …" unless `ok`.
inline void Require(bool ok, const OpDef& op, const char* rule, std::initializer_list<Operand> operands) {
  if (ok) return;
  std::string text = fmt::format("{}: {}; got", op.name, rule);
  const char* separator = " ";
  for (const Operand& operand : operands) {
    const Tensor& t = operand.tensor;
    text += separator;
    separator = ", ";
    if (!t.defined()) {
      fmt::format_to(std::back_inserter(text), "{} undefined", operand.name);
    } else {
      fmt::format_to(std::back_inserter(text), "{} {} ({}, {})", operand.name, DTypeName(t.dtype), t.rows, t.cols);
      if (!t.contiguous()) fmt::format_to(std::back_inserter(text), " stride {}", t.row_stride);
    }
  }
  throw Error(ErrorKind::kInternal, text);
}

inline bool IsFloat(const Tensor& t) {
  return t.defined() && (t.dtype == DType::kF32 || t.dtype == DType::kBF16 || t.dtype == DType::kF16);
}
inline bool IsF32OrBf16(const Tensor& t) { return IsFloat(t) && t.dtype != DType::kF16; }
inline bool Is(const Tensor& t, DType dtype, int64_t rows, int64_t cols) {
  return t.defined() && t.contiguous() && t.dtype == dtype && t.rows == rows && t.cols == cols;
}
// A contiguous tensor of a's dtype and shape.
inline bool IsLike(const Tensor& t, const Tensor& a) { return Is(t, a.dtype, a.rows, a.cols); }
inline bool IsScalar(const Tensor& t) { return Is(t, DType::kF32, 1, 1); }
inline bool SamePlace(const Tensor& a, const Tensor& b) { return a.storage == b.storage && a.offset == b.offset; }

inline MathFormat MathFormatOf(DType dtype) {
  if (dtype == DType::kBF16) return MathFormat::kBF16;
  return dtype == DType::kF16 ? MathFormat::kF16 : MathFormat::kF32;
}

// Sums over rows are computed in this many parts of consecutive rows, which are added in order. Only the shape decides.
inline int64_t RowParts(int64_t rows) { return std::clamp<int64_t>((rows + 31) / 32, 1, 64); }
// Columns of a workspace row that kernels fill with whole vectors.
inline int64_t PaddedCols(int64_t cols) { return (cols + 63) / 64 * 64; }

// The same for sums over all elements: parts of at least 2^16 elements, at most 1024.
inline int64_t ElementParts(int64_t elements) { return std::clamp<int64_t>((elements + 0xffff) >> 16, 1, 1024); }

}  // namespace ridgeline::engine
