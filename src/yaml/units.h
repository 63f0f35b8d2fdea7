// Numbers with and without units, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "yaml/yaml.h"

namespace ridgeline::yaml {

// Parses a finite decimal number; spaces around it are allowed.
std::optional<double> ParseNumber(std::string_view text);

// Parses "8GB", "512 MiB" or a number of bytes, from 1 to kMostBytes (ridgeline/amount.h). Nothing for other texts.
std::optional<int64_t> ReadBytes(const YamlNode& node);

// Parses "90s", "10m", "1.5h" or a number of seconds, from 1 to kMostSeconds. Nothing for other texts.
std::optional<int64_t> ReadSeconds(const YamlNode& node);

// For the message that refuses an amount: "; 1000TB are the most" if it is too large, else empty.
std::string MostBytesNote(const YamlNode& node);
std::string MostSecondsNote(const YamlNode& node);

}  // namespace ridgeline::yaml
