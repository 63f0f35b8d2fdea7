// Jobs to submissions: pure, and what a person would submit by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "slurm/config.h"

namespace ridgeline::slurm {

// One sbatch: a job array of which each task runs one job, or a job of its own where arrays are not to be had.
struct BatchJob {
  std::string name;               // the key of its first job: unique, and how the array is found again
  std::string job_name;           // as Slurm has it: SWEEP.PART and the name
  std::string file_name;          // of its script, where that is a file for a person: without .sbatch
  std::string comment;            // for people who look at the queue or the accounting
  std::vector<std::string> keys;  // by task index
  bool is_array = true;
  int64_t throttle = 0;            // tasks at once; 0: no limit
  std::string work_dir;            // where it is submitted from: what relative paths are relative to
  std::string output;              // Slurm's pattern: each task's own file
  std::string script;              // without options: what a task runs
  std::string dependency;          // "afterok:7,afterany:12"; empty: none
  std::vector<std::string> avoid;  // nodes on which others failed
  int64_t image_limit_s = 0;       // within which a container's image must be ready on its nodes; 0: none

  // What the options and the jobs come to.
  Options options;  // nodes, cpus, memory_mib and time_minutes filled in
  Warning warning;
};

// How large an array may be here.
struct ArrayLimit {
  int64_t tasks = 1000;
  bool arrays = true;  // false where MaxArraySize forbids them
};

// The jobs of a launcher request as few submissions: one a group of jobs that ask for the same, cut to the limit. In
// order; `log_dir` is where tasks' output goes, `parts` how many there are already of the sweep. Throws Failure where a
// path cannot be an option of sbatch, and as OptionsOf.
std::vector<BatchJob> Bundle(const plugin::Json& jobs, const Options& options, const ArrayLimit& limit,
                             const std::string& work_dir, const std::string& log_dir, int64_t parts = 0);

// A job that does nothing when all of these have ended, but for the mail that Slurm sends then. `batch`: one of them.
BatchJob MailJob(const BatchJob& batch, const std::vector<int64_t>& after);

// "0-9%2"; empty where it is no array.
std::string ArrayText(const BatchJob& batch);

// What is left out by --exclude; empty: nothing. Nodes that are asked for by name are not avoided.
std::string ExcludeText(const BatchJob& batch);

// What a script says, in one line, where it ends before the job has begun: "ridgeline: NODE: not started (REASON):
// words", the reason one of the infrastructure's.
inline constexpr std::string_view kNotStartedBegin = "ridgeline: ";
inline constexpr std::string_view kNotStartedMiddle = ": not started (";
inline constexpr std::string_view kNotStartedEnd = "): ";

// The submission's options as sbatch takes them: "--name=value", unquoted.
std::vector<std::string> SbatchOptions(const BatchJob& batch);

// The whole file for sbatch: its options as #SBATCH lines, then the script.
std::string SbatchFile(const BatchJob& batch);

// Where a task's output is.
std::string LogFile(const std::string& log_dir, const std::string& name, size_t task);

}  // namespace ridgeline::slurm
