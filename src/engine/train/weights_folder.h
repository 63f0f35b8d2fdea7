// A folder of weights to start a run from: one that a run left in its checkpoint.dir, or that Hugging Face transformers
// saved (save_pretrained), with or without an index of several files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "engine/step/program.h"
#include "engine/train/tensor_files.h"

namespace ridgeline::engine {

class WeightsFolder {
 public:
  // Opens the weights of the program's model, which must outlive it. Throws Error(kInvalidInput) if the folder's
  // config.json describes another model, if a tensor is missing, has another shape (naming both) or is superfluous, if
  // a file is damaged, or if one that our manifest lists was changed (which rank 0 finds). Throws
  // Error(kInfrastructure) if the folder cannot be read.
  WeightsFolder(const std::filesystem::path& folder, const StepProgram& program);

  // Reads elements of a parameter from `first` on, from the tensors of its parts: F32, BF16 or F16.
  // (ModelState::FirstValues)
  void Read(size_t parameter, int64_t first, std::span<float> to) const;

 private:
  const ModelShape& shape_;
  TensorFiles files_;
};

}  // namespace ridgeline::engine
