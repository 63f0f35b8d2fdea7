// A model of Hugging Face's as a spec has it, by its config.json.
#pragma once

#include <string>

#include "base/json.h"

namespace ridgeline {

// The fields of a spec that say the model's shape, so that its parameters are counted exactly. `source` names the file.
// Throws Error(kInvalidInput) for a type of model whose layers no family has, for what a family does not have (biases,
// experts), and for a figure that is missing or no whole number above 0.
Json ShapeOfConfig(const Json& config, const std::string& source);

// "llama, mistral, … and gpt2": the types that are known.
std::string HuggingFaceTypes();

}  // namespace ridgeline
