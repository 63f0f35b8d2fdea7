// Tensors without data: dtype, shape, stride and a handle to a storage. The same on every device.
#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace ridgeline::engine {

enum class DType : uint8_t { kF32, kBF16, kF16, kI16, kI32, kU8 };  // kU8: codes of 8- and 4-bit formats

constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
    case DType::kI16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}
std::string_view DTypeName(DType dtype);  // "fp32", "bf16", "fp16", "int16", "int32", "uint8"

// The purpose of a storage. Reports divide the planned peak by category.
enum class Category : uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace, kLogits, kData };
inline constexpr int kCategoryCount = 7;
std::string_view CategoryName(Category category);  // "parameters", "gradients", …

// Index of a storage in its Trace.
using StorageId = int32_t;

// A view of a storage as a matrix: `rows` rows of `cols` elements, `row_stride` elements apart, beginning at `offset`
// elements. A vector is one row. Activations are (tokens, features) with tokens = batch x sequence, sequence fastest.
struct Tensor {
  StorageId storage = -1;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t offset = 0;

  bool defined() const { return storage >= 0; }
  int64_t elements() const { return rows * cols; }
  int64_t bytes() const { return elements() * SizeOf(dtype); }
  bool contiguous() const { return row_stride == cols || rows == 1; }

  // Rows [first, first + count).
  Tensor Rows(int64_t first, int64_t count) const {
    assert(first >= 0 && first + count <= rows);
    Tensor view = *this;
    view.offset += first * row_stride;
    view.rows = count;
    return view;
  }
  // Columns [first, first + count): strided.
  Tensor Cols(int64_t first, int64_t count) const {
    assert(first >= 0 && first + count <= cols);
    Tensor view = *this;
    view.offset += first;
    view.cols = count;
    return view;
  }
  // The same elements with another row length; contiguous tensors only.
  Tensor Reshape(int64_t new_rows, int64_t new_cols) const {
    assert(contiguous() && new_rows * new_cols == elements());
    Tensor view = *this;
    view.rows = new_rows;
    view.cols = new_cols;
    view.row_stride = new_cols;
    return view;
  }
};

}  // namespace ridgeline::engine
