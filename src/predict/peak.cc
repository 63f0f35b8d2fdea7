#include "predict/peak.h"

#include "engine/device/speed.h"

namespace ridgeline {

std::optional<double> PeakFlops(std::string_view gpu, std::string_view precision) {
  const std::optional<DeviceSpeed> speed = SpeedOf(gpu);
  if (!speed) return std::nullopt;
  if (precision == "fp32") return speed->fp32_flops;
  const double of_products = precision == "tf32"    ? speed->tf32_flops
                             : precision == "fp8"   ? speed->fp8_flops
                             : precision == "mxfp8" ? speed->mxfp8_flops
                             : precision == "nvfp4" ? speed->fp4_flops
                                                    : speed->flops;
  return of_products / speed->product_share;
}

}  // namespace ridgeline
