// The result that a trainer wrote, as whoever started it reads it: strictly, since another's program wrote it, and with
// what follows from it filled in. docs/trainer-contract.md says all of it to those who write trainers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// "TEXT FILE", where FILE is docs/trainer-contract.md as it is installed, else as it is called in the sources.
std::string SeeTrainerContract(std::string_view text);

// `text` is a RunResult of the point `spec`. NaN and Infinity, which JSON has no words for and Python's json writes all
// the same, are read as null: in a series a number that is not finite, and with one in `loss` a run that says `ok` has
// diverged. A key that no RunResult has is refused. Figures of steps that are not given are derived from
// step_ns.all. Figures that contradict each other or the point (sense.h) are refused, and an `ok` without those that it
// needs. Throws Error(kInvalidInput) naming `source` and the key, with the contract's page as its hint.
// `tokens_per_step`, of the point, counts where the result says none; 0: as run/step_figures.h has it.
RunResult ParseTrainerResult(std::string_view text, const RunSpec& spec, const std::string& source,
                             int64_t tokens_per_step = 0);

// The last of these checks alone, of a result that came about otherwise. Throws the same.
void CheckTrainerResult(const RunSpec& spec, const RunResult& result, const std::string& source);

// The file a trainer wrote; nothing where there is none. Throws also where it is no regular file or too long, and
// Error(kInfrastructure) where it cannot be read.
std::optional<RunResult> ReadTrainerResult(const std::filesystem::path& path, const RunSpec& spec,
                                           const std::string& source, int64_t tokens_per_step = 0);

}  // namespace ridgeline
