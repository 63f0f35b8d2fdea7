// The config.json beside a model's weights, by which Hugging Face transformers knows what they are the weights of.
// Keys: https://huggingface.co/docs/transformers/model_doc/llama and .../model_doc/gpt2
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

inline constexpr char kModelConfigName[] = "config.json";

// Of a llama or gpt, whose weights are stored as `dtype`, in safetensors' words.
std::string EncodeModelConfig(const RunSpec& spec, std::string_view dtype);

// Throws Error(kInvalidInput) naming everything that is another there, unless the folder's config.json is of the model
// that `spec` trains; also where it has none, or one that cannot be read.
void CheckModelConfig(const std::filesystem::path& folder, const RunSpec& spec);

}  // namespace ridgeline
