// Amounts as Kubernetes writes them: "500m", "4", "1.5Gi", "64G", "1e3".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::kubernetes {

// Returns nothing if the text is no amount. A double holds every amount of bytes that a machine can have.
std::optional<double> ParseQuantity(std::string_view text);

// Returns the shortest form of a number of bytes: "64Gi", "1536Mi", "12345".
std::string FormatBytes(int64_t bytes);

}  // namespace ridgeline::kubernetes
