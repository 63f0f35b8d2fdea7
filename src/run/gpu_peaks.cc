#include "run/gpu_peaks.h"

#include <algorithm>

namespace ridgeline {
namespace {

constexpr GpuPeaks InTera(std::string_view gpu, double memory, double bf16, double fp8, double mxfp8, double fp4,
                          double fp32, double tf32) {
  constexpr double kTera = 1e12;
  return {gpu, kTera * memory, kTera * bf16, kTera * fp8, kTera * mxfp8, kTera * fp4, kTera * fp32, kTera * tf32};
}

// TB/s and TFLOP/s without sparsity, from NVIDIA's data sheets, for one GPU: A100 80 GB SXM, H100 SXM, H200 SXM, HGX
// B200 and B300, GB200 and GB300 NVL72. The trainer is a program without YAML, so they stand here.
// tests/predict/device_test.cc compares them with the catalogue, `devices/`.
constexpr GpuPeaks kPeaks[] = {
    InTera("a100", 2.04, 312, 312, 312, 312, 19.5, 156),     InTera("b200", 8.0, 2250, 4500, 4500, 9000, 75, 1125),
    InTera("b300", 8.0, 2250, 4500, 4500, 13500, 75, 1125),  InTera("gb200", 8.0, 2500, 5000, 5000, 10000, 80, 1250),
    InTera("gb300", 8.0, 2500, 5000, 5000, 15000, 80, 1250), InTera("h100", 3.35, 989, 1978, 989, 989, 67, 494.5),
    InTera("h200", 4.8, 989, 1978, 989, 989, 67, 494.5),
};

}  // namespace

const GpuPeaks* PeaksOf(std::string_view gpu) {
  const auto* found = std::ranges::find(kPeaks, gpu, &GpuPeaks::gpu);
  return found == std::end(kPeaks) ? nullptr : found;
}

std::optional<double> PeakFlops(std::string_view gpu, Precision precision) {
  const GpuPeaks* peaks = PeaksOf(gpu);
  if (peaks == nullptr) return std::nullopt;
  switch (precision) {
    case Precision::kFp32:
      return peaks->fp32;
    case Precision::kTf32:
      return peaks->tf32;
    case Precision::kFp8:
      return peaks->fp8;
    case Precision::kMxfp8:
      return peaks->mxfp8;
    case Precision::kNvfp4:
      return peaks->fp4;
    default:
      return peaks->bf16;
  }
}

}  // namespace ridgeline
