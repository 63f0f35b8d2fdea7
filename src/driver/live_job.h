// A job between its intent and its end, as the driver sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "launch/launcher.h"
#include "run/job.h"
#include "store/store.h"

namespace ridgeline {

// The evidence of a live job in the store that says why it was withdrawn.
inline constexpr const char* kWithdrawn = "withdrawn";
// The evidence of a queued job that may not go to these nodes, as jobs failed there: names, separated by spaces.
inline constexpr const char* kKeptOff = "kept_off";

struct LiveJob {
  JobRecord record;
  std::optional<Job> to_submit;  // until the launcher has taken it
  int submit_tries = 0;
  int64_t next_submit_ns = 0;    // not before
  int64_t submitted_ns = 0;      // monotonic; 0: in an earlier run
  int64_t collected_ns = 0;      // results were last looked for
  int64_t missing_since_ns = 0;  // the launcher has not known it since; 0: it does
  int64_t ended_since_ns = 0;    // the launcher has said since that it ended; 0: it has not
  int64_t done_since_ns = 0;     // it has been running since, with a result of every point; 0: it is not done
  int64_t broken_since_ns = 0;   // a node of it has failed, and others are still at the point; 0: none has
  std::string awaiting;          // as its results said (JobResults)
  int64_t awaiting_since_ns = 0;
  int64_t no_node_since_ns = 0;  // there has been no node for it since; 0: there may be one
  JobPhase phase = JobPhase::kQueued;
  std::string withdrawn;     // why it was told to end before it began; empty: it was not
  bool told_to_end = false;  // for that
  std::string gang_ended;    // how a node failed or hung, for which it was told to end; empty: it was not
  std::string kept_off;      // the nodes that it may not go to, as jobs failed there; empty: it may go to any
  std::string pending;       // the scheduler's word for why it is queued; empty: not said
  std::string no_node;       // its words for that there is no node for it
  int64_t expected_s = 0;    // when the scheduler thinks that it will start, as Unix time; 0: not said
  JobResults results;        // what was read of them
  size_t current = 0;        // index of the point that runs, as far as its files tell

  JobRef ref() const { return {record.key, record.native_id}; }
};

// A planned job that is about to be an intent. `attempts`: that its points have had (Store::Attempts).
LiveJob OpenJob(Job job, const std::string& launcher, const MeasurementKey& measured_as,
                const std::map<std::string, int64_t>& attempts, int64_t unix_ns);

// Writes the job's folder and file. Throws Error(kInfrastructure).
void WriteJob(const Job& job);

// A job of one of our points; nothing for a point that we do not know.
using JobOf = std::function<std::optional<Job>(const std::string& point_id)>;

// A job of an earlier run. One that the launcher may not have heard of is written again and has its `to_submit`; a job
// that is still an intent and has none was never submitted. `job_of` as of JobOfIntent.
LiveJob AdoptJob(JobRecord record, const JobOf& job_of);

// The job of an intent that may or may not have been submitted: its file where that was written, else made again, of
// the jobs of its points. Nothing where neither is possible: then it was never submitted.
std::optional<Job> JobOfIntent(const JobRecord& record, const JobOf& job_of);

// Marks the points that the job's files have a result of which nobody has collected yet.
void TakeResults(JobRecord& job);

// Moves `current` to the first point without a result and reads its progress file's text.
std::string CurrentProgress(LiveJob& job);

}  // namespace ridgeline
