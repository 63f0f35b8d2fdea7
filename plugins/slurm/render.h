// Turns jobs into submissions, which a person could also submit by hand. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "slurm/config.h"

namespace ridgeline::slurm {

// One sbatch: a job array with one task for each job, or a single job if arrays are not possible.
struct BatchJob {
  std::string name;               // the key of its first job, which is unique; used to find the array again
  std::string job_name;           // its name in Slurm: SWEEP.PART and the name
  std::string file_name;          // of its script as a file for a person, without .sbatch
  std::string comment;            // for people who look at the queue or the accounting
  std::vector<std::string> keys;  // by task index
  bool is_array = true;
  int64_t throttle = 0;            // most tasks at once; 0: no limit
  std::string work_dir;            // the submitting folder, to which paths are relative
  std::string output;              // Slurm's pattern, with a file for each task
  std::string script;              // what a task runs; without options
  std::string dependency;          // "afterok:7,afterany:12"; empty: none
  std::vector<std::string> avoid;  // nodes on which other jobs failed
  int64_t image_limit_s = 0;       // within which a container's image must be ready on its nodes; 0: none

  // The result of the options and the jobs.
  Options options;  // nodes, cpus, memory_mib and time_minutes filled in
  Warning warning;
};

// The largest array that Slurm allows here.
struct ArrayLimit {
  int64_t tasks = 1000;
  bool arrays = true;  // false if MaxArraySize forbids arrays
};

// Returns the jobs of a launcher request in few submissions, in order: jobs that ask for the same form a group, which
// is cut to the limit. `log_dir` gets the tasks' output. `parts`: submissions of the sweep that exist already. Throws
// Failure if a path cannot be an option of sbatch, and as OptionsOf does.
std::vector<BatchJob> Bundle(const plugin::Json& jobs, const Options& options, const ArrayLimit& limit,
                             const std::string& work_dir, const std::string& log_dir, int64_t parts = 0);

// A job that runs when all of these have ended and does nothing, so that Slurm sends its mail then. `batch`: one of
// them.
BatchJob MailJob(const BatchJob& batch, const std::vector<int64_t>& after);

// Returns "0-9%2"; empty if it is no array.
std::string ArrayText(const BatchJob& batch);

// Returns what --exclude names; empty: nothing. Nodes that are requested by name are not avoided.
std::string ExcludeText(const BatchJob& batch);

// The line that a script prints if it ends before the job has begun: "ridgeline: NODE: not started (REASON): words".
// The reason is one of infrastructure's.
inline constexpr std::string_view kNotStartedBegin = "ridgeline: ";
inline constexpr std::string_view kNotStartedMiddle = ": not started (";
inline constexpr std::string_view kNotStartedEnd = "): ";

// Returns the submission's options for sbatch: "--name=value", unquoted.
std::vector<std::string> SbatchOptions(const BatchJob& batch);

// Returns the whole file for sbatch: its options as #SBATCH lines, then the script.
std::string SbatchFile(const BatchJob& batch);

// Returns the file of a task's output.
std::string LogFile(const std::string& log_dir, const std::string& name, size_t task);

}  // namespace ridgeline::slurm
