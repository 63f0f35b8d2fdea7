// The inner loops of matrix products, one set for each class of CPU: how blocks of the operands are laid out (packed)
// and multiplied. gemm_packed.cc has the common parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/cpu_class.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// A part of an operand as stored, in the multiplied dtype: `count` rows of a or columns of b, and `terms` summed terms
// of each.
struct PanelSource {
  const std::byte* data;
  int64_t stride;  // elements from one of the count to the next if terms_contiguous, else between terms
  bool terms_contiguous;
  int64_t count, terms;
};

// A step multiplies 32-bit words: an fp32, or a pair of bf16 that are neighbours in k. A panel is `rows` of a or `cols`
// of b with all steps of a block. Panels lie one after another, and the last one is filled up with zeros.
struct PanelKernel {
  int64_t rows;        // in a panel of a
  int64_t cols;        // in a panel of b
  int64_t step_unit;   // a panel's steps are a multiple of it
  int64_t pack_rows;   // rows of a that are packed at once: a multiple of rows
  int64_t block_rows;  // the most rows of a that are packed before they are multiplied: a multiple of pack_rows
  int64_t
      block_steps;  // the most steps of a block: with it, a block of a and a panel of b stay in the second-level cache
  // The cost of packing a row of a relative to reading a column of packed b; the value that measured fastest.
  int64_t row_cost;

  // Writes panels of `steps` steps from the elements of `from` to `to`.
  void (*pack_a)(const PanelSource& from, int64_t steps, uint32_t* to);
  void (*pack_b)(const PanelSource& from, int64_t steps, uint32_t* to);
  // to (rows, cols) = [from +] panel of a · panel of b, in fp32. ld_from, ld_to: elements between rows. from may be to.
  // soon: a hint; for each of the soon_words, `steps` words may be fetched ahead.
  void (*multiply)(int64_t steps, const uint32_t* a, const uint32_t* b, const float* from, int64_t ld_from, float* to,
                   int64_t ld_to, const uint32_t* soon, int64_t soon_words);
  // c (height, width) = scale · tile [+ bias] [+ c]; tile has rows of `cols`. bias may be nullptr.
  void (*finish)(const float* tile, int64_t height, int64_t width, float scale, const float* bias, std::byte* c,
                 int64_t ldc, DType dtype, bool accumulate);
  // A thread calls these before its first product and after its last one. May be nullptr.
  void (*enter)();
  void (*leave)();
};

// Whether this CPU multiplies pairs of bf16. Without it, bf16 is multiplied as fp32.
inline bool CpuMultipliesBf16() { return ThisCpuClass() >= CpuClass::kAvx512Bf16; }

// Returns this CPU's kernel for fp32, or for bf16 if CpuMultipliesBf16().
const PanelKernel& PanelKernelFor(DType in);

// The kernels of one class each.
PanelKernel AnyCpuPanels();  // fp32
PanelKernel Avx512Panels();  // fp32
PanelKernel Avx512Bf16Panels();
PanelKernel AmxPanels();

}  // namespace ridgeline::engine
