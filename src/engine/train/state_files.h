// A run's state as the files of one folder: its tensors in safetensors, a file of weights and one of the rest a rank,
// and the index of the weights, as Hugging Face has it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/step/training_state.h"
#include "engine/train/manifest.h"
#include "engine/train/tensor_files.h"

namespace ridgeline {

// Whether a file of this name can be one of them.
bool IsStateFile(std::string_view name);

// Every rank calls it, and writes one file of each kind: whole tensors, dealt out by size, which the ranks put together
// from their parts. Returns all ranks' files, on every rank. Bounded memory, whatever the model's size. Throws on every
// rank: Error(kInfrastructure) where a disk fails, Error(kInvalidInput) naming a weight that is not finite any more.
std::vector<SavedFile> WriteStateFiles(const TrainingState& state, const std::filesystem::path& folder);

// Which weight is in which file, as a file of its own. For one rank. Throws Error(kInfrastructure) where the disk
// fails.
SavedFile WriteStateIndex(const TrainingState& state, const std::filesystem::path& folder);

// What Hugging Face transformers has to know of the weights, of a llama or gpt, in the same way.
SavedFile WriteModelConfig(const TrainingState& state, const RunSpec& spec, const std::filesystem::path& folder);

// What was written, open to be read.
class StateFiles {
 public:
  // Throws as TensorFiles does.
  StateFiles(const std::filesystem::path& folder, std::span<const SavedFile> files);

  // Throws Error(kInvalidInput) unless they hold exactly these tensors, naming one and both shapes or dtypes.
  void CheckShapes(const TrainingState& state) const;

  // Reads what this rank needs. The shapes have been checked. Throws Error(kInfrastructure) where the disk fails.
  void ReadInto(TrainingState& state) const;

 private:
  std::filesystem::path folder_;
  TensorFiles files_;
};

}  // namespace ridgeline
