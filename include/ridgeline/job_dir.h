// What is in a job's folder, and with which codes `ridgeline exec`, which runs the job, exits. The harness, exec and
// the launchers must agree on both.
//
// A job owns a folder and writes nothing outside it:
//   job.json             the job, written by the driver before it submits
//   results.log          the results of its points, one line each (job_line.h). The driver makes the file; exec appends
//                        to it and syncs each line
//   parts.log            the `part` lines of pods that share no folder, written by a launcher
//   points/<point id>/   the point's files while it runs: spec.json (the trainer's input), result.json (its output),
//                        log.txt (its output stream; of rank N log.N.txt) and progress. In a container also entered.txt
//                        and begun.txt. Node N of several has spec.nodeN.json and part.nodeN.txt (the first: part.txt).
//                        A part file holds the node's name while the node is at the point, then the line that says how
//                        its ranks ended and what their logs held. The first node removes the parts and all logs when
//                        it has written the result. Logs stay if the point did not end well or the job keeps logs, and
//                        so do checkpoint files if checkpoint.dir is relative. Otherwise the folder is removed
//   cancelled            exists while a person wants the job to end
//   ranks.secret         exists while points of several ranks run: their shared secret, readable by its owner alone
//   exec.lock            held by the exec that runs the job; of node N exec.nodeN.lock
//   exec.check           exists for a moment before the first point, to see whether the folder can be written
//
// So a job leaves a few files however many points it has. Shared file systems run out of files before they run out of
// room. The first final line of a point counts. Without a final one its last line counts: it was cancelled or
// preempted, and may run again. If a point crashed on several nodes, the end of the job tells more, because a node may
// have been lost. A line that a kill cut short is ignored; the next line begins after it.
#ifndef RIDGELINE_JOB_DIR_H_
#define RIDGELINE_JOB_DIR_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "ridgeline/limits.h"

namespace ridgeline {

// Exit codes of exec. A point without a result ends as `infrastructure`, and the exit code gives its reason (run.h). A
// result that exec has written counts instead.
inline constexpr int kExecDone = 0;           // every point has a result
inline constexpr int kExecRefused = 2;        // this version does not understand the job file or the command line
inline constexpr int kExecNoStorage = 3;      // the job's folder cannot be read or written, or is gone
inline constexpr int kExecCannotStart = 4;    // this node can start none of the job's trainers
inline constexpr int kExecNodeUnfit = 5;      // something else that the node needs is missing or failed
inline constexpr int kExecInterrupted = 130;  // a signal told it to stop

// Returns the name of the reason for points without a result after a job's process ended with `exit_code`. 126 and 127
// are the shell's: it could not run exec. Empty if the code gives no reason.
inline std::string_view ReasonOfExecExit(int exit_code) {
  switch (exit_code) {
    case kExecRefused:
    case kExecCannotStart:
    case 126:
    case 127:
      return "start";
    case kExecNoStorage:
      return "storage";
    case kExecNodeUnfit:
      return "node";
    default:
      return "";
  }
}

// Variables by which a launcher may inform exec.
// The cores that this job has to itself, "0,1". Points are pinned to them. Without this variable nothing is pinned,
// because other jobs may share the cores.
inline constexpr const char* kOwnCoresVariable = "RIDGELINE_OWN_CORES";
// The scheduler's name of the node, kept as evidence. Default: $SLURMD_NODENAME, then the host's name.
inline constexpr const char* kNodeVariable = "RIDGELINE_NODE";
// The words, one a line, that go before a trainer's command to run it in a container. They are options of srun, for a
// step that exec starts, or a program, its command and its options, with the image last. Default: no container.
inline constexpr const char* kContainerVariable = "RIDGELINE_CONTAINER";
// Seconds that all containers of a job together may take to start, besides the 15 seconds that each has. The image was
// fetched before.
inline constexpr int64_t kContainerStartsS = 600;

inline std::filesystem::path JobFile(const std::filesystem::path& job_dir) { return job_dir / "job.json"; }

inline std::filesystem::path ResultsFile(const std::filesystem::path& job_dir) { return job_dir / "results.log"; }

inline std::filesystem::path PartsFile(const std::filesystem::path& job_dir) { return job_dir / "parts.log"; }

// Written before a job is told to end because a person cancelled it. Without this file, a signal comes from the
// scheduler, which takes the node away, and the trainer saves its state first.
inline std::filesystem::path CancelFile(const std::filesystem::path& job_dir) { return job_dir / "cancelled"; }

// 32 random bytes in hexadecimal. Node 0's exec makes them anew at each start, and removes them at its end.
inline std::filesystem::path SecretFile(const std::filesystem::path& job_dir) { return job_dir / "ranks.secret"; }

inline std::filesystem::path PointDir(const std::filesystem::path& job_dir, const std::string& point_id) {
  return job_dir / "points" / point_id;
}

// The trainer overwrites this file, whose name is in $RIDGELINE_PROGRESS, after every step with one line:
// "<steps done> <steps in all> <tokens per second>\n". The loss of the step may follow the three.
inline std::filesystem::path ProgressFile(const std::filesystem::path& job_dir, const std::string& point_id) {
  return PointDir(job_dir, point_id) / "progress";
}

// Names a file of node or rank `n`: "spec.json" for 0, "spec.node2.json" for 2.
inline std::string NameOfNth(const std::string& stem, const std::string& which, int64_t n,
                             const std::string& extension) {
  return n == 0 ? stem + extension : stem + '.' + which + std::to_string(n) + extension;
}
inline std::string SpecName(int64_t node) { return NameOfNth("spec", "node", node, ".json"); }
inline std::string ExecLockName(int64_t node) { return NameOfNth("exec", "node", node, ".lock"); }
inline std::string ExecCheckName(int64_t node) { return NameOfNth("exec", "node", node, ".check"); }
// In a point's folder: the node's part. In the job's folder: why the node can run none of its points.
inline std::string PartName(int64_t node) { return NameOfNth("part", "node", node, ".txt"); }
inline std::string LogName(int64_t rank) { return NameOfNth("log", "", rank, ".txt"); }
// Written when the rank's container runs, and when the trainer in it has started.
inline std::string EnteredName(int64_t rank) { return NameOfNth("entered", "", rank, ".txt"); }
inline std::string BegunName(int64_t rank) { return NameOfNth("begun", "", rank, ".txt"); }
inline constexpr const char* kTrainersResultName = "result.json";

}  // namespace ridgeline

#endif  // RIDGELINE_JOB_DIR_H_
