// Products of fp32 on any CPU, and the choice of the kernel.
#include "engine/ops/cpu/gemm_panels.h"

#include <algorithm>
#include <type_traits>

#include "engine/ops/cpu/gemm_rows.h"

// SSE4, too, which other kernels do without, because products are most of a step. CPUs with AVX-512 have kernels of
// their own.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#define HWY_BROKEN_EMU128 0

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/gemm_panels.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 8>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// AVX2 has 16 registers: 12 keep sums, two a step of b, and one a word of a.
constexpr int64_t kRows = 6;
constexpr int64_t kVectors = 2;
constexpr int64_t kCols = kVectors * kLanes;

void Multiply(int64_t steps, const uint32_t* a_words, const uint32_t* b_words, const float* from, int64_t ld_from,
              float* to, int64_t ld_to, const uint32_t* /*soon*/, int64_t /*soon_words*/) {
  const D d;
  const auto* a = reinterpret_cast<const float*>(a_words);
  const auto* b = reinterpret_cast<const float*>(b_words);
  hn::Vec<D> sums[kRows][kVectors];
  const float* later = from != nullptr ? from : to;  // needed at the end
  const int64_t ld_later = from != nullptr ? ld_from : ld_to;
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
    sums[i][0] = sums[i][1] = hn::Zero(d);
    hwy::Prefetch(later + i * ld_later);
  }
  constexpr int64_t kAhead = 16;  // steps of b fetched ahead
  for (int64_t step = 0; step < steps; ++step, a += kRows, b += kCols) {
    hwy::Prefetch(b + kAhead * kCols);
    const auto left = hn::Load(d, b);
    const auto right = hn::Load(d, b + kLanes);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
      const auto word = hn::Set(d, a[i]);
      sums[i][0] = hn::MulAdd(word, left, sums[i][0]);
      sums[i][1] = hn::MulAdd(word, right, sums[i][1]);
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int64_t j = 0; j < kVectors; ++j) {
      auto sum = sums[i][j];
      if (from != nullptr) sum = hn::Add(sum, hn::LoadU(d, from + i * ld_from + j * kLanes));
      hn::StoreU(sum, d, to + i * ld_to + j * kLanes);
    }
  }
}

// Packs panels of kWidth. `apart`: elements between neighbours of a step. `next`: elements from a step to the next.
template <int64_t kWidth, typename Apart>
HWY_INLINE void PackPanels(const PanelSource& from, int64_t steps, Apart apart, int64_t next, uint32_t* to) {
  const auto* data = reinterpret_cast<const uint32_t*>(from.data);
  for (int64_t first = 0; first < from.count; first += kWidth, data += kWidth * apart, to += steps * kWidth) {
    const int64_t width = std::min(kWidth, from.count - first);
    if (width == kWidth) {
      for (int64_t step = 0; step < steps; ++step) {
        for (int64_t i = 0; i < kWidth; ++i) to[step * kWidth + i] = data[step * next + i * apart];
      }
    } else {
      std::fill_n(to, steps * kWidth, 0U);
      for (int64_t step = 0; step < steps; ++step) {
        for (int64_t i = 0; i < width; ++i) to[step * kWidth + i] = data[step * next + i * apart];
      }
    }
  }
}

template <int64_t kWidth>
void Pack(const PanelSource& from, int64_t steps, uint32_t* to) {
  if (from.terms_contiguous) {
    PackPanels<kWidth>(from, steps, from.stride, 1, to);
  } else {
    PackPanels<kWidth>(from, steps, std::integral_constant<int64_t, 1>(), from.stride, to);
  }
}

void PackA(const PanelSource& from, int64_t steps, uint32_t* to) { Pack<kRows>(from, steps, to); }
void PackB(const PanelSource& from, int64_t steps, uint32_t* to) { Pack<kCols>(from, steps, to); }

void Finish(const float* tile, int64_t height, int64_t width, float scale, const float* bias, std::byte* c, int64_t ldc,
            DType dtype, bool accumulate) {
  for (int64_t row = 0; row < height; ++row) {
    FinishRow(tile + row * kCols, scale, bias, c + row * ldc * SizeOf(dtype), dtype, accumulate, width);
  }
}

PanelKernel Panels() {
  PanelKernel kernel{};
  kernel.rows = kRows;
  kernel.cols = kCols;
  kernel.step_unit = 1;
  kernel.pack_rows = 8 * kRows;
  kernel.block_rows = 16 * kRows;
  kernel.block_steps = 384;
  kernel.row_cost = 16;
  kernel.pack_a = PackA;
  kernel.pack_b = PackB;
  kernel.multiply = Multiply;
  kernel.finish = Finish;
  return kernel;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {

HWY_EXPORT(Panels);

PanelKernel AnyCpuPanels() {
  ThisCpuClass();  // limits Highway's choice
  return HWY_DYNAMIC_DISPATCH(Panels)();
}

namespace {

PanelKernel Choose(DType in) {
#ifdef __x86_64__
  const CpuClass cpu_class = ThisCpuClass();
  if (in == DType::kBF16) return cpu_class >= CpuClass::kAmx ? AmxPanels() : Avx512Bf16Panels();
  if (cpu_class >= CpuClass::kAvx512) return Avx512Panels();
#endif
  return AnyCpuPanels();
}

}  // namespace

const PanelKernel& PanelKernelFor(DType in) {
  if (in == DType::kBF16) {
    static const PanelKernel kernel = Choose(DType::kBF16);
    return kernel;
  }
  static const PanelKernel kernel = Choose(DType::kF32);
  return kernel;
}

}  // namespace ridgeline::engine
#endif
