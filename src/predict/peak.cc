#include "predict/peak.h"

#include "engine/device/speed.h"

namespace ridgeline {

std::optional<double> PeakFlops(std::string_view gpu, Precision precision) {
  const std::optional<DeviceSpeed> speed = SpeedOf(gpu);
  if (!speed) return std::nullopt;
  if (precision == Precision::kFp32) return speed->fp32_flops;
  const double of_products = precision == Precision::kTf32    ? speed->tf32_flops
                             : precision == Precision::kFp8   ? speed->fp8_flops
                             : precision == Precision::kMxfp8 ? speed->mxfp8_flops
                             : precision == Precision::kNvfp4 ? speed->fp4_flops
                                                              : speed->flops;
  return of_products / speed->product_share;
}

}  // namespace ridgeline
