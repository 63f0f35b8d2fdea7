// Quantizes to nvfp4. Amaxes of all of x take a pass of their own over its tiles.
#include <cmath>

#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/quantize_nv.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/quantization-inl.h"
#include "engine/ops/cpu/quantize_nv-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// Quantizes with an E4M3 scale for each 16, or each 16 by 16, and one fp32 scale.
template <typename T>
class QuantizationNv : Quantization<T> {
 public:
  using Quantization<T>::Quantization;

  void Run() {
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
    const auto cols = Columns(transforms);
    ForTiles([&](const Tile<T>& tile, int64_t /*i*/) {
      ForSides(
          tile, row_, col_, [&](const Tile<T>& part) { rows(part, row_, by_row); },
          [&](const Tile<T>& part) { cols(part, col_, by_col); });
    });
  }

 private:
  static constexpr bool kBf16 = std::is_same_v<T, uint16_t>;
  using Base = Quantization<T>;
  using Base::amaxes, Base::attrs_, Base::col_, Base::ForTiles, Base::LargestOf, Base::on_, Base::row_, Base::Scalar,
      Base::scaling, Base::stochastic, Base::transformed_amaxes;
  using Base::has_col, Base::has_row;

  auto Columns([[maybe_unused]] bool transforms) const {
    const bool random = stochastic(attrs_.col);
    if constexpr (kBf16) {
      if (transforms) return random ? QuantizeNvColumns<true, true, T> : QuantizeNvColumns<false, true, T>;
    }
    return random ? QuantizeNvColumns<true, false, T> : QuantizeNvColumns<false, false, T>;
  }
};

void QuantizeNv(const OpCall& call, const CpuRun& run);
void QuantizeNv(const OpCall& call, const CpuRun& run) {
  WithF32OrBf16(call.operands(kQuantize).reads.x.dtype, [&](auto t) { QuantizationNv<decltype(t)>(call, run).Run(); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
