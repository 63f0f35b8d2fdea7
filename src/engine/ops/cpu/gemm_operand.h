// How a matrix product reads its operands: in place, or converted on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/cpu/gemm_rows.h"
#include "engine/ops/cpu/quantized_rows.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// One operand of a product: element (i, k), where i counts rows of op(a) or columns of op(b), and k is summed over.
class ProductOperand {
 public:
  struct Block {
    const std::byte* data;  // of the multiplied dtype
    int64_t stride;         // elements from one i to the next if terms_contiguous(), else from one k to the next
  };
  explicit ProductOperand(bool terms_contiguous) : terms_contiguous_(terms_contiguous) {}
  virtual ~ProductOperand() = default;

  // Returns elements [i, i + count) x [k, k + terms): in place, or converted into `room`, which has space for count x
  // terms of them, without gaps.
  virtual Block Read(int64_t i, int64_t count, int64_t k, int64_t terms, std::byte* room) const = 0;

  // Whether neighbours in memory are neighbours in k, or else in i.
  bool terms_contiguous() const { return terms_contiguous_; }

 private:
  bool terms_contiguous_;
};

// An operand that already has the multiplied dtype.
class StoredOperand final : public ProductOperand {
 public:
  StoredOperand(const std::byte* data, int64_t stride, bool terms_contiguous, DType dtype)
      : ProductOperand(terms_contiguous), data_(data), stride_(stride), size_(SizeOf(dtype)) {}
  Block Read(int64_t i, int64_t /*count*/, int64_t k, int64_t /*terms*/, std::byte* /*room*/) const override {
    return {data_ + (terms_contiguous() ? i * stride_ + k : k * stride_ + i) * size_, stride_};
  }

 private:
  const std::byte* data_;
  int64_t stride_;
  int64_t size_;
};

// An operand that is converted to fp32: narrower numbers are widened, and with `tf32`, fp32 is rounded to TF32.
class ConvertedOperand final : public ProductOperand {
 public:
  ConvertedOperand(const std::byte* data, int64_t stride, bool terms_contiguous, DType dtype, bool tf32)
      : ProductOperand(terms_contiguous),
        stored_(data, stride, terms_contiguous, dtype),
        dtype_(dtype),
        convert_(tf32 ? RoundRowToTf32 : WidenRow) {}
  Block Read(int64_t i, int64_t count, int64_t k, int64_t terms, std::byte* room) const override {
    const Block from = stored_.Read(i, count, k, terms, nullptr);
    const int64_t rows = terms_contiguous() ? count : terms;
    const int64_t cols = terms_contiguous() ? terms : count;
    for (int64_t row = 0; row < rows; ++row) {
      convert_(from.data + row * from.stride * SizeOf(dtype_), dtype_, reinterpret_cast<float*>(room) + row * cols,
               cols);
    }
    return {room, cols};
  }

 private:
  StoredOperand stored_;
  DType dtype_;
  void (*convert_)(const void* in, DType dtype, float* out, int64_t n);
};

// A quantized operand, multiplied as bf16 or fp32 without its tensor scale.
class QuantizedOperand final : public ProductOperand {
 public:
  QuantizedOperand(const QuantizedData& data, DType multiplied)
      : ProductOperand(true), data_(data), multiplied_(multiplied) {}
  Block Read(int64_t i, int64_t count, int64_t k, int64_t terms, std::byte* room) const override {
    if (multiplied_ == DType::kBF16) {
      DequantizePart(data_, i, count, k, terms, reinterpret_cast<uint16_t*>(room), terms);
    } else {
      DequantizePart(data_, i, count, k, terms, reinterpret_cast<float*>(room), terms);
    }
    return {room, terms};
  }

 private:
  QuantizedData data_;
  DType multiplied_;
};

}  // namespace ridgeline::engine
