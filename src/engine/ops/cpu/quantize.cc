// Tiles of x are independent of each other but for the amaxes of the whole of x, which take a pass of their own.
#include <cmath>
#include <cstring>

#include "engine/ops/cpu/kernels.h"
#include "engine/ops/cpu/quantized_rows.h"
#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/quantize.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/quantize-inl.h"
#include "engine/ops/cpu/quantize_nv-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {

// One recorded call.
template <typename T>
class Quantization {
 public:
  Quantization(const OpCall& call, const CpuRun& run)
      : run_(run),
        on_(call.operands(kQuantize)),
        attrs_(call.attrs(kQuantize)),
        row_(SideOf(on_.writes.row, attrs_.row, x().cols)),
        col_(SideOf(on_.writes.col, attrs_.col, x().rows)) {}

  void Run() {
    switch (scaling()) {
      case Scaling::kDelayed: {
        const float scale = *Scalar(on_.reads.delayed_scale);
        SetTensorScale(scale);
        ForTiles([&](const Tile<T>& tile, int64_t i) { amaxes()[i] = Whole(tile, scale); });
        float* amax = Scalar(on_.writes.delayed_amax);
        *amax = LargerAmax(*amax, LargestOf(amaxes()));
        return;
      }
      case Scaling::kCurrent: {
        ForTiles([&](const Tile<T>& tile, int64_t i) { amaxes()[i] = AmaxOf(tile); });
        const float scale = TensorScale(InfoOf(any().format).max, LargestOf(amaxes()), 1);
        SetTensorScale(scale);
        return ForTiles([&](const Tile<T>& tile, int64_t /*i*/) { Whole(tile, scale); });
      }
      case Scaling::kBlock32:
        return RunMx();
      case Scaling::kBlock16:
      case Scaling::kBlock16x16:
        return RunNv();
    }
  }

 private:
  static constexpr bool kBf16 = std::is_same_v<T, uint16_t>;

  bool has_row() const { return row_.codes.data != nullptr; }
  bool has_col() const { return col_.codes.data != nullptr; }
  const Quantizer& any() const { return has_row() ? attrs_.row : attrs_.col; }
  static bool stochastic(const Quantizer& quantizer) { return quantizer.rounding == Rounding::kStochastic; }
  Scaling scaling() const { return any().scaling; }
  const Tensor& x() const { return on_.reads.x; }
  float* Scalar(const Tensor& tensor) const { return run_.Data<float>(tensor); }
  // Of tiles as they are, and transformed.
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

  float Whole(const Tile<T>& tile, float scale) const {
    if (any().format == Format::kE5M2) return QuantizeWhole<Format::kE5M2, false>(tile, row_, col_, scale);
    return stochastic(any()) ? QuantizeWhole<Format::kE4M3, true>(tile, row_, col_, scale)
                             : QuantizeWhole<Format::kE4M3, false>(tile, row_, col_, scale);
  }

  void RunMx() const {
    const auto rows = stochastic(attrs_.row) ? QuantizeMxRows<true, T> : QuantizeMxRows<false, T>;
    const auto cols = stochastic(attrs_.col) ? QuantizeMxColumns<true, T> : QuantizeMxColumns<false, T>;
    ForTiles([&](const Tile<T>& tile, int64_t /*i*/) {
      ForSides(
          tile, row_, col_, [&](const Tile<T>& part) { rows(part, row_, attrs_.row.scale_rule); },
          [&](const Tile<T>& part) { cols(part, col_, attrs_.col.scale_rule); });
    });
  }

  void RunNv() {
    const bool transforms = has_col() && attrs_.col.hadamard;
    ForTiles([&](const Tile<T>& tile, int64_t i) {
      if constexpr (kBf16) {
        if (transforms) {
          const BothAmaxes both = BothAmaxesOf(tile, has_row());
          amaxes()[i] = both.plain;
          transformed_amaxes()[i] = both.transformed;
          return;
        }
      }
      amaxes()[i] = AmaxOf(tile);
    });
    const Nv by_row(LargestOf(amaxes()));
    const Nv by_col = transforms ? Nv(LargestOf(transformed_amaxes())) : by_row;
    if (has_row()) *Scalar(on_.writes.row.tensor_scale) = by_row.tensor_scale();
    if (has_col()) *Scalar(on_.writes.col.tensor_scale) = by_col.tensor_scale();
    const bool stochastic_row = stochastic(attrs_.row);
    if (scaling() == Scaling::kBlock16x16) {
      const auto squares = stochastic_row ? QuantizeSquares<true, T> : QuantizeSquares<false, T>;
      return ForTiles([&](const Tile<T>& tile, int64_t /*i*/) { squares(tile, row_, col_, by_row); });
    }
    const auto rows = stochastic_row ? QuantizeNvRows<true, T> : QuantizeNvRows<false, T>;
    const auto cols = NvColumns(transforms);
    ForTiles([&](const Tile<T>& tile, int64_t /*i*/) {
      ForSides(
          tile, row_, col_, [&](const Tile<T>& part) { rows(part, row_, by_row); },
          [&](const Tile<T>& part) { cols(part, col_, by_col); });
    });
  }
  auto NvColumns([[maybe_unused]] bool transforms) const {
    const bool random = stochastic(attrs_.col);
    if constexpr (kBf16) {
      if (transforms) return random ? QuantizeNvColumns<true, true, T> : QuantizeNvColumns<false, true, T>;
    }
    return random ? QuantizeNvColumns<true, false, T> : QuantizeNvColumns<false, false, T>;
  }

  // fn(tile, its index): those of a row of tiles one after another. Ends of x that are not whole are copied.
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

void QuantizeCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  WithType(call.operands(kQuantize).reads.x.dtype, [&](auto t) { Quantization<decltype(t)>(call, run).Run(); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline {
namespace {

void UpdateDelayedScalesCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const UpdateDelayedScalesOperands on = call.operands(kUpdateDelayedScales);
  const Tensor& history = on.writes.history;
  const float largest = InfoOf(call.attrs(kUpdateDelayedScales)).max;
  ParallelFor(history.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* first = run.Data<float>(history) + slot * history.row_stride;
      float* last = first + history.cols - 1;
      float* amax = run.Data<float>(on.writes.amax) + slot;
      float* scale = run.Data<float>(on.writes.scale) + slot;
      std::memmove(first, first + 1, static_cast<size_t>(history.cols - 1) * sizeof(float));
      *last = *amax;
      *amax = 0;
      float most = 0;
      for (const float* at = first; at <= last; ++at) {
        if (*at > most || std::isnan(*at)) most = *at;
        if (std::isnan(most)) break;
      }
      *scale = TensorScale(largest, most, *scale);
    }
  });
}

}  // namespace

HWY_EXPORT(QuantizeCpu);

void AddQuantizeCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kQuantize].run = &HWY_DYNAMIC_DISPATCH(QuantizeCpu);
  table[&kUpdateDelayedScales].run = UpdateDelayedScalesCpu;
  AddDequantizeCpu(table);
  AddTransposeQuantizedCpu(table);
}

}  // namespace ridgeline
#endif
