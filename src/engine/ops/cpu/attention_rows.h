// The element-wise parts of attention, on blocks of scores, vectorised. Exponentials are of base 2: `scale` includes
// log2(e). Blocks are dense; p and ds are fp32 or bf16, as the products they enter multiply.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace ridgeline {

// One block of the online softmax (Milakov & Gimelshein, 2018). Row r of scores (rows, cols) sees its first
// `visible` + r columns (none where that is negative, all where it is more than there are).
struct SoftmaxBlock {
  float* scores;  // overwritten
  int64_t rows, cols;
  int64_t visible;
  float scale;
  float* row_max;  // (rows): of all blocks until now, of score * scale; begins at -infinity
  float* row_sum;  // (rows): of 2^(score * scale - row_max); begins at 0
  float* out;      // (rows, head_dim): the sums of p v until now, brought to the new maximum
  int64_t head_dim;
};
// p = 2^(score * scale - row_max), 0 where a column is not seen.
void AddSoftmaxBlock(const SoftmaxBlock& block, void* p, DType p_dtype);

// Transposed: row r is a key, columns are queries; row r is seen by the columns from `seen_from` + r on.
struct GradientBlock {
  const float* scores;  // (rows, cols)
  const float* dp;      // (rows, cols): v d_o^T
  int64_t rows, cols;
  int64_t seen_from;
  float scale;         // with log2(e)
  float plain_scale;   // without
  const float* lse;    // (cols): log-sum-exps, times log2(e)
  const float* delta;  // (cols): sum of o * d_o
};
// p = 2^(score * scale - lse), ds = p * (dp - delta) * plain_scale; 0 where a row is not seen.
void ScoreGradients(const GradientBlock& block, void* p, void* ds, DType dtype);

// sum of a[i] * b[i], fp32 or bf16.
float DotRow(const void* a, const void* b, DType dtype, int64_t n);
// x[i] *= factor.
void ScaleRow(float* x, float factor, int64_t n);

}  // namespace ridgeline
