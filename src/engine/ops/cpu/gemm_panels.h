// The inner loops of matrix products, one set for each class of CPU: how blocks of the operands are laid out (packed)
// and multiplied. What they have in common is in gemm_packed.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/cpu_class.h"
#include "engine/tensor/tensor.h"

namespace ridgeline {

// Part of an operand as it lies, of the dtype that is multiplied: `count` rows of a or columns of b, and of each
// `terms` that are summed over.
struct PanelSource {
  const std::byte* data;
  int64_t stride;  // elements from one of the count to the next where terms_contiguous, else between terms
  bool terms_contiguous;
  int64_t count, terms;
};

// A step multiplies 32-bit words: an fp32, or a pair of bf16 that are neighbours in k. A panel is `rows` of a or `cols`
// of b with all steps of a block; panels lie one after another, and what fills the last one up is zero.
struct PanelKernel {
  int64_t rows;         // of a panel of a
  int64_t cols;         // of a panel of b
  int64_t step_unit;    // a panel's steps are a multiple of it
  int64_t pack_rows;    // of a, packed at once: a multiple of rows
  int64_t block_rows;   // of a, packed before they are multiplied, at most: a multiple of pack_rows
  int64_t block_steps;  // of a block, at most: its size, a block of a and a panel of b stay in the second-level cache
  // What packing a row of a takes beside reading a column of packed b, by what was measured fastest.
  int64_t row_cost;

  // Panels of `steps` steps from what `from` has, at `to`.
  void (*pack_a)(const PanelSource& from, int64_t steps, uint32_t* to);
  void (*pack_b)(const PanelSource& from, int64_t steps, uint32_t* to);
  // to (rows, cols) = [from +] panel of a · panel of b, in fp32. ld_from, ld_to: elements between rows. from may be to.
  // soon: `steps` words for each of soon_words, which may be fetched ahead.
  void (*multiply)(int64_t steps, const uint32_t* a, const uint32_t* b, const float* from, int64_t ld_from, float* to,
                   int64_t ld_to, const uint32_t* soon, int64_t soon_words);
  // c (height, width) = scale · tile [+ bias] [+ c]; tile has rows of `cols`. bias may be nullptr.
  void (*finish)(const float* tile, int64_t height, int64_t width, float scale, const float* bias, std::byte* c,
                 int64_t ldc, DType dtype, bool accumulate);
  // A thread calls these before its first product and after its last one. May be nullptr.
  void (*enter)();
  void (*leave)();
};

// What this CPU multiplies bf16 in: pairs of bf16 where it can, else fp32.
inline bool CpuMultipliesBf16() { return ThisCpuClass() >= CpuClass::kAvx512Bf16; }

// The kernel of this CPU for fp32, or for bf16 where CpuMultipliesBf16().
const PanelKernel& PanelKernelFor(DType in);

// Of one class each.
PanelKernel AnyCpuPanels();  // fp32
PanelKernel Avx512Panels();  // fp32
PanelKernel Avx512Bf16Panels();
PanelKernel AmxPanels();

}  // namespace ridgeline
