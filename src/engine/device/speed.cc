#include "engine/device/speed.h"

#include "run/gpu_peaks.h"

namespace ridgeline::engine {
namespace {

// Shares of an H200's data sheet.
constexpr double kOfMemory = 4.3 / 4.8;
constexpr double kOfProducts = 0.93 * 790 / 989;
constexpr double kOfAttention = 560.0 / 989;
constexpr double kOfAttentionBackward = 420.0 / 989;

}  // namespace

std::optional<DeviceSpeed> SpeedOf(std::string_view gpu) {
  const GpuPeaks* peaks = PeaksOf(gpu);
  if (peaks == nullptr) return std::nullopt;
  return DeviceSpeed{.bytes = kOfMemory * peaks->memory,
                     .flops = kOfProducts * peaks->bf16,
                     .fp8_flops = kOfProducts * peaks->fp8,
                     .mxfp8_flops = kOfProducts * peaks->mxfp8,
                     .fp4_flops = kOfProducts * peaks->fp4,
                     .fp32_flops = peaks->fp32,
                     .tf32_flops = kOfProducts * peaks->tf32,
                     .attention_flops = kOfAttention * peaks->bf16,
                     .attention_backward_flops = kOfAttentionBackward * peaks->bf16,
                     .product_share = kOfProducts};
}

}  // namespace ridgeline::engine
