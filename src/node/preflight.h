// A job's own check before its first point: whether this node can run points of it at all. What is wrong here would
// make each of them fail, and be none of their doing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "ridgeline/run.h"
#include "run/job.h"

namespace ridgeline {

struct Unfit {
  InfrastructureReason reason = InfrastructureReason::kNode;
  std::string message;
  std::string hint;
};

// Less than this free, and a job's own lines and logs may find no room.
inline constexpr int64_t kLeastFreeBytes = 64'000'000;

// Whether files can be kept in a folder: one named `name` is written, synced, read back and removed there, and there is
// room for `bytes` beside the least. Nothing where all is well.
std::optional<Unfit> CheckFolder(const std::filesystem::path& folder, const std::string& name, int64_t bytes = 0);

// What the checkpoint files of a run of ridgeline-train take at most, while the newest is written, the older still
// there.
int64_t CheckpointBytes(const RunSpec& spec);

// What keeps this node, the job's `node`-th, from running it: the first fault that is found. Asked are the job's folder
// and the room in it, and that for the checkpoint files of `runs`, which are what trainers will be given; the clock;
// the trainer, which is started once where it is ours (another need know no flag of ours) and in `directory`, unless
// that is empty; the data; and the devices. `root` is "/" but in tests.
std::optional<Unfit> Preflight(const Job& job, const std::filesystem::path& job_file, std::span<const RunSpec> runs,
                               int64_t node, const Clock& clock, const std::filesystem::path& directory = {},
                               const std::filesystem::path& root = "/");

}  // namespace ridgeline
