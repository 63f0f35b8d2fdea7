// What GPUs do at most, from their makers' data sheets.
#pragma once

#include <optional>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// Bytes a second of memory, and dense FLOP/s of matrix products by the format of their operands. A GPU that does not
// multiply a format has the rate of 16 bits there.
struct GpuPeaks {
  std::string_view gpu;  // a spec's name for it
  double memory = 0;
  double bf16 = 0, fp8 = 0, mxfp8 = 0, fp4 = 0, fp32 = 0, tf32 = 0;
};

// nullptr for a GPU without a data sheet here.
const GpuPeaks* PeaksOf(std::string_view gpu);

// Dense FLOP/s of one GPU in the format of the linear layers. Nothing if it is not known, as for processors. Model
// FLOPs utilization (MFU) is a share of it.
std::optional<double> PeakFlops(std::string_view gpu, Precision precision);

}  // namespace ridgeline
