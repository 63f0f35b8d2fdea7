// What each of several nodes says of its part in a run, how its ranks ended there and what their logs held, and what
// the parts of all nodes come to. Nodes that share the job's folder leave them there for the first; of pods that share
// none, lines in their logs carry them to whoever collects (ridgeline/job_line.h).
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

namespace ridgeline {

// How much a node knows of why it ended. Of those that did not end well the lowest decides, and of equals the one that
// ended first. Of what its log says it is that of the words (EndWeight).
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
  // How its ranks ended there, when they ran, and what was seen of them. Of a trainer whose logs are read without the
  // figures that these hold.
  RunResult end;
  int weight = weight::kCodeAlone;
  std::optional<Reading> reading;  // of a trainer whose logs are read
  bool ran = true;                 // false: the node can run none of its job's points
};

// The end that a log tells of, as a result without figures; crashed where it tells of none.
RunResult EndAlone(const Reading& reading);

// What all nodes' parts come to: `parts` are of a run of `spec` on so many nodes, sorted, the first of them node 0's.
// The first cause of all decides how the run ended. The figures are of all logs together, metric by metric. Where a
// part is missing, the result says so, and what was only there is missing; where that is all that says how fast the run
// was, the run is lost. `trainer`: whose logs are read; null: the result is node 0's own.
RunResult ResultOfNodes(const Trainer* trainer, const RunSpec& spec, int64_t nodes, std::vector<NodePart> parts);

// The payload of a part's line. Where it would be longer than `most` bytes it lacks series, the longest first, whole,
// and says so. Node 0 says with its own what all of them are of: `spec`, and of a trainer whose logs are read its
// `definition`.
std::string EncodePart(const Trainer* trainer, const NodePart& part, size_t most = kMaxPartBytes,
                       const RunSpec* spec = nullptr, std::string_view definition = {});
// Decodes the part of a node. `trainer` is the trainer whose logs are read; nullptr: one that writes its own result.
// Throws Error(kInvalidInput) if the payload is no part.
NodePart DecodePart(const Trainer* trainer, std::string_view payload);
// Returns the node of a payload; nothing if it is no part.
std::optional<int64_t> NodeOfPart(std::string_view payload);
// Whether a node had not ended a minute before the first began, as that says: else it is of an earlier attempt, which
// was cut off.
bool IsOfAttempt(const NodePart& part, const RunResult& first);

// The name of the evidence of a result that node 0 gave without the parts of other nodes: how it ended there.
inline constexpr const char* kAwaitsNodesEvidence = "awaits_nodes";
inline bool AwaitsNodes(const RunResult& result) { return result.evidence.contains(kAwaitsNodesEvidence); }
// The name of the evidence, a sentence, of a result that lacks nodes' parts.
inline constexpr const char* kMissingPartsEvidence = "missing_parts";

// Who ended the nodes that say that they were told to leave.
enum class ToldBy {
  kOthers,  // a person or a scheduler: that is how the point ended
  kUs,      // because another node had failed, or hung: that one decides
};

// The result of a point that ended well on its first node, which says `first`, while another never ended its part.
// `node`: its name; empty: not known.
RunResult HungElsewhere(RunResult first, const std::string& node);

// What such a result comes to with the payloads of its point's parts. What is no part of it counts as missing. Nothing
// where one is missing, unless `last`: no more will come. Where we ended the nodes, and none says why one failed, the
// missing hung.
std::optional<RunResult> CompleteResult(const RunResult& first, const std::vector<std::string>& payloads, bool last,
                                        ToldBy told = ToldBy::kOthers);

// The first of these parts, of a point that node 0 says nothing of, that failed by itself, as a result without figures;
// nothing where none did. Parts that ended before `since_unix_ns` are of an earlier attempt.
std::optional<RunResult> FirstFailure(const std::vector<std::string>& payloads, int64_t since_unix_ns);

}  // namespace ridgeline
