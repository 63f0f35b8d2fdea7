// A job: what one submission to a launcher runs, and the file that carries it to the node (`ridgeline exec JOB.json`).
//
// A job owns a folder, job_dir, and writes nothing outside it:
//   job.json               this file, written by the driver before it submits
//   results/<point id>.json  one RunResult a point, written atomically by `ridgeline exec`
//   points/<point id>/     the point's spec.json, log.txt and progress file, and its checkpoint files where the spec's
//                          checkpoint.dir is relative
//   cancelled              there while a person wants the job to end
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "ridgeline/run.h"

namespace ridgeline {

inline constexpr int64_t kJobVersion = 1;

struct JobPoint {
  std::string id;  // PointId(spec)
  RunSpec spec;
  int64_t time_limit_s = 0;  // 0: none
};

struct Job {
  std::string key;    // deterministic and unique; safe as a file name and as a Kubernetes name: "rl-" + hexadecimal
  std::string sweep;  // the sweep's name, for people
  std::filesystem::path job_dir;     // absolute
  std::vector<std::string> trainer;  // argv, to which --spec and --result are added; empty: the node's ridgeline-train
  int64_t cpus = 0;                  // cores a point may use; 0: all
  int64_t memory_limit_bytes = 0;    // a point may use; 0: no limit
  int64_t save_time_s = 120;         // a trainer has to save its state when the node is taken away
  std::vector<JobPoint> points;
};

std::filesystem::path JobFile(const Job& job);
std::filesystem::path ResultFile(const std::filesystem::path& job_dir, const std::string& point_id);
// Written by who cancels a job, before it is told to end: a signal alone may as well be the scheduler's, that takes the
// node away, and then the trainer saves its state first.
std::filesystem::path CancelFile(const std::filesystem::path& job_dir);
std::filesystem::path PointDir(const std::filesystem::path& job_dir, const std::string& point_id);
// The trainer overwrites this file (its name is in $RIDGELINE_PROGRESS) after every step with one line:
// "<steps done> <steps in all> <tokens per second>\n".
std::filesystem::path ProgressFile(const std::filesystem::path& job_dir, const std::string& point_id);

// The job with its folder elsewhere, as a node has it, and its checkpoint files still beside that where they were
// beside the old one.
void MoveJob(Job& job, const std::filesystem::path& job_dir);

Json EncodeJob(const Job& job);
// Throws Error(kInvalidInput) naming `source`.
Job DecodeJob(const Json& document, const std::string& source);

}  // namespace ridgeline
