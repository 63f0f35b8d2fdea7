// Matrices into and out of the formats of 8 and 4 bits.
#pragma once

#include "engine/device/trace.h"
#include "engine/ops/elementwise.h"
#include "engine/precision/quantizer.h"

namespace ridgeline {

// Tensor cores read the scales of blocks in tiles of so many rows and columns, each in an order of its own. Storages of
// scales have room for whole tiles on every device, so that a plan is the same on all. Every device keeps them row
// after row at its beginning, as who reads codes back takes them; products for tensor cores bring them into tiles
// (gemm.h).
inline constexpr int64_t kScaleTileRows = 128;
inline constexpr int64_t kScaleTileCols = 4;

// The storages of a quantized (outer, inner) matrix, without contents.
QuantizedTensor NewQuantized(Trace& trace, const Quantizer& quantizer, int64_t outer, int64_t inner, Category category,
                             bool persistent = false);

// A tensor's slot of delayed scaling: views into persistent tensors. Undefined unless a quantizer is kDelayed.
struct DelayedScale {
  Tensor scale;  // (1, 1) fp32, read
  Tensor amax;   // (1, 1) fp32, becomes the larger of it and the tensor's; NaN is larger than all
};

// A matrix is quantized tile by tile: rows enough for whole cache lines of a transposed output, columns for the first
// caches.
inline constexpr int64_t kQuantizeTileRows = 128;
inline constexpr int64_t kQuantizeTileCols = 256;
constexpr int64_t QuantizeTiles(int64_t rows, int64_t cols) {
  return (rows + kQuantizeTileRows - 1) / kQuantizeTileRows * ((cols + kQuantizeTileCols - 1) / kQuantizeTileCols);
}

struct QuantizeOperands {
  struct {
    Tensor x;
    Tensor delayed_scale, delayed_amax;
    Tensor inputs;  // for stochastic rounding
  } reads;
  struct {
    StoredCodes row, col;
    Tensor delayed_amax;
  } writes;
  struct {
    Tensor amaxes;  // (2, tiles) fp32: of tiles as they are, and transformed; undefined without need
  } scratch;
};
struct QuantizeAttrs {
  Quantizer row;  // those of the orientations that are there
  Quantizer col;
  uint32_t stream = 0;
};
extern const Op<QuantizeOperands, QuantizeAttrs> kQuantize;

struct DequantizeOperands {
  struct {
    StoredCodes q;
  } reads;
  struct {
    Tensor y;
  } writes;
};
extern const Op<DequantizeOperands, Quantizer> kDequantize;

struct TransposeQuantizedOperands {
  struct {
    Tensor codes, scales;
  } reads;
  struct {
    Tensor codes, scales;
  } writes;
};
extern const Op<TransposeQuantizedOperands, Quantizer> kTransposeQuantized;

struct UpdateDelayedScalesOperands {
  struct {
    Tensor history, scale, amax;
  } reads;
  struct {
    Tensor history, scale, amax;
  } writes;
};
extern const Op<UpdateDelayedScalesOperands, Format> kUpdateDelayedScales;

// Where a columnwise orientation's random numbers begin in its stream: an element's are RoundingBits(seed, step,
// stream, outer_index * DrawCols(inner) + inner_index [+ this], draw_bits()).
inline constexpr int64_t kColumnwiseDraws = int64_t{1} << 60;

// x (rows, cols), fp32 or bf16, strided allowed, quantized along its rows, along its columns or both, each from x
// itself: *row is (rows, cols), *col (cols, rows), transposed. Either may be nullptr. Both have one Scaling (16x16
// blocks are then the same ones) and one Format. *row has no Hadamard transform; with one, x must be bf16. Reads x
// once, and twice where scales depend on the amax of the whole of it. `stream`: of stochastic rounding, which is of
// rows alone where columns have the rows' scales: Transposed gives those.
void Quantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col, DelayedScale delayed,
              RandomStream stream);

// y (outer, inner), fp32 or bf16, = (code * block scale) * tensor scale. Not of transformed ones.
void Dequantize(Trace& trace, const QuantizedTensor& q, Tensor y);

// q turned round, (inner, outer), where columns have the scales of rows: with one scale for all, and in blocks of 16 by
// 16. These are then the codes and scales that quantizing the columns gives, and share q's tensor scale.
QuantizedTensor Transposed(Trace& trace, const QuantizedTensor& q, Category category);

// Delayed scaling between steps, as TransformerEngine has it, for all slots of one format: amax (slots, 1) joins
// history (slots, length) as its newest, in place of the oldest; scale (slots, 1) becomes max(format) / the history's
// largest, at most FLT_MAX, or stays where that is 0, infinite or NaN; amax becomes 0. All fp32 and contiguous; in the
// beginning history and amax are 0 and scale is 1. Where ranks share a tensor, amax is to be max-reduced before.
void UpdateDelayedScales(Trace& trace, Tensor history, Tensor scale, Tensor amax, Format format);

}  // namespace ridgeline
