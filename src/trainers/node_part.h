// The parts of a run on several nodes, and the one result that they make. Each node reports its part: how its ranks
// ended, and what their logs held. Nodes that share the job's folder write the parts there, for the first node. Pods
// that share no folder print them as lines of their logs, for the collector (ridgeline/job_line.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/limits.h"
#include "ridgeline/run.h"
#include "trainers/end_words.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {

// How much a node's report tells about the cause of the end; a lower number tells more. Among the nodes that did not
// end well, the one with the lowest weight decides, and among equals the one that ended first. If a log gives the end,
// the weight is that of its words (EndWeight).
namespace weight {
inline constexpr int kStopped = -1;  // a person or a scheduler ended it
inline constexpr int kCause = static_cast<int>(EndWeight::kCause);
inline constexpr int kCrash = static_cast<int>(EndWeight::kCrash);
inline constexpr int kKilled = static_cast<int>(EndWeight::kKilled);
inline constexpr int kCodeAlone = static_cast<int>(EndWeight::kCodeAlone);
inline constexpr int kHung = kCodeAlone + 1;   // it was over its limit: it may have waited for another
inline constexpr int kEnded = kCodeAlone + 2;  // we ended it, because another node had failed
}  // namespace weight

struct NodePart {
  int64_t node = 0;
  std::string name;  // as its scheduler calls it
  // How its ranks ended there, when they ran, and what was observed. If the trainer's logs are read, their figures are
  // in `reading` instead.
  RunResult end;
  int weight = weight::kCodeAlone;
  std::optional<Reading> reading;  // nothing for a trainer that writes its own result
  bool ran = true;                 // false: the node can run none of its job's points
};

// Returns the end that the log tells, as a result without figures. If the log tells none, the run has crashed.
RunResult EndAlone(const Reading& reading);

// Returns the result of a run of `spec` on `nodes` nodes from its parts. REQUIRES: `parts` are sorted by node, and the
// first is node 0's. The part that decides (weight) says how the run ended. Figures are merged from all logs, metric by
// metric. If a part is missing, the result says so, and lacks the figures that only that part had. If these were all
// figures of the run's speed, the run is lost. `trainer`: the trainer whose logs are read; nullptr: the result is node
// 0's own.
RunResult ResultOfNodes(const Trainer* trainer, const RunSpec& spec, int64_t nodes, std::vector<NodePart> parts);

// Returns the payload of a part's line. If it would be longer than `most` bytes, whole series are left out, the longest
// first, and the payload says so. Node 0's part also has the `spec` and, if logs are read, the trainer's `definition`.
std::string EncodePart(const Trainer* trainer, const NodePart& part, size_t most = kMaxPartBytes,
                       const RunSpec* spec = nullptr, std::string_view definition = {});
// Decodes the part of a node. `trainer` is the trainer whose logs are read; nullptr: one that writes its own result.
// Throws Error(kInvalidInput) if the payload is no part.
NodePart DecodePart(const Trainer* trainer, std::string_view payload);
// Returns the node of a payload; nothing if it is no part.
std::optional<int64_t> NodeOfPart(std::string_view payload);
// Whether the part is of the attempt whose first node reports `first`. A part that ended more than a minute before the
// first node began is of an earlier attempt, which was cut off.
bool IsOfAttempt(const NodePart& part, const RunResult& first);

// The name of the evidence that marks a result which node 0 made without the other nodes' parts.
inline constexpr const char* kAwaitsNodesEvidence = "awaits_nodes";
inline bool AwaitsNodes(const RunResult& result) { return result.evidence.contains(kAwaitsNodesEvidence); }
// The name of the evidence, a sentence, of a result that lacks nodes' parts.
inline constexpr const char* kMissingPartsEvidence = "missing_parts";

// Who ended the nodes that report that they were told to leave.
enum class ToldBy {
  kOthers,  // a person or a scheduler; this is how the point ended
  kUs,      // Ridgeline, because another node had failed or hung; that node decides
};

// Returns the result of a point that ended well on its first node with the result `first`, while another node never
// ended its part. `node`: that node's name; empty: not known.
RunResult HungElsewhere(RunResult first, const std::string& node);

// Completes node 0's result `first` with the payloads of the point's parts. A payload that is not a part of this run
// counts as missing. Returns nothing if a part is missing, unless `last` says that no more will come. If we ended the
// nodes and no part says why one failed, a node whose part is missing hung.
std::optional<RunResult> CompleteResult(const RunResult& first, const std::vector<std::string>& payloads, bool last,
                                        ToldBy told = ToldBy::kOthers);

// Returns the first part that failed by itself, as a result without figures; nothing if none did. For a point about
// which node 0 reports nothing. Ignores parts that ended before `since_unix_ns`, because they are of an earlier
// attempt.
std::optional<RunResult> FirstFailure(const std::vector<std::string>& payloads, int64_t since_unix_ns);

}  // namespace ridgeline::trainers
