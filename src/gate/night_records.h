// The records of nights, read for people who wait for an answer.
#pragma once

#include <filesystem>
#include <vector>

#include "regress/nights.h"

namespace ridgeline::gate {

// Reads the nights in a folder (ReadNights), and warns of damaged records.
std::vector<regress::Night> NightsIn(const std::filesystem::path& folder);

}  // namespace ridgeline::gate
