// Peak arithmetic rates of devices. Model FLOPs utilization (MFU) is a share of them.
#pragma once

#include <optional>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// Dense FLOP/s of one GPU in the format of the linear layers, from its maker's data sheet. Nothing if it is not known,
// as for processors.
std::optional<double> PeakFlops(std::string_view gpu, Precision precision);

}  // namespace ridgeline
