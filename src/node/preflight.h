// A job's check before its first point: whether this node can run its points at all. A fault found here would make each
// point fail without its own doing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "ridgeline/run.h"
#include "run/job.h"

namespace ridgeline::node {

struct Unfit {
  InfrastructureReason reason = InfrastructureReason::kNode;
  std::string message;
  std::string hint;
};

// With less free space than this, a job's lines and logs may not fit.
inline constexpr int64_t kLeastFreeBytes = 64'000'000;

// Checks that files can be kept in a folder: writes one named `name`, syncs it, reads it back and removes it, and
// checks for `bytes` of free space beside the least. Returns nothing if all is well.
std::optional<Unfit> CheckFolder(const std::filesystem::path& folder, const std::string& name, int64_t bytes = 0);

// The most that the checkpoint files of a run of ridgeline-train need: while the newest is written, the older ones
// still exist.
int64_t CheckpointBytes(const RunSpec& spec);

// The first fault that prevents this node, the job's `node`-th, from running it. Checks these: the job's folder and its
// free space, and that for the checkpoint files of `runs`, which are the trainers' specs; the clock; the trainer; the
// data; and the devices. Starts our own trainer once, in `directory` unless that is empty; another trainer need not
// know our flags. `root` is "/" except in tests.
std::optional<Unfit> Preflight(const Job& job, const std::filesystem::path& job_file, std::span<const RunSpec> runs,
                               int64_t node, const Clock& clock, const std::filesystem::path& directory = {},
                               const std::filesystem::path& root = "/");

}  // namespace ridgeline::node
