// What a described device does in a second at best: what the least time of a step is counted by (engine/step/budget.h).
#pragma once

namespace ridgeline {

// An H200's. This engine measured none of it: such cards were seen to copy 4.3 TB/s and to multiply 790 TFLOP/s in
// bf16, of which products as models have them get 93%; twice that in fp8, and what attention gets, are assumed; what is
// said of fp32, without TF32, is its maker's. Blocks with scales it multiplies as bf16.
struct DeviceSpeed {
  double bytes = 4.3e12;
  double flops = 0.93 * 790e12;  // of products in 16 bits
  double fp8_flops = 2 * 0.93 * 790e12;
  double fp32_flops = 67e12;
  double attention_flops = 560e12;
  double attention_backward_flops = 420e12;
  double peak_flops = 989e12;  // in 16 bits, as its maker says
};

}  // namespace ridgeline
