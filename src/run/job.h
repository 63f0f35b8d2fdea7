// A job: one submission to a launcher, and the file that carries it to the node (`ridgeline exec JOB.json`).
// include/ridgeline/job_dir.h describes a job's folder.
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
#include "run/measurement.h"

namespace ridgeline {

inline constexpr int64_t kJobVersion = 1;

// The default for ranks of ridgeline-train: containers may have to be pulled, and libraries read from slow storage.
inline constexpr int64_t kUsualMeetLimitS = 600;

// The same for a trainer that a definition describes. It may compile or download for long, so only silence counts.
// PyTorch's process groups wait no longer for each other by default (30 minutes; NCCL's 10). Other trainers: assumed.
inline constexpr int64_t kUsualQuietStartS = 1800;

struct JobPoint {
  std::string id;  // PointId(spec)
  RunSpec spec;
  int64_t time_limit_s = 0;  // limit of the run; 0: none
  int64_t repeat = 0;        // the repeat of the spec to run, from 1; 0: all of them, in one process
};

// The trainer's spec: that of one repeat, with checkpoint files of its own. Another repeat must not find these, because
// it would see its steps as done.
RunSpec SpecOfRun(const JobPoint& point);

struct Job {
  std::string key;    // deterministic and unique; safe as a file name and as a Kubernetes name: "rl-" + hexadecimal
  std::string sweep;  // the sweep's name
  // Identifies the submission, so that a lost database can be rebuilt from its folder. The node does not use it.
  std::string campaign;                // the campaign of its points; empty: `ridgeline collect` chooses it
  std::string launcher;                // empty: a person submits the job
  int64_t created_unix_ns = 0;         // 0: a person submits the job
  std::string setup = DefaultSetup();  // the setup of its points (run/measurement.h)
  std::filesystem::path job_dir;       // absolute
  std::vector<std::string> trainer;  // argv, to which --spec and --result are added; empty: the node's ridgeline-train
  std::string definition;            // another trainer's definition (src/trainers) as text, in place of `trainer`
  int64_t nodes = 1;                 // nodes that run each point together
  int64_t cpus = 0;                  // cores of a node that a point may use; 0: all
  int64_t gpus = 0;                  // GPUs of a node that were requested
  int64_t memory_limit_bytes = 0;    // memory of a node that a point may use; 0: no limit
  int64_t meet_limit_s = 0;          // time for a point's ranks to meet; 0: MeetLimitS decides
  int64_t save_time_s = 120;         // time for a trainer to save its state when the node is taken away
  bool keep_logs = false;            // keeps logs of points that end well, too
  std::map<std::string, std::string> environment;  // added to the trainer's environment
  Json config;                                     // the sweep's `launch:` mapping for these points; null: unchanged
  std::vector<JobPoint> points;
};

// Whether it is ridgeline-train, whose behaviour is known. `trainer`: argv, as a job or a sweep names it.
bool IsOurTrainer(const std::vector<std::string>& trainer);
inline bool IsOurTrainer(const Job& job) { return job.definition.empty() && IsOurTrainer(job.trainer); }

// How long the point's ranks may take to meet after they are started. The point's time limit counts from then on. 0:
// the point begins when it is started. That holds for a single process, and for ranks of another trainer, which need
// not report that they have met, unless the job sets a limit.
int64_t MeetLimitS(const Job& job, const JobPoint& point);

// Whether the points of both jobs could be in one job.
bool AskForTheSame(const Job& a, const Job& b);

std::filesystem::path JobFile(const Job& job);

// Moves the job to another folder, as on a node. Checkpoint files that lay beside the old folder stay there.
void MoveJob(Job& job, const std::filesystem::path& job_dir);

Json EncodeJob(const Job& job);
// The text of the job's file, with a checksum over itself.
std::string JobText(const Job& job);
// Checks the checksum if there is one: a person may write a job file, too. Throws Error(kInvalidInput), which names
// `source`.
Job DecodeJob(const Json& document, const std::string& source);
// Reads a job's own file, which the job may have changed; nothing if there is none. Throws as DecodeJob, and
// Error(kInfrastructure) if it cannot be read.
std::optional<Job> ReadJobFile(const std::filesystem::path& job_dir);

}  // namespace ridgeline
