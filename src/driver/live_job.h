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

namespace ridgeline::driver {

// Evidence of a live job in the store: why it was withdrawn.
inline constexpr const char* kWithdrawn = "withdrawn";
// Evidence of a queued job in the store: the nodes that it must avoid, because jobs failed there. Names are separated
// by spaces.
inline constexpr const char* kKeptOff = "kept_off";

// Evidence of a running job in the store: the point that awaits other nodes, and since when, in Unix time. So a driver
// that goes on with the job does not begin their time anew.
inline constexpr const char* kAwaiting = "awaiting";
inline constexpr const char* kAwaitingSince = "awaiting_since_unix_ns";

struct LiveJob {
  store::JobRecord record;
  std::optional<Job> to_submit;  // set until the launcher has taken the job
  bool may_exist = false;        // whether the launcher may have heard of it
  int submit_tries = 0;
  int64_t next_submit_ns = 0;    // no submission before this time
  int64_t submitted_ns = 0;      // monotonic; 0: in an earlier run
  int64_t collected_ns = 0;      // when results were last looked for
  int64_t missing_since_ns = 0;  // since when the launcher has not known it; 0: it does
  int64_t ended_since_ns = 0;    // since when the launcher has said that it ended; 0: it has not
  int64_t done_since_ns = 0;     // since when it has been running with a result of every point; 0: some are missing
  int64_t broken_since_ns = 0;   // since when one of its nodes has failed while others go on; 0: none has
  std::string awaiting;          // from its results (JobResults)
  int64_t awaiting_since_ns = 0;
  int64_t awaiting_since_unix_ns = 0;  // as the store has it; 0: it has none
  int64_t no_node_since_ns = 0;        // since when there has been no node for it; 0: there may be one
  launch::JobPhase phase = launch::JobPhase::kQueued;
  std::string withdrawn;        // why it was told to end before it began; empty: it was not
  bool told_to_end = false;     // for that reason
  std::string gang_ended;       // how a node failed or hung, for which the job was told to end; empty: it was not
  std::string kept_off;         // the nodes that it must avoid, because jobs failed there; empty: none
  std::string pending;          // the scheduler's reason why it is queued; empty: not given
  std::string no_node;          // the scheduler's reason why there is no node for it
  int64_t expected_s = 0;       // when the scheduler expects it to start, in Unix time; 0: not given
  collect::JobResults results;  // what was read of its results
  size_t current = 0;           // index of the point that runs, as far as its files tell

  launch::JobRef ref() const { return {record.key, record.native_id}; }
};

// Makes a live job of a planned job that is about to be an intent. `attempts`: how many attempts its points have had
// (Store::Attempts).
LiveJob OpenJob(Job job, const std::string& launcher, const MeasurementKey& measured_as,
                const std::map<std::string, int64_t>& attempts, int64_t unix_ns);

// Writes the job's folder and file. Throws Error(kInfrastructure).
void WriteJob(const Job& job);

// Returns the job of one of this run's points, or nothing for an unknown point.
using JobOf = std::function<std::optional<Job>(const std::string& point_id)>;

// Makes a live job of a job of an earlier run. If the launcher may not have heard of it, writes it again and sets
// `to_submit`. A job that is still an intent and has no `to_submit` was never submitted. `job_of` as for JobOfIntent.
LiveJob AdoptJob(store::JobRecord record, const JobOf& job_of);

// The job of an intent that may or may not have been submitted. Reads its file, or makes the job again from the jobs of
// its points. Returns nothing if neither is possible: then it was never submitted.
std::optional<Job> JobOfIntent(const store::JobRecord& record, const JobOf& job_of);

// Marks the points that have a result in the job's files that is not collected yet.
void TakeResults(store::JobRecord& job);

// Moves `current` to the first point without a result and reads its progress file's text.
std::string CurrentProgress(LiveJob& job);

}  // namespace ridgeline::driver
