// RunResult: encoded, decoded, checked; the names of its ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ridgeline/run.h"

namespace ridgeline {

// "ok", "oom_device", … as stored and shown.
std::string_view StatusName(RunStatus status);
// Throws Error(kInvalidInput) for an unknown name.
RunStatus StatusFromName(std::string_view name);
const std::vector<std::string>& StatusNames();

std::string_view ProvenanceName(Provenance provenance);

// What a trainer's exit code says when it wrote no result. Anything unknown is kCrashed.
RunStatus StatusOfExitCode(int exit_code);
TrainerExit ExitCodeOf(RunStatus status);

Json EncodeResult(const RunResult& result);

// Throws Error(kInvalidInput) naming `source` and the field: a result file is outside input.
RunResult DecodeResult(const Json& document, const std::string& source);

}  // namespace ridgeline
