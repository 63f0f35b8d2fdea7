// Converts the config.json of a Hugging Face model to a spec's fields.
#pragma once

#include <string>

#include "base/json.h"

namespace ridgeline {

// The fields of a spec that define the model's shape, so that its parameters are counted exactly. `source` names the
// file. Throws Error(kInvalidInput) if no family has the layers of this type of model, if the model has something that
// its family lacks (biases, experts), or if a figure is missing or is no whole number above 0.
Json ShapeOfConfig(const Json& config, const std::string& source);

// The known types: "llama, mistral, … and gpt2".
std::string HuggingFaceTypes();

}  // namespace ridgeline
