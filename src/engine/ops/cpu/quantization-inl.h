// A recorded call of `quantize`: the tiles of x, and the places of its sides. quantize.cc and quantize_nv.cc quantize
// the tiles. Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_QUANTIZATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_QUANTIZATION_INL_H_
#undef RIDGELINE_OPS_QUANTIZATION_INL_H_
#else
#define RIDGELINE_OPS_QUANTIZATION_INL_H_
#endif

#include "engine/ops/cpu/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// One recorded call: the tiles of x, the places of its sides, and what their kernels share.
template <typename T>
class Quantization {
 public:
  Quantization(const OpCall& call, const CpuRun& run)
      : run_(run),
        on_(call.operands(kQuantize)),
        attrs_(call.attrs(kQuantize)),
        row_(SideOf(on_.writes.row, attrs_.row, x().cols)),
        col_(SideOf(on_.writes.col, attrs_.col, x().rows)) {}

 protected:
  bool has_row() const { return row_.codes.data != nullptr; }
  bool has_col() const { return col_.codes.data != nullptr; }
  const Quantizer& any() const { return has_row() ? attrs_.row : attrs_.col; }
  static bool stochastic(const Quantizer& quantizer) { return quantizer.rounding == Rounding::kStochastic; }
  Scaling scaling() const { return any().scaling; }
  const Tensor& x() const { return on_.reads.x; }
  float* Scalar(const Tensor& tensor) const { return run_.Data<float>(tensor); }
  // The amaxes of tiles as they are, and transformed.
  float* amaxes() const { return run_.Data<float>(on_.scratch.amaxes); }
  float* transformed_amaxes() const { return amaxes() + on_.scratch.amaxes.cols; }
  float LargestOf(const float* amaxes) const {
    float largest = 0;
    for (int64_t i = 0; i < on_.scratch.amaxes.cols; ++i) largest = LargerAmax(largest, amaxes[i]);
    return largest;
  }

  Side SideOf(const StoredCodes& to, const Quantizer& quantizer, int64_t inner) const {
    const RandomBlocks random(run_.Inputs(on_.reads.inputs), attrs_.stream);
    Side side = {{}, {}, quantizer.DrawCols(inner), false, random};
    if (!to.codes.defined()) return side;
    side.codes = {run_.Data<uint8_t>(to.codes), to.codes.row_stride};
    if (to.scales.defined()) side.scales = {run_.Data<uint8_t>(to.scales), to.scales.row_stride};
    side.stream = Streams(run_, to.codes);
    return side;
  }

  void SetTensorScale(float scale) {
    if (has_row()) *Scalar(on_.writes.row.tensor_scale) = 1 / scale;
    if (has_col()) *Scalar(on_.writes.col.tensor_scale) = 1 / scale;
  }

  // Calls fn(tile, its index), for a row of tiles in order. Incomplete tiles at the ends of x are copied.
  template <typename Fn>
  void ForTiles(const Fn& fn) const {
    ParallelFor(QuantizeTiles(x().rows, x().cols), 1, [&](int64_t begin, int64_t end) {
      alignas(64) T copy[kTileRows * kTileCols];
      for (int64_t i = begin; i < end; ++i) {
        Tile<T> tile = TileAt(i);
        if (i + 1 < end) tile.next = TileAt(i + 1).x;
        if (tile.whole_rows() != tile.rows || tile.whole_cols() != tile.cols) {
          std::fill_n(copy, tile.whole_rows() * kTileCols, T{});
          for (int64_t r = 0; r < tile.rows; ++r) std::copy_n(tile.Row(r), tile.cols, copy + r * kTileCols);
          tile.x = copy;
          tile.stride = kTileCols;
          tile.next = nullptr;
        }
        fn(tile, i);
      }
      if (row_.stream || col_.stream) hwy::FlushStream();
    });
  }
  Tile<T> TileAt(int64_t i) const {
    const int64_t across = (x().cols + kTileCols - 1) / kTileCols;
    const int64_t row = i / across * kTileRows;
    const int64_t col = i % across * kTileCols;
    return {run_.Data<T>(x()) + row * x().row_stride + col,
            x().row_stride,
            row,
            std::min(kTileRows, x().rows - row),
            col,
            std::min(kTileCols, x().cols - col)};
  }

  const CpuRun& run_;
  const QuantizeOperands on_;
  const QuantizeAttrs& attrs_;
  Side row_;
  Side col_;
};

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
