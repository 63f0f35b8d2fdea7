// Encodes, decodes and checks RunResults, and names their ends.
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
// Returns nothing for an unknown name.
std::optional<InfrastructureReason> ReasonFromName(std::string_view name);
const std::vector<std::string>& ReasonNames();  // without kNone's empty name

// "ok", "infrastructure (node)".
std::string EndName(const RunEnd& end);
// The end that a document states: `status`, and with "infrastructure" the `reason`. "preempted" is an end of the
// infrastructure by itself: a trainer may call it a status. Throws Error(kInvalidInput) for unknown names, and if one
// of the two is missing or superfluous.
RunEnd EndFromNames(std::string_view status, std::string_view reason);

std::string_view ProvenanceName(Provenance provenance);

// The end that a trainer's exit code means if it wrote no result. Unknown codes are kCrashed.
RunEnd EndOfExitCode(int exit_code);
TrainerExit ExitCodeOf(const RunEnd& end);
inline RunEnd EndOf(const RunResult& result) { return {result.status, result.reason}; }
inline void SetEnd(const RunEnd& end, RunResult& result) {
  result.status = end.status;
  result.reason = end.reason;
}

// The name of the evidence that `ridgeline exec` gives for a point with ranks on several nodes: their number.
inline constexpr const char* kNodesEvidence = "nodes";
inline bool RanOnSeveralNodes(const RunResult& result) { return result.evidence.contains(kNodesEvidence); }
// Whether this is what a node sees if another node is lost: its ranks crash, or wait for the lost ones until their time
// is up. The end of their job shows which.
bool MayBeOfALostNode(const RunResult& result);

Json EncodeResult(const RunResult& result);

// A definition's own figures, by their names: {"data_time": {"value": 0.012, "unit": "s"}}. Throws Error(kInvalidInput)
// for more than kMaxOwnFigures of them, a name that is not of [a-z0-9_]{1,64}, a value that is no finite number, and a
// unit that is no printable line of at most kMaxUnitBytes.
inline constexpr size_t kMaxOwnFigures = 64;
inline constexpr size_t kMaxUnitBytes = 32;
Json EncodeOwnFigures(const std::map<std::string, OwnFigure>& figures);
std::map<std::string, OwnFigure> DecodeOwnFigures(const Json& object);

// Throws Error(kInvalidInput), which names `source` and the field: a result file comes from outside.
RunResult DecodeResult(const Json& document, const std::string& source);

}  // namespace ridgeline
