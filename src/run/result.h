// RunResult: encoded, decoded, checked; the names of its ends.
#pragma once

#include <map>
#include <optional>
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

// "node", "start", …; empty for kNone.
std::string_view ReasonName(InfrastructureReason reason);
// Nothing for a name that is none of them.
std::optional<InfrastructureReason> ReasonFromName(std::string_view name);
const std::vector<std::string>& ReasonNames();  // without kNone's

// "ok", "infrastructure (node)".
std::string EndName(const RunEnd& end);
// What a document says of an end: `status`, and with "infrastructure" the `reason`. "preempted", and "node_failed" and
// "lost" of earlier versions, are ends of the infrastructure by themselves. Throws Error(kInvalidInput) for names that
// are none, and where one of the two is missing or too many.
RunEnd EndFromNames(std::string_view status, std::string_view reason);

std::string_view ProvenanceName(Provenance provenance);

// What a trainer's exit code says when it wrote no result. Anything unknown is kCrashed.
RunEnd EndOfExitCode(int exit_code);
TrainerExit ExitCodeOf(const RunEnd& end);
inline RunEnd EndOf(const RunResult& result) { return {result.status, result.reason}; }
inline void SetEnd(const RunEnd& end, RunResult& result) {
  result.status = end.status;
  result.reason = end.reason;
}

// The name of the evidence that `ridgeline exec` gives of a point with ranks on several nodes: how many.
inline constexpr const char* kNodesEvidence = "nodes";
inline bool RanOnSeveralNodes(const RunResult& result) { return result.evidence.contains(kNodesEvidence); }
// Whether this is what a node sees where another of them is lost: its ranks crash, or wait for those that are gone
// until their time is up. How their job ended tells.
bool MayBeOfALostNode(const RunResult& result);

Json EncodeResult(const RunResult& result);

// Figures of a definition's own, by their names: {"data_time": {"value": 0.012, "unit": "s"}}. Throws
// Error(kInvalidInput) for more than kMaxOwnFigures of them, a name that is not of [a-z0-9_]{1,64}, a value that is no
// finite number, and a unit that is no printable line of at most kMaxUnitBytes.
inline constexpr size_t kMaxOwnFigures = 64;
inline constexpr size_t kMaxUnitBytes = 32;
Json EncodeOwnFigures(const std::map<std::string, OwnFigure>& figures);
std::map<std::string, OwnFigure> DecodeOwnFigures(const Json& object);

// Throws Error(kInvalidInput) naming `source` and the field: a result file is outside input.
RunResult DecodeResult(const Json& document, const std::string& source);

}  // namespace ridgeline
