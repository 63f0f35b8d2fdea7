// The speed of a described device at best. The least time of a step is computed from it (engine/step/budget.h).
#pragma once

#include <optional>
#include <string_view>

namespace ridgeline::engine {

// In bytes and FLOPs a second.
struct DeviceSpeed {
  double bytes = 0;
  double flops = 0;  // of products in 16 bits
  double fp8_flops = 0;
  double mxfp8_flops = 0;
  double fp4_flops = 0;
  double fp32_flops = 0;
  double tf32_flops = 0;
  double attention_flops = 0;
  double attention_backward_flops = 0;
  double product_share = 0;  // the share of the maker's peak that products reach; 1 for fp32
};

// Returns the speed of a GPU, by a spec's name for it; nullopt for GPUs that run/gpu_peaks.h does not list. This engine
// measured none of it. H200s were seen to copy 4.3 TB/s and to multiply 790 TFLOP/s in bf16, of which products of
// models' shapes get 93%. The share of attention is assumed. Other GPUs and formats are assumed to get the same shares
// of their maker's figures, fp32 without TF32. Formats that a GPU does not multiply are as fast as those of 16 bits.
std::optional<DeviceSpeed> SpeedOf(std::string_view gpu);

}  // namespace ridgeline::engine
