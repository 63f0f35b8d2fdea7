// Collecting: a job's results become rows of the store, each classified, and each stored once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/passed_over.h"
#include "ridgeline/job_line.h"
#include "store/store.h"

namespace ridgeline::collect {

// The parts that pods without a common folder reported about points (ridgeline/job_line.h), as far as they are still
// needed: for each point and node, the last payload. The memory for hostile pods is bounded.
class PartsTold {
 public:
  void Take(JobLine line);
  std::vector<std::string> Of(const std::string& point_id) const;
  void Forget(const std::string& point_id);
  int64_t offset = 0;  // in their file, of the first unread line

 private:
  std::map<std::string, std::map<int64_t, std::string>> payloads_;
  size_t bytes_ = 0;
};

// What was read of a job's results file so far, so that a growing file is read only once.
struct JobResults {
  int64_t offset = 0;  // of the first unread line
  int64_t broken = 0;  // lines that were cut or damaged
  // The last line of each point without a final line. It counts if the job ends with it.
  std::map<std::string, std::string> unfinished;
  PartsTold parts;
  // How a node failed in a point that has no result, while others may wait for it forever; empty: none has failed.
  std::string failed_part;
  std::string awaiting;      // a point that has ended well on its first node, and awaits others'; empty: none
  bool lacks_lines = false;  // the job has ended, and a point has no line yet (JobToCollect::lines_may_come)
};

// A job to look at, and its launcher's current word on it.
struct JobToCollect {
  store::JobRecord job;
  // kRunning or another live state: take the final results and leave the others for later. kEnded, kLost or kCancelled:
  // every point of the job gets a result now, and the job this state.
  store::JobRecord::State state = store::JobRecord::State::kRunning;
  std::map<std::string, std::string> evidence;  // the scheduler's words (launcher.h, poll_many), `end` included
  // State for repeated calls. nullptr: the results are read from the beginning.
  JobResults* results = nullptr;
  // For a job that ended well: every point has a line, but a network file system may show it late. Points without one
  // are left for later, `results` says that there are some, and the job has not ended yet.
  bool lines_may_come = false;
};

struct Collected {
  std::string point_id;
  RunEnd end;
  std::string message;
  std::string node;  // where the infrastructure failed: names, separated by spaces; empty: not known
  double steady_tokens_per_s = 0;
  int64_t duration_ns = 0;       // from its start to its end; 0: its result does not say
  int64_t repeat = 0;            // which of its point's repeats it was; 0: all of them
  bool began = true;             // false: its job ended before its turn came
  std::string disturbance = {};  // evidence against its times; empty: none known
};

// Reads the results of the jobs' points that have none yet, and stores them, all in one transaction together with the
// end of the jobs that ended. `now_unix_ns` is the time of results and ends without a time of their own. Returns what
// is new, in the order of the jobs and of the lines about it. Repeating the call changes nothing. Throws
// Error(kInfrastructure) if a file exists and the system cannot read it; then nothing is stored.
//
// If a point's nodes share no folder, node 0's result waits for the reports of the other nodes' pods. All together are
// one result (trainers/node_part.h), once each has reported its part. If the job ended without some, the result says
// so.
//
// A final result keeps its own end. A crash or a timeout on several nodes is final if a later point of the job did well
// on them, else when the job ends. If the job's end was the infrastructure's or a person's doing, so was the crash,
// because a node sees no more of another one that is lost (run/result.h).
//
// The points of a job that ended:
// - A line of another version or of another point is infrastructure (storage). The evidence says what was wrong, and
//   the line stays in its place.
// - With no line, a cut or damaged one, or no regular file of lines, the point's end is what the scheduler's `end`
//   says, if a scheduler may say that (ScheduledEnd). Else it is `cancelled` for a cancelled job. Else it is
//   infrastructure: storage or start by the exit code of `exec`, else lost. The same holds for a result that says that
//   the point was told to stop, because a node cannot know why.
// - A point that had not begun is infrastructure, however its job ended: start; or lost, if others of its job had
//   begun; or storage, if its results are no regular file.
// These carry the end of the point's log.
std::vector<Collected> Collect(store::Store& store, std::span<const JobToCollect> jobs, int64_t now_unix_ns);

// Findings in the folders of jobs that no driver submitted.
struct FolderCollection {
  int64_t added = 0;
  std::vector<std::string> problems;  // what was not read or cannot be used, and why; it is left as it is
  PassedOver strangers;               // ids of points that nobody asked for
};

// Points by their ids, with the key under which each is measured.
using MeasuredAs = std::unordered_map<std::string, MeasurementKey>;

// Reads the results in one folder, and adds its findings. Throws as Collect does.
void CollectJobFolder(store::Store& store, const std::filesystem::path& job_dir, const MeasuredAs& points,
                      FolderCollection& found);

// The name, among the jobs' folders, of the sweep that `ridgeline render` wrote.
inline constexpr const char* kRenderedSweepName = "sweep.yaml";

// Reads the results of `jobs_dir`/JOB and stores the final ones of these points, which are in the store. Skips points
// that already have a result from there. Throws as Collect does.
FolderCollection CollectJobFolders(store::Store& store, const std::filesystem::path& jobs_dir,
                                   const MeasuredAs& points);

// The same for the files *.log of a folder, with the reports of pods (ridgeline/job_line.h).
FolderCollection CollectLogs(store::Store& store, const std::filesystem::path& dir, const MeasuredAs& points);

}  // namespace ridgeline::collect
