// The elementwise parts of attention, on blocks of scores, vectorised. Exponentials are of base 2: `scale` includes
// log2(e). Blocks are dense; p and ds are fp32 or bf16, whichever the products multiply.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// One block of the online softmax (Milakov & Gimelshein, 2018). Row r of scores (rows, cols) sees its first `visible` +
// r columns (none if that is negative, all if it exceeds them).
struct SoftmaxBlock {
  float* scores;  // overwritten
  int64_t rows, cols;
  int64_t visible;
  float scale;
  float* row_max;  // (rows): the maximum of score * scale over all blocks so far; starts at -infinity
  float* row_sum;  // (rows): the sum of 2^(score * scale - row_max); starts at 0
  float* out;      // (rows, head_dim): the sums of p v so far, scaled to the new maximum
  int64_t head_dim;
};
// p = 2^(score * scale - row_max); 0 for columns that are not seen.
void AddSoftmaxBlock(const SoftmaxBlock& block, void* p, DType p_dtype);

// Transposed: row r is a key, and columns are queries. The columns from `seen_from` + r on see row r.
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
// p = 2^(score * scale - lse), ds = p * (dp - delta) * plain_scale; 0 for rows that are not seen.
void ScoreGradients(const GradientBlock& block, void* p, void* ds, DType dtype);

// Returns the sum of a[i] * b[i], fp32 or bf16.
float DotRow(const void* a, const void* b, DType dtype, int64_t n);
// x[i] *= factor.
void ScaleRow(float* x, float factor, int64_t n);

}  // namespace ridgeline::engine
