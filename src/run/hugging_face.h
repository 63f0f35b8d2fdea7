// Converts the config.json of a Hugging Face model to a spec's fields.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace ridgeline {

// The fields of a spec that define the model's shape, so that its parameters are counted exactly. `source` names the
// file. Throws Error(kInvalidInput) if no family has the layers of this type of model, if the model has something that
// its family lacks (biases, experts), or if a figure is missing or is no whole number above 0.
Json ShapeOfConfig(const Json& config, const std::string& source);

// Reads the shape in a file, as ShapeOfConfig does; nothing if there is no file.
std::optional<Json> ReadShapeOfConfig(const std::filesystem::path& file);

// The known types: "llama, mistral, …, gpt2 and mpt".
std::string HuggingFaceTypes();

}  // namespace ridgeline
