// What is in a job's folder, and how `ridgeline exec`, which runs the job there, leaves: what the harness, exec and the
// launchers must agree on.
//
// A job owns a folder and writes nothing outside it:
//   job.json             the job, written by the driver before it submits
//   results.log          what became of its points: one line a result (job_line.h), made empty by the driver, appended
//                        and synced by exec
//   parts.log            what pods that share no folder said of their parts in points: `part` lines, by a launcher
//   points/<point id>/   a point's own while it runs: spec.json and result.json (what the trainer reads and writes),
//                        log.txt (what it said; of rank N log.N.txt), progress; in a container entered.txt and
//                        begun.txt. Node N of several has spec.nodeN.json,
//                        and part.nodeN.txt (the first: part.txt): its name while it is at the point, then the line
//                        that says how its ranks ended and what their logs held. The first node removes them, with the
//                        logs of all, when it has written the result.
//                        Afterwards its logs stay where it did not end well or the job keeps logs, and its checkpoint
//                        files where the spec's checkpoint.dir is relative; else the folder is removed
//   cancelled            there while a person wants the job to end
//   ranks.secret         while points of several ranks run: what these know each other by, for its owner alone to read
//   exec.lock            held by the exec that runs it; of node N exec.nodeN.lock
//   exec.check           there for a moment before the first point: whether files can be kept here
//
// So a job leaves a few files however many points it has: shared file systems run out of files before they run out of
// room. A point's first line that is final counts, else its last (it was cancelled or preempted, and may run again). Of
// one that crashed on several nodes the job's end says more: a node may have been lost. A line that was cut by a kill
// is none, and ends where the next one begins.
//
// Jobs of earlier versions left results/<point id>.json, one RunResult a file, and are still collected.
#ifndef RIDGELINE_JOB_DIR_H_
#define RIDGELINE_JOB_DIR_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "ridgeline/limits.h"

namespace ridgeline {

// How exec exits. A point that it leaves without a result is nobody's result but the infrastructure's, for the reason
// (run.h) that this gives; where it has written one, that says more.
inline constexpr int kExecDone = 0;           // every point has a result
inline constexpr int kExecRefused = 2;        // a job file or a command line that this version does not understand
inline constexpr int kExecNoStorage = 3;      // the job's folder cannot be read or written, or is gone
inline constexpr int kExecCannotStart = 4;    // no trainer of it can be started on this node
inline constexpr int kExecNodeUnfit = 5;      // something else of this node is not there, or failed
inline constexpr int kExecInterrupted = 130;  // it was told to stop

// The reason, by its name, for points without a result where a job's process ended so: exec, or what should have
// started it and found no such program (126, 127). Empty where the code gives none.
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

// What a launcher may tell exec in its environment.
// The cores that it gave to this job and to no other, "0,1". Points are pinned to such cores; to others, which jobs may
// share, they are not.
inline constexpr const char* kOwnCoresVariable = "RIDGELINE_OWN_CORES";
// What its scheduler calls the node: evidence of what fails there. Not said: $SLURMD_NODENAME, else the host's name.
inline constexpr const char* kNodeVariable = "RIDGELINE_NODE";
// What stands before a trainer's command so that it runs in a container, a word a line: options of srun, for a step
// that exec makes, or a program, its command and the options of that, the image last. Not said: it runs beside exec.
inline constexpr const char* kContainerVariable = "RIDGELINE_CONTAINER";
// How long the containers of a job's points may take to begin, all together, besides the quarter of a minute that each
// has. Their image was fetched before.
inline constexpr int64_t kContainerStartsS = 600;

inline std::filesystem::path JobFile(const std::filesystem::path& job_dir) { return job_dir / "job.json"; }

inline std::filesystem::path ResultsFile(const std::filesystem::path& job_dir) { return job_dir / "results.log"; }

// Of pods, by a launcher.
inline std::filesystem::path PartsFile(const std::filesystem::path& job_dir) { return job_dir / "parts.log"; }

// Of earlier versions.
inline std::filesystem::path ResultsDir(const std::filesystem::path& job_dir) { return job_dir / "results"; }
inline std::filesystem::path ResultFile(const std::filesystem::path& job_dir, const std::string& point_id) {
  return ResultsDir(job_dir) / (point_id + ".json");
}

// Written by who cancels a job, before it is told to end: a signal alone may as well be the scheduler's, that takes the
// node away, and then the trainer saves its state first.
inline std::filesystem::path CancelFile(const std::filesystem::path& job_dir) { return job_dir / "cancelled"; }

// 32 random bytes in hexadecimal, made by node 0's exec, each time anew, and removed at its end.
inline std::filesystem::path SecretFile(const std::filesystem::path& job_dir) { return job_dir / "ranks.secret"; }

inline std::filesystem::path PointDir(const std::filesystem::path& job_dir, const std::string& point_id) {
  return job_dir / "points" / point_id;
}

// The trainer overwrites this file (its name is in $RIDGELINE_PROGRESS) after every step with one line:
// "<steps done> <steps in all> <tokens per second>\n", with the step's loss behind these where it has one.
inline std::filesystem::path ProgressFile(const std::filesystem::path& job_dir, const std::string& point_id) {
  return PointDir(job_dir, point_id) / "progress";
}

// Of the files of a node or a rank: "spec.json" of the first, "spec.node2.json" of another.
inline std::string NameOfNth(const std::string& stem, const std::string& which, int64_t n,
                             const std::string& extension) {
  return n == 0 ? stem + extension : stem + '.' + which + std::to_string(n) + extension;
}
inline std::string SpecName(int64_t node) { return NameOfNth("spec", "node", node, ".json"); }
inline std::string ExecLockName(int64_t node) { return NameOfNth("exec", "node", node, ".lock"); }
inline std::string ExecCheckName(int64_t node) { return NameOfNth("exec", "node", node, ".check"); }
// In a point's folder. In the job's: of a node that can run none of its points, and why.
inline std::string PartName(int64_t node) { return NameOfNth("part", "node", node, ".txt"); }
inline std::string LogName(int64_t rank) { return NameOfNth("log", "", rank, ".txt"); }
// There once the container of that rank runs, and once the trainer in it is started.
inline std::string EnteredName(int64_t rank) { return NameOfNth("entered", "", rank, ".txt"); }
inline std::string BegunName(int64_t rank) { return NameOfNth("begun", "", rank, ".txt"); }
inline constexpr const char* kTrainersResultName = "result.json";

}  // namespace ridgeline

#endif  // RIDGELINE_JOB_DIR_H_
