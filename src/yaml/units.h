// Numbers with and without units, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "yaml/yaml.h"

namespace ridgeline {

// A finite decimal number, spaces around it or not.
std::optional<double> ParseNumber(std::string_view text);

// "8GB", "512 MiB", or a number of bytes. Nothing where it is neither.
std::optional<int64_t> ReadBytes(const YamlNode& node);

// "90s", "10m", "1.5h", or a number of seconds. Nothing where it is neither.
std::optional<int64_t> ReadSeconds(const YamlNode& node);

}  // namespace ridgeline
