// What Slurm says, read: pure, text in, facts out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers.h"

namespace ridgeline::slurm {

// Jobs are named LABEL.KEY: the label is for who looks at the queue, the key is nobody else's. Empty where it is none
// of our names. (Those of earlier versions are the key alone.)
std::string_view KeyIn(std::string_view job_name);

// One record of the queue or of the accounting: a task of an array, several pending ones, or a job that is no array.
struct Row {
  std::string name;                           // the key in it; empty: none, so it is another's, or was renamed
  int64_t job_id = 0;                         // the array's, where it is one
  std::optional<std::vector<int64_t>> tasks;  // nothing: no array
  std::string state;                          // "PENDING", "COMPLETING", …
  std::string reason;
  int exit_status = 0;  // as wait() has it
  int64_t restarts = 0;
  int64_t submitted_s = 0;  // Unix time; 0: not known
  int64_t started_s = 0;
  int64_t ended_s = 0;
  std::string nodes;
  int64_t expected_s = 0;    // of a pending one: when Slurm thinks that it will start
  bool by_its_user = false;  // the accounting says that whose it is cancelled it; not of root's, as nodes are root, too
  std::string partitions = {};  // separated by commas: while it waits, those that it may go to
};

// "4", "0-3,7", "12-40:2%2", "[1-3]": the tasks' indices. Nothing where it is none of these.
std::optional<std::vector<int64_t>> ParseTasks(std::string_view text);
// The other way round: ascending indices as "0-3,7".
std::string FormatTasks(const std::vector<int64_t>& tasks);

// "n[1-2,07],login" -> n1, n2, n07, login. Of what is no list of hosts, and beyond kMostNodes, the text as it is.
std::vector<std::string> HostsOf(std::string_view list);

// What `squeue -O` is asked for, and its answer; lines that are none of it are passed over.
extern const char* const kSqueueFormat;
std::vector<Row> ParseSqueue(std::string_view text);

// The same of `sacct --parsable2 -o`.
extern const char* const kSacctFormat;
std::vector<Row> ParseSacct(std::string_view text);

// A row of the agent's answers. Throws Json::exception.
Row RowFromJson(const plugin::Json& row);

// What is known of a Slurm installation.
struct Facts {
  std::string version;  // of the controller
  std::string cluster;
  int64_t max_array_size = 1001;
  int64_t max_job_count = 10'000;
  int64_t message_timeout_s = 10;
  int64_t min_job_age_s = 300;  // for which it knows jobs that have ended; 0: for ever
  bool accounting = false;
};
Facts ParseConfig(std::string_view scontrol_show_config);

}  // namespace ridgeline::slurm
