// What the scheduler's report about a job's end means for the job's points. The scheduler knows the job; `ridgeline
// exec` knows the points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/collect.h"
#include "run/result.h"

namespace ridgeline::collect {

// The names in a launcher's evidence (ridgeline/launcher.h, poll_many).
namespace said {
inline constexpr char kEnd[] = "end";
inline constexpr char kReason[] = "reason";
inline constexpr char kMessage[] = "message";
inline constexpr char kHint[] = "hint";
inline constexpr char kNode[] = "node";
inline constexpr char kEndedUnixS[] = "ended_unix_s";
inline constexpr char kBilledS[] = "billed_s";
inline constexpr char kBilledNodes[] = "billed_nodes";
inline constexpr char kMayBillS[] = "may_bill_s";
inline constexpr char kUsedS[] = "used_s";
// Set by the driver for a job that it ended because a node hung, or had failed while others waited for it: how that
// node failed.
inline constexpr char kGangEnded[] = "gang_ended";
}  // namespace said

// Returns the evidence of that name; empty if there is none.
std::string Said(const JobToCollect& from, const char* key);

// Returns why a job's timeout does not count for the point: its job began late, as behind a slow prolog, or somebody
// lowered the job's limit. Empty if the point had all the time that it may take, has no limit of its own, or a time is
// not known. `began_ns` and `ended_ns`: Unix times of the point in nanoseconds; 0: not known.
std::string WhyTooEarly(const JobToCollect& from, const std::string& point_id, int64_t began_ns, int64_t ended_ns);

// Returns how a job ended, for a point without a result of its own. `began`: whether the point's turn had come.
RunEnd EndOfJob(const JobToCollect& from, bool began);

// Corrects the end of a result that says that the point was told to end: nobody on the node knows why, but the
// scheduler does. A run that saved its state continues, even if its time was up.
void CorrectEnd(const JobToCollect& from, RunResult& result);

// Corrects one node's view of a point on several nodes, or a result that lacks some nodes' parts. If the infrastructure
// took another node, or a person ended them all, that is the end. If the point ended well, but some nodes never
// reported, it ended as its job did. Such an end is no result, so at most it makes a trainer's own crash run a second
// time.
void CorrectEndOfSeveral(const JobToCollect& from, RunResult& result);

}  // namespace ridgeline::collect
