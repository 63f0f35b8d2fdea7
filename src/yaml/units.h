// Numbers with and without units, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "yaml/yaml.h"

namespace ridgeline {

// A finite decimal number, spaces around it or not.
std::optional<double> ParseNumber(std::string_view text);

// "8GB", "512 MiB", or a number of bytes, of at least 1 and at most kMostBytes (ridgeline/amount.h). Nothing where it
// is neither.
std::optional<int64_t> ReadBytes(const YamlNode& node);

// "90s", "10m", "1.5h", or a number of seconds, from 1 to kMostSeconds. Nothing where it is neither.
std::optional<int64_t> ReadSeconds(const YamlNode& node);

// What belongs behind the refusal of an amount that is one and too large: "; 1000TB are the most"; empty for another.
std::string MostBytesNote(const YamlNode& node);
std::string MostSecondsNote(const YamlNode& node);

}  // namespace ridgeline
