// `ridgeline exec JOB.json`: runs a job's points on this node, one after another, each in a child process
//   TRAINER… --spec points/<id>/spec.json --result points/<id>/result.json
// It leaves one line per point in the job's results.log, however the trainer ended. One bad point never stops the
// others. If a point's ranks are processes, each rank is a child. It gets RANK, LOCAL_RANK, WORLD_SIZE,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them, RIDGELINE_SECRET_FILE (node/secret.h), and its
// share of the cores. The first rank that fails ends the others.
//
// The trainer is in its own process group, and is killed with us. It writes its output to points/<id>/log.txt (rank 1
// to log.1.txt, …). Its environment has $RIDGELINE_PROGRESS, $OMP_NUM_THREADS (the cores that it may use) and the job's
// variables. The job may give another number of threads, but cannot change which rank it is. Processes that it leaves
// running are ended with it.
//
// Several nodes run a job together if exec is started on each of them with the variables of node/ranks.h. They run the
// same points in step, each with its share of the ranks. Node 0, which has rank 0, writes the results. Every node
// reports how a point ended for its ranks and what their logs held (trainers/node_part.h). If they share the job's
// folder, node 0 waits for these reports. The point's result then has the first cause of all and the figures of all
// logs, and a point that failed on one node is ended on the others. If they do not share it, on_part gets each node's
// report, and node 0's result states that it awaits the others' (kAwaitsNodesEvidence).
//
// The job file may be a folder that holds it in parts, which are joined in the order of their names.
//
// When a point's line is on the disk, the files that it needed while it ran are removed. Its logs stay if it did not
// end well, or if the job keeps logs (ridgeline/job_dir.h).
//
// A point with a complete result is skipped, unless that result is no answer (cancelled, infrastructure). So running a
// job again, after kill -9 at any moment, runs only what is missing. A point with checkpoint files continues from them.
//
// Before the first point to run, the job checks whether this node can run any of them (node/preflight.h). If it cannot,
// or if a trainer cannot be started, the points end as infrastructure's, with the node's name.
//
// A point's time limit counts from when its trainer has begun: when it is started, or for ranks when they have met.
// Until then the job's meet limit applies.
//
// A defined trainer that hangs is ended before its time limit, if its log shows how it ends or that its steps are done
// (node/hang_watch.h).
//
// SIGTERM, SIGUSR1 and SIGHUP mean that the node is taken away. The trainer gets SIGTERM. It has the job's save_time_s
// if it saves its state, else the grace time. The point ends as infrastructure's (preempted). SIGINT, or any of these
// signals while the job's cancel file exists, means that a person wants the job to end now. The trainer gets SIGINT and
// the grace time, and the point is `cancelled`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "node/hang_watch.h"
#include "node/preflight.h"
#include "ridgeline/run.h"

namespace ridgeline::node {

struct ExecOptions {
  int64_t grace_ns = 10'000'000'000;  // between SIGINT or SIGTERM and SIGKILL
  HangPatience hang;                  // how long a defined trainer may hang (node/hang_watch.h)
  // How long ranks may go on after rank 0 has ended well.
  int64_t others_end_ns = 600'000'000'000;
  std::filesystem::path job_dir;  // the job's folder, if it is not the one in its file
  // Called when a point begins. The log is that of the first of its ranks here.
  std::function<void(const std::string& point_id, const std::filesystem::path& progress_file,
                     const std::filesystem::path& log_file)>
      on_begin;
  // For a point on several nodes: this node's report of its part, a line's payload (ridgeline/job_line.h). Node 0 calls
  // it before its result, and only if that awaits the others'.
  std::function<void(const std::string& point_id, const std::string& payload)> on_part;
  std::function<void(const RunResult& result)> on_result;   // after each point's result is written
  std::function<void(const RunResult& result)> on_skipped;  // for a point that already had this result
  std::function<void()> on_wait;  // another process runs this job; we take over when it has ended
};

struct ExecSummary {
  int64_t ran = 0;
  int64_t skipped = 0;         // had a result
  bool stopped = false;        // told to: the running point is cancelled or preempted, later ones have no result
  std::optional<Unfit> unfit;  // why this node could run none of the remaining points
};

// The exit code of exec (ridgeline/job_dir.h).
int ExecExitCode(const ExecSummary& summary);

// Owns this process from here on: blocks those signals, becomes the reaper of orphaned descendants, and ends all its
// children. If another process runs the job, waits for it, until any signal ends the waiting. Throws
// Error(kInvalidInput) for an invalid job file, Error(kInfrastructure) if the disk fails.
ExecSummary ExecJobFile(const std::filesystem::path& job_file, const ExecOptions& options = {});

}  // namespace ridgeline::node
