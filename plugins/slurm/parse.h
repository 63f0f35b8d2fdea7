// Parses Slurm's output. Pure: text in, facts out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers.h"

namespace ridgeline::slurm {

// Returns the key in a job name, LABEL.KEY; empty if it is none of our names. The label is for people who look at the
// queue. The key is unique.
std::string_view KeyIn(std::string_view job_name);

// One record of the queue or of the accounting: an array task, several pending ones, or a job that is no array.
struct Row {
  std::string name;    // the key in its name; empty: it has none, so it is not ours, or was renamed
  int64_t job_id = 0;  // the array's id if it is an array
  std::optional<std::vector<int64_t>> tasks;  // nothing: it is no array
  std::string state;                          // "PENDING", "COMPLETING", …
  std::string reason;
  int exit_status = 0;  // as wait() returns it
  int64_t restarts = 0;
  int64_t submitted_s = 0;  // Unix time; 0: not known
  int64_t started_s = 0;
  int64_t ended_s = 0;
  std::string nodes;
  int64_t expected_s = 0;  // for a pending job, when Slurm expects to start it
  // The accounting says that its own user cancelled it; false for root's jobs, because nodes are root, too.
  bool by_its_user = false;
  std::string partitions = {};  // for a pending job, where it may go, separated by commas
};

// Parses the tasks' indices: "4", "0-3,7", "12-40:2%2", "[1-3]". Returns nothing for any other text.
std::optional<std::vector<int64_t>> ParseTasks(std::string_view text);
// The reverse: ascending indices as "0-3,7".
std::string FormatTasks(const std::vector<int64_t>& tasks);

// "n[1-2,07],login" -> n1, n2, n07, login. Returns the text itself if it is no list of hosts, or has more than
// kMostNodes.
std::vector<std::string> HostsOf(std::string_view list);

// The format for `squeue -O`, and the parser of its answer, which skips other lines.
extern const char* const kSqueueFormat;
std::vector<Row> ParseSqueue(std::string_view text);

// The same for `sacct --parsable2 -o`.
extern const char* const kSacctFormat;
std::vector<Row> ParseSacct(std::string_view text);

// Parses a row of the agent's answers. Throws Json::exception.
Row RowFromJson(const plugin::Json& row);

// Facts about a Slurm installation.
struct Facts {
  std::string version;  // of the controller
  std::string cluster;
  int64_t max_array_size = 1001;
  int64_t max_job_count = 10'000;
  int64_t message_timeout_s = 10;
  int64_t min_job_age_s = 300;  // how long it remembers jobs that have ended; 0: for ever
  bool accounting = false;
};
Facts ParseConfig(std::string_view scontrol_show_config);

}  // namespace ridgeline::slurm
