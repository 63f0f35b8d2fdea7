// `ridgeline exec JOB.json`: runs a job's points on this node, one after another, each in a child process
//   TRAINER… --spec points/<id>/spec.json --result points/<id>/result.json
// (a point whose ranks are processes in one child a rank, with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT, as torchrun sets them, RIDGELINE_SECRET_FILE (node/secret.h), and its share of the
// cores; the first that fails ends the others) and leaves one line a point in the job's results.log, however the
// trainer ended. One bad point never stops the others. The trainer is in a process group of its own, is killed with us,
// writes its output to points/<id>/log.txt (rank 1 to log.1.txt, …), and finds $RIDGELINE_PROGRESS, $OMP_NUM_THREADS
// (the cores it may use) and what the job gives it in its environment. The job may give another number of threads, but
// not say whose rank it is. What it leaves running is ended with it.
//
// Several nodes run a job together where exec is started on each of them with the variables of node/ranks.h: they run
// the same points in step, each with its share of the ranks, and node 0, which has rank 0, writes the results. Every
// node says how a point ended for its ranks and what their logs held (trainers/node_part.h). Where they share the job's
// folder, node 0 waits for that, and the first cause of all and the figures of all logs are the point's result; a point
// that has failed on one node is ended on the others. Where they share none, what each says is on_part's, and the
// result of node 0 says that it awaits the others' (kAwaitsNodesEvidence).
//
// The job file may be a folder that holds it in parts, joined in the order of their names.
//
// What a point needed while it ran is removed when its line is on the disk; its logs stay where it did not end well, or
// where the job keeps logs (ridgeline/job_dir.h).
//
// A point whose result is there and whole is skipped, unless that result says that it is nobody's (cancelled,
// infrastructure): running a job again, after kill -9 at any moment, runs only what misses. A point that has checkpoint
// files continues from them.
//
// Before the first point that is to be run, the job checks whether this node can run any of them (node/preflight.h).
// Where it cannot, and where a trainer could not be started, the points end as infrastructure's, with the node's name.
//
// A point's time limit counts from when its trainer has begun: as it is started, and of ranks from when they have met.
// Until then the job's meet limit holds.
//
// A defined trainer whose log tells how it ends, or that its steps are done, and that hangs, is ended before its time
// limit (node/hang_watch.h).
//
// SIGTERM, SIGUSR1 and SIGHUP mean that the node is taken away: the trainer gets SIGTERM and, where it saves its state,
// the job's save_time_s, else the grace time, and the point ends as infrastructure's (preempted). SIGINT, and any of
// them while the job's cancel file is there, mean that a person wants it to end now: the trainer gets SIGINT and the
// grace time, and the point is `cancelled`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "node/hang_watch.h"
#include "node/preflight.h"
#include "ridgeline/run.h"

namespace ridgeline {

struct ExecOptions {
  int64_t grace_ns = 10'000'000'000;  // between SIGINT or SIGTERM and SIGKILL
  HangPatience hang;                  // how long a defined trainer may hang (node/hang_watch.h)
  // How long ranks may go on after rank 0 has ended well.
  int64_t others_end_ns = 600'000'000'000;
  std::filesystem::path job_dir;  // the job's folder, where it is not what its file says
  // Of a point. The log is of the first of its ranks here.
  std::function<void(const std::string& point_id, const std::filesystem::path& progress_file,
                     const std::filesystem::path& log_file)>
      on_begin;
  // Of a point on several nodes: what this one says of its part, a line's payload (ridgeline/job_line.h). On node 0
  // before its result, and only where that awaits the others'.
  std::function<void(const std::string& point_id, const std::string& payload)> on_part;
  std::function<void(const RunResult& result)> on_result;   // after each point's result is written
  std::function<void(const RunResult& result)> on_skipped;  // a point that had this result
  std::function<void()> on_wait;  // another process runs this job: when it has ended, it is ours
};

struct ExecSummary {
  int64_t ran = 0;
  int64_t skipped = 0;         // had a result
  bool stopped = false;        // told to: the running point is cancelled or preempted, later ones have no result
  std::optional<Unfit> unfit;  // why this node could run none of the points that were left
};

// What exec exits with (ridgeline/job_dir.h).
int ExecExitCode(const ExecSummary& summary);

// Owns this process from here on: blocks those signals, becomes the reaper of orphaned descendants, and ends every
// child it has. A job that another process runs is waited for, until any signal ends the waiting. Throws
// Error(kInvalidInput) for a wrong job file, Error(kInfrastructure) where the disk fails.
ExecSummary ExecJobFile(const std::filesystem::path& job_file, const ExecOptions& options = {});

}  // namespace ridgeline
