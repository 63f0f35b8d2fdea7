// A job: what one submission to a launcher runs, and the file that carries it to the node (`ridgeline exec JOB.json`).
// What is in a job's folder, include/ridgeline/job_dir.h says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/run.h"

namespace ridgeline {

inline constexpr int64_t kJobVersion = 1;

// Of a gang of ridgeline-train, where nothing is said: containers may have to be pulled, libraries read from far away.
inline constexpr int64_t kUsualMeetLimitS = 600;

// The same for a trainer that a definition describes. It may compile or download for long, so only silence counts.
// PyTorch's process groups wait no longer for each other by default (30 minutes; NCCL's 10). Other trainers: assumed.
inline constexpr int64_t kUsualQuietStartS = 1800;

struct JobPoint {
  std::string id;  // PointId(spec)
  RunSpec spec;
  int64_t time_limit_s = 0;  // of the run; 0: none
  int64_t repeat = 0;        // which of the spec's repeats is run, from 1; 0: all of them, in one process
};

// What the trainer is given: the spec of one repeat, with checkpoint files of its own. Another repeat must not find
// them, and its steps done.
RunSpec SpecOfRun(const JobPoint& point);

struct Job {
  std::string key;    // deterministic and unique; safe as a file name and as a Kubernetes name: "rl-" + hexadecimal
  std::string sweep;  // the sweep's name
  // Which submission it was, so that a lost database can be made again from its folder; the node does not ask.
  std::string campaign;              // what its points are measured for; empty: not said
  std::string launcher;              // empty: a person submits it
  int64_t created_unix_ns = 0;       // 0: not said
  std::string setup;                 // as what its points are measured; empty: not said
  std::filesystem::path job_dir;     // absolute
  std::vector<std::string> trainer;  // argv, to which --spec and --result are added; empty: the node's ridgeline-train
  std::string definition;            // of another trainer (src/trainers), its text: in place of `trainer`
  int64_t nodes = 1;                 // that run each point together
  int64_t cpus = 0;                  // cores of a node a point may use; 0: all
  int64_t gpus = 0;                  // of a node that were asked for
  int64_t memory_limit_bytes = 0;    // of a node a point may use; 0: no limit
  int64_t meet_limit_s = 0;          // until a point's ranks have met; 0: MeetLimitS says
  int64_t save_time_s = 120;         // a trainer has to save its state when the node is taken away
  bool keep_logs = false;            // of points that end well, too
  std::map<std::string, std::string> environment;  // of the trainer, beside what it is started with
  Json config;  // the sweep's `launch:` mapping as it holds for these points; null: as it stands there
  std::vector<JobPoint> points;
};

// Whether it is ridgeline-train, whose ways are known. `trainer`: argv, as a job or a sweep names it.
bool IsOurTrainer(const std::vector<std::string>& trainer);
inline bool IsOurTrainer(const Job& job) { return job.definition.empty() && IsOurTrainer(job.trainer); }

// As what its points are measured (run/measurement.h). Of a job of an earlier version, which says it not: as far as its
// parts do.
std::string SetupOf(const Job& job);

// How long the point's ranks may take to meet, from when they are started; its time limit counts from then on. 0: it
// begins as it is started. That is so of one process, and of ranks of another trainer, which need not say when they
// have met, unless the job sets a limit.
int64_t MeetLimitS(const Job& job, const JobPoint& point);

// Whether the points of both could as well be in one job.
bool AskForTheSame(const Job& a, const Job& b);

std::filesystem::path JobFile(const Job& job);

// The job with its folder elsewhere, as a node has it, and its checkpoint files still beside that where they were
// beside the old one.
void MoveJob(Job& job, const std::filesystem::path& job_dir);

Json EncodeJob(const Job& job);
// What its file holds: the same, with a checksum over itself.
std::string JobText(const Job& job);
// The checksum is checked where one is there: a person may write a job file, too. Throws Error(kInvalidInput) naming
// `source`.
Job DecodeJob(const Json& document, const std::string& source);
// A job's own file, that the job may have changed; nothing where there is none. Throws the same, and
// Error(kInfrastructure) where it cannot be read.
std::optional<Job> ReadJobFile(const std::filesystem::path& job_dir);

}  // namespace ridgeline
