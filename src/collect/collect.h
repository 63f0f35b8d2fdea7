// Collecting: a job's results become rows of the store, each classified, none twice.
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

namespace ridgeline {

// What pods that share no folder said of their parts in points (ridgeline/job_line.h), as far as it is needed yet: of
// each point, by its nodes, the last payloads. Of hostile pods no more than so much is kept.
class PartsTold {
 public:
  void Take(JobLine line);
  std::vector<std::string> Of(const std::string& point_id) const;
  void Forget(const std::string& point_id);
  int64_t offset = 0;  // in the file of them, of the first line that is not read yet

 private:
  std::map<std::string, std::map<int64_t, std::string>> payloads_;
  size_t bytes_ = 0;
};

// What was read of a job's results file so far, so that a file that grows is read once.
struct JobResults {
  int64_t offset = 0;  // of the first line that is not read yet
  int64_t broken = 0;  // lines that were cut or damaged
  // The last line of each point that has none that stands: it counts where the job ends with it.
  std::map<std::string, std::string> unfinished;
  PartsTold parts;
  // How a node failed in a point that has no result, while others may wait for it for ever; empty: none has.
  std::string failed_part;
  std::string awaiting;      // a point that has ended well on its first node, and awaits others'; empty: none
  bool lacks_lines = false;  // the job has ended, and a point has no line yet (JobToCollect::lines_may_come)
};

// A job to look at, and what its launcher says of it now.
struct JobToCollect {
  JobRecord job;
  // kRunning or another live state: take what results are final and leave the rest for later. kEnded, kLost or
  // kCancelled: every point of the job gets a result now, and the job this state.
  JobRecord::State state = JobRecord::State::kRunning;
  std::map<std::string, std::string> evidence;  // the scheduler's words (launcher.h, poll_many), `end` included
  // Where they are looked for again and again. nullptr: they are read from the beginning.
  JobResults* results = nullptr;
  // Of a job that ended well: each point has a line, but a network file system may show it late. Points without one are
  // left for later, and `results` says that there are some; then the job has not ended yet.
  bool lines_may_come = false;
};

struct Collected {
  std::string point_id;
  RunEnd end;
  std::string message;
  std::string node;  // where the infrastructure failed: names, separated by spaces; empty: not known
  double steady_tokens_per_s = 0;
  int64_t duration_ns = 0;       // from its start to its end; 0: its result does not say
  int64_t repeat = 0;            // which of its point's repeats it was; 0: it was all of them
  bool began = true;             // false: its job ended before its turn came
  std::string disturbance = {};  // what speaks against its times; empty: nothing known
};

// Reads the results of the jobs' points that have none yet, and keeps them, all in one transaction together with the
// end of the jobs that ended. `now_unix_ns` is the time of results and ends that nobody else timed. Returns what is
// new, in the order of the jobs and of the lines that tell of it. Doing it again changes nothing.
//
// Of a point whose nodes share no folder, node 0's result awaits what the other nodes' pods say: all together are one
// result (trainers/node_part.h), when each has told its part, or the job ended without, which the result says.
//
// A result that stands: its own end. A crash or a timeout on several nodes stands where a later point of the job did
// well on them, else where the job ends: if that was the infrastructure's or a person's doing, so was the crash, as a
// node sees no more of another that is lost (run/result.h). Of a job that ended: a line of another version or of
// another point is infrastructure (storage), with what was wrong as evidence, and stays where it is; no line, one that
// was cut or damaged, or no regular file of lines, is what the scheduler's `end` says, where that is a scheduler's to
// say (ScheduledEnd), else `cancelled` for a cancelled job, else infrastructure: by the exit code of `exec` storage or
// start, else lost. So is a result that says that the point was told to stop, since a node cannot tell why it is. A
// point that had not begun is infrastructure, whatever its job ended of: start, or lost where others of its job had
// begun, or storage where its results are no regular file. These carry the end of the point's log. Throws
// Error(kInfrastructure) where a file is there and the system cannot read it: then nothing is kept.
std::vector<Collected> Collect(Store& store, std::span<const JobToCollect> jobs, int64_t now_unix_ns);

// What was found in the folders of jobs that no driver submitted.
struct FolderCollection {
  int64_t added = 0;
  std::vector<std::string> problems;  // what was not read, or cannot be used, and why; it is left as it is
  PassedOver strangers;               // ids of points that nobody asked for
};

// Points by their ids, and what each is measured as.
using MeasuredAs = std::unordered_map<std::string, MeasurementKey>;

// Reads what results one folder has, and adds what it finds. Throws as Collect does.
void CollectJobFolder(Store& store, const std::filesystem::path& job_dir, const MeasuredAs& points,
                      FolderCollection& found);

// Reads the results of `jobs_dir`/JOB and keeps the final ones of these points, which are in the store; those of points
// that have a result of that already are passed over. Throws as Collect does.
FolderCollection CollectJobFolders(Store& store, const std::filesystem::path& jobs_dir, const MeasuredAs& points);

// The same of the files *.log of a folder: what pods said (ridgeline/job_line.h).
FolderCollection CollectLogs(Store& store, const std::filesystem::path& dir, const MeasuredAs& points);

}  // namespace ridgeline
