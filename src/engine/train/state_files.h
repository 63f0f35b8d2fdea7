// A run's state as the files of one folder: its tensors in safetensors, with one file of weights and one of the rest
// per rank, and the index of the weights, in Hugging Face's form.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/step/training_state.h"
#include "engine/train/manifest.h"
#include "engine/train/tensor_files.h"

namespace ridgeline::engine {

// Whether a file of this name can be one of them.
bool IsStateFile(std::string_view name);

// Every rank calls it, and writes one file of each kind: whole tensors, dealt out by size, which the ranks put together
// from their parts. Returns all ranks' files, on every rank. Memory is bounded, whatever the model's size. Throws on
// every rank: Error(kInfrastructure) if a disk fails, Error(kInvalidInput), naming a weight, if that is no longer
// finite.
std::vector<SavedFile> WriteStateFiles(const TrainingState& state, const std::filesystem::path& folder);

// Writes which weight is in which file, to a file of its own. Called on one rank. Throws Error(kInfrastructure) if the
// disk fails.
SavedFile WriteStateIndex(const TrainingState& state, const std::filesystem::path& folder);

// The same for what Hugging Face transformers must know about the weights of a llama or gpt.
SavedFile WriteModelConfig(const TrainingState& state, const RunSpec& spec, const std::filesystem::path& folder);

// The written files, open for reading.
class StateFiles {
 public:
  // Throws as TensorFiles does.
  StateFiles(const std::filesystem::path& folder, std::span<const SavedFile> files);

  // Throws Error(kInvalidInput) unless they hold exactly these tensors, naming one and both shapes or dtypes.
  void CheckShapes(const TrainingState& state) const;

  // Reads what this rank needs. Throws Error(kInfrastructure) if the disk fails. REQUIRES: the shapes have been
  // checked.
  void ReadInto(TrainingState& state) const;

 private:
  std::filesystem::path folder_;
  TensorFiles files_;
};

}  // namespace ridgeline::engine
