// Logs as files, and what a definition reads in one, as text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "trainers/reading.h"

namespace ridgeline::cli {

// Feeds the log of this path, or the standard input (-), in parts. Throws Error(kInfrastructure) if it cannot be read.
void FeedLog(const std::string& path, const std::function<void(std::string_view)>& feed);

// Prints the metrics that were found with their lines, those that were not, and the end.
void SayReading(const trainers::Reading& reading);

}  // namespace ridgeline::cli
