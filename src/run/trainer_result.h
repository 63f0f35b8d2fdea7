// Reads the result that a trainer wrote: strictly, because another program wrote it, and with derived figures filled
// in. docs/trainer-contract.md explains all of it to authors of trainers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// "TEXT FILE", where FILE is the installed docs/trainer-contract.md, else its path in the sources.
std::string SeeTrainerContract(std::string_view text);

// Parses `text`, a RunResult of the point `spec`. JSON has no NaN and Infinity, but Python's json writes them. They are
// read as null: in a series as a number that is not finite, and in `loss` they turn an `ok` run into a diverged one.
// Refuses unknown keys. Derives missing figures of steps from step_ns.all. Refuses figures that contradict each other
// or the point (consistency.h), and an `ok` without the figures that it needs. Throws Error(kInvalidInput), which names
// `source` and the key, with the contract's page as its hint. `tokens_per_step` is the point's, and counts if the
// result has none; 0: as in run/step_figures.h.
RunResult ParseTrainerResult(std::string_view text, const RunSpec& spec, const std::string& source,
                             int64_t tokens_per_step = 0);

// Makes only the last of these checks, for a result from elsewhere. Throws the same.
void CheckTrainerResult(const RunSpec& spec, const RunResult& result, const std::string& source);

// Reads the file that a trainer wrote; nothing if there is none. Also throws if it is no regular file or too long, and
// throws Error(kInfrastructure) if it cannot be read.
std::optional<RunResult> ReadTrainerResult(const std::filesystem::path& path, const RunSpec& spec,
                                           const std::string& source, int64_t tokens_per_step = 0);

}  // namespace ridgeline
