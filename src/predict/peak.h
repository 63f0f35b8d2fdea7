// What a device multiplies at most: what model FLOPs utilization (MFU) is a share of.
#pragma once

#include <optional>
#include <string_view>

namespace ridgeline {

// FLOPs a second of one GPU, dense, in the format that the linear layers multiply, as its maker's data sheet says;
// nothing for a GPU, or a processor, of which none is known.
std::optional<double> PeakFlops(std::string_view gpu, std::string_view precision);

}  // namespace ridgeline
