// A predicted step as a file that other tools read: which call runs when, on which stream.
#pragma once

#include <filesystem>

#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Throws Error(kUsage) where no step can be written to a file of this name: it ends neither in .json (Chrome's trace
// events, for Perfetto) nor in .et (MLCommons Chakra, for ASTRA-sim).
void RequireExportName(const std::filesystem::path& file);

// All calls of the spec's step as the clock prices them, of rank 0, as all ranks are alike. Throws as PredictStep, and
// Error(kInfrastructure) where the file cannot be written.
void ExportStep(const RunSpec& spec, const Device& device, const Framework& framework,
                const std::filesystem::path& file);

}  // namespace ridgeline
