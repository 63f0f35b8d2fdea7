// Converts matrices to and from the formats of 8 and 4 bits.
#pragma once

#include <cstdint>
#include <string>

#include "engine/device/trace.h"
#include "engine/ops/elementwise.h"
#include "engine/precision/quantizer.h"

namespace ridgeline::engine {

// Tensor cores read block scales in tiles of this many rows and columns, each in an order of its own. Storages of
// scales have room for whole tiles on every device, so that the plan is the same on all. Every device keeps the scales
// row by row at the beginning of the storage, for readers of the codes. Products on tensor cores rearrange them into
// tiles (gemm.h).
inline constexpr int64_t kScaleTileRows = 128;
inline constexpr int64_t kScaleTileCols = 4;

// Creates the storages of a quantized (outer, inner) matrix, without contents.
QuantizedTensor NewQuantized(Trace& trace, const Quantizer& quantizer, int64_t outer, int64_t inner, Category category,
                             bool persistent = false);

// A tensor's slot of delayed scaling: views into persistent tensors. Undefined unless a quantizer is kDelayed.
struct DelayedScale {
  Tensor scale;  // (1, 1) fp32, read
  Tensor amax;   // (1, 1) fp32, becomes the larger of it and the tensor's; NaN is larger than all
};

// A matrix is quantized tile by tile. A tile has enough rows for whole cache lines of a transposed output, and few
// enough columns for the first-level caches.
inline constexpr int64_t kQuantizeTileRows = 128;
inline constexpr int64_t kQuantizeTileCols = 256;
constexpr int64_t QuantizeTiles(int64_t rows, int64_t cols) {
  return (rows + kQuantizeTileRows - 1) / kQuantizeTileRows * ((cols + kQuantizeTileCols - 1) / kQuantizeTileCols);
}

// The variant of a call (CallVariants) by the quantizer that it converts with, and by two of them.
uint32_t VariantOf(const Quantizer& quantizer);
std::string QuantizerName(uint32_t variant);  // "e4m3.block32"
uint32_t VariantOfTwo(uint32_t first, uint32_t second);
std::string NameOfTwo(uint32_t variant);  // " e4m3.block32 e5m2.block32"

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
    Tensor amaxes;  // (2, tiles) fp32: of tiles as they are, and transformed; undefined if not needed
  } scratch;
};
struct QuantizeAttrs {
  Quantizer row;  // of the orientations that are defined
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

// The position in its stream where a columnwise orientation's random numbers begin. An element's are RoundingBits(seed,
// step, stream, outer_index * DrawCols(inner) + inner_index [+ this], draw_bits()).
inline constexpr int64_t kColumnwiseDraws = int64_t{1} << 60;

// Quantizes x (rows, cols), fp32 or bf16, strided allowed, along its rows, along its columns or both, each from x
// itself: *row is (rows, cols), *col is (cols, rows), transposed. Either may be nullptr. Both have one Scaling (16x16
// blocks are then the same) and one Format. *row has no Hadamard transform; if *col has one, x must be bf16. Reads x
// once, or twice if scales depend on the amax of all of it. `stream`: for stochastic rounding. If columns have the
// rows' scales, only rows are rounded stochastically here, and Transposed gives the columns.
void Quantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col, DelayedScale delayed,
              RandomStream stream);

// y (outer, inner), fp32 or bf16, = (code * block scale) * tensor scale. Not for transformed matrices.
void Dequantize(Trace& trace, const QuantizedTensor& q, Tensor y);

// Returns q transposed, (inner, outer). REQUIRES: columns have the scales of rows, that is, one scale for all, or
// blocks of 16 by 16. Then these are the codes and scales that quantizing the columns gives. They share q's tensor
// scale.
QuantizedTensor Transposed(Trace& trace, const QuantizedTensor& q, Category category);

// Delayed scaling between steps, as in TransformerEngine, for all slots of one format. amax (slots, 1) joins history
// (slots, length) as its newest entry, in place of the oldest. scale (slots, 1) becomes max(format) / the largest of
// the history, at most FLT_MAX; it stays if that is 0, infinite or NaN. amax becomes 0. All are fp32 and contiguous.
// Initially, history and amax are 0 and scale is 1. If ranks share a tensor, amax must be max-reduced before.
void UpdateDelayedScales(Trace& trace, Tensor history, Tensor scale, Tensor amax, Format format);

}  // namespace ridgeline::engine
