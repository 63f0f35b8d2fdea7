// Tiles of x are independent of each other, except for the amaxes of all of x, which take a pass of their own.
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
#include "engine/ops/cpu/quantization-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// Quantizes with one scale for all, or an E8M0 scale for each 32.
template <typename T>
class QuantizationFp8 : Quantization<T> {
 public:
  using Quantization<T>::Quantization;

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
        return;  // nvfp4: quantize_nv.cc
    }
  }

 private:
  using Base = Quantization<T>;
  using Base::amaxes, Base::any, Base::attrs_, Base::col_, Base::ForTiles, Base::LargestOf, Base::on_, Base::row_,
      Base::Scalar, Base::scaling, Base::SetTensorScale, Base::stochastic;

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
};

// In quantize_nv.cc.
void QuantizeNv(const OpCall& call, const CpuRun& run);

void QuantizeCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const QuantizeAttrs& attrs = call.attrs(kQuantize);
  const QuantizeOperands on = call.operands(kQuantize);
  if ((on.writes.row.codes.defined() ? attrs.row : attrs.col).format == Format::kE2M1) return QuantizeNv(call, run);
  WithF32OrBf16(on.reads.x.dtype, [&](auto t) { QuantizationFp8<decltype(t)>(call, run).Run(); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
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
  table[&kQuantize].run = HWY_DYNAMIC_DISPATCH(QuantizeCpu);
  table[&kUpdateDelayedScales].run = UpdateDelayedScalesCpu;
  AddDequantizeCpu(table);
  AddTransposeQuantizedCpu(table);
}

}  // namespace ridgeline::engine
#endif
