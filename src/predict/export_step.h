// Writes a predicted step for other tools: which call runs when, on which stream.
#pragma once

#include <filesystem>

#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline::predict {

// Throws Error(kUsage) unless the file's name ends in .json (Chrome trace events, for Perfetto) or .et (MLCommons
// Chakra, for ASTRA-sim).
void RequireExportName(const std::filesystem::path& file);

// Writes all calls of the step with their predicted times, for rank 0; all ranks are alike. Throws as PredictStep does,
// and Error(kInfrastructure) if the file cannot be written.
void ExportStep(const RunSpec& spec, const Device& device, const Framework& framework,
                const std::filesystem::path& file);

}  // namespace ridgeline::predict
