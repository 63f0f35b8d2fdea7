// The manifest of checkpoint files: what was saved, when, and of which run. It is written last, so a folder with a
// manifest is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/history.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

inline constexpr int64_t kManifestVersion = 1;
inline constexpr char kManifestName[] = "manifest.json";

struct SavedFile {
  std::string name;
  int64_t bytes = 0;
  std::string xxh3;  // of its bytes, 128 bits in hexadecimal
};

struct Manifest {
  int64_t step = 0;  // steps done
  RunSpec spec;      // without settings
  History history;
  std::vector<SavedFile> files;
};

// Adds a checksum over the text itself.
std::string EncodeManifest(const Manifest& manifest);

// Throws Error(kInvalidInput), naming the file, if it is missing, no regular file, no manifest, of another version, or
// changed since it was written (earlier ones have no checksum).
Manifest ReadManifest(const std::filesystem::path& folder);

// Throws Error(kInvalidInput), naming a file that is missing, is no regular file, or has another size or other bytes
// than when it was saved. Reads every byte.
void CheckWhole(const Manifest& manifest, const std::filesystem::path& folder);

// Throws Error(kInvalidInput), naming what differs, unless a run of `spec` continues the saved run's loss series as if
// it had never stopped. Ranks, sharding, the division of a global batch, activation checkpointing and (except with a
// cosine) the number of steps may differ.
void CheckContinues(const Manifest& manifest, const RunSpec& spec, const std::filesystem::path& folder);

}  // namespace ridgeline::engine
