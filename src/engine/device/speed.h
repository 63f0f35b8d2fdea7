// What a described device does in a second at best: what the least time of a step is counted by (engine/step/budget.h).
#pragma once

#include <optional>
#include <string_view>

namespace ridgeline {

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
  double product_share = 0;  // that products get of what its maker says; of fp32 it is all
};

// Of a GPU, by a spec's name for it; nullopt of those that nothing is written of here. This engine measured none of it.
// H200s were seen to copy 4.3 TB/s and to multiply 790 TFLOP/s in bf16, of which products as models have them get 93%;
// what attention gets is assumed. The others, and other formats, are taken to get the same shares of what their maker
// says, of fp32 without TF32. Formats that a GPU does not multiply go as those of 16 bits.
std::optional<DeviceSpeed> SpeedOf(std::string_view gpu);

}  // namespace ridgeline
