// Checkpoint files: a run's state on disk, complete or not there at all.
//
//   DIR/step-00000120/                        the state after step 120
//     model-00001-of-00002.safetensors          weights, by their Hugging Face names, dealt out by size
//     model.safetensors.index.json              which weight is in which file
//     config.json                               what transformers must know about the weights, for llama and gpt
//     optimizer-00001-of-00002.safetensors      moments and other state
//     manifest.json                             written last (manifest.h)
//   DIR/.step-00000120.tmp-4711/              being written, or was when its writer was killed
//   DIR/.lock                                 held by the one run that writes here
//
// A folder is written under its temporary name, every file and the folder are synced, then it is renamed. So a folder
// named step-… is complete. Files and folders that are not ours are neither overwritten nor removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "engine/step/training_state.h"
#include "engine/train/manifest.h"

namespace ridgeline::engine {

struct SavedState {
  std::filesystem::path folder;
  Manifest manifest;
};

// Opens a folder that a person named. Throws Error(kInvalidInput), naming a file that is missing or damaged.
SavedState OpenSaved(const std::filesystem::path& folder);

// Reads this rank's part, from however many files. Throws Error(kInvalidInput), before anything is changed, if the
// files have another shape (naming the tensor and both shapes) or belong to a run that `spec` does not continue.
void Load(const SavedState& saved, const RunSpec& spec, TrainingState& state);

class CheckpointDir {
 public:
  // Every rank makes one. Makes the folder; rank 0 takes its lock and removes what a killed writer left. Throws
  // Error(kInfrastructure) if it cannot be written, or if another run holds it for more than a few seconds (a killed
  // run lets go when it has ended).
  CheckpointDir(const std::filesystem::path& dir, int64_t keep, Clock& clock, Communicator& communicator);

  // Returns the newest complete one, the same on every rank; nothing if there has been none. Skips incomplete and
  // damaged ones, and tells rank 0's `note`. Throws Error(kInvalidInput) if there are only damaged ones, because
  // starting over would lose them.
  std::optional<SavedState> Newest(const std::function<void(const std::string&)>& note) const;

  // Saves, then removes older ones beyond `keep`. Every rank calls it, and writes one file of each kind: whole tensors,
  // which the ranks put together from their parts. Memory is bounded, whatever the model's size. Throws Error on every
  // rank if a disk fails or a weight is not finite; earlier files then remain.
  void Save(const TrainingState& state, Manifest manifest);

 private:
  std::optional<SavedState> NewestWhole(const std::function<void(const std::string&)>& note) const;
  void Commit(const TrainingState& state, const std::filesystem::path& folder, Manifest& manifest);
  void RemoveOld(int64_t newest_step) const;

  std::filesystem::path dir_;
  int64_t keep_;
  Communicator& communicator_;
  std::optional<FileLock> lock_;  // rank 0 only
};

}  // namespace ridgeline::engine
