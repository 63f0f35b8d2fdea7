// The config.json with a model's weights, from which Hugging Face transformers knows the model.
// Its settings: run/families.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline::engine {

inline constexpr char kModelConfigName[] = "config.json";

// For a model of a family that has a config, whose weights are stored as `dtype`, in safetensors' words.
std::string EncodeModelConfig(const RunSpec& spec, std::string_view dtype);

// Throws Error(kInvalidInput), naming everything that differs, unless the folder's config.json describes the model that
// `spec` trains; also if the file is missing or cannot be read.
void CheckModelConfig(const std::filesystem::path& folder, const RunSpec& spec);

}  // namespace ridgeline::engine
