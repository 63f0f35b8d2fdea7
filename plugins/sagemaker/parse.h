// AWS's answers about training jobs and their logs, as far as a launcher needs them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace ridgeline::sagemaker {

// Whether `words` stand anywhere in a text of the service's.
inline bool Holds(std::string_view text, std::string_view words) { return text.find(words) != std::string_view::npos; }

// Whether a job of this TrainingJobStatus has ended.
inline bool IsEnd(std::string_view status) {
  return status == "Completed" || status == "Failed" || status == "Stopped";
}

// Whether instances of a warm pool of this status are kept for the job that left them, and billed to it.
inline bool IsKept(std::string_view warm_pool) { return warm_pool == "Available"; }

// A row of ListTrainingJobs.
struct JobRow {
  std::string name;
  std::string status, secondary;
  double modified_unix_s = 0;
  std::string warm_pool;  // the status of the instances that it has left; empty: none
  bool operator==(const JobRow&) const = default;
};

// A page of ListTrainingJobs.
struct JobRows {
  std::vector<JobRow> rows;
  std::string next_token;  // empty: it is the last
};

// A line of a log.
struct LogEvent {
  std::string id, stream, message;
  int64_t time_ms = 0;
};

// A page of FilterLogEvents, which may be empty and not the last.
struct LogPage {
  std::vector<LogEvent> events;
  std::string next_token;  // empty: it is the last
};

// A job as DescribeTrainingJob answers.
struct JobView {
  struct Transition {
    std::string status, message;
    int64_t start_unix_s = 0, end_unix_s = 0;
  };

  std::string name, arn;
  std::string status, secondary;  // "InProgress", "Training"
  std::string failure_reason;
  std::string hash;  // of its Environment; empty: it is not ours
  std::string instance_type, training_plan;
  int64_t instances = 1;
  bool spot = false;
  std::vector<Transition> transitions;
  int64_t created_unix_s = 0, started_unix_s = 0, ended_unix_s = 0;  // 0: not yet
  int64_t max_run_s = 0;
  int64_t training_s = -1, billable_s = -1;  // -1: not told
  std::string warm_pool;                     // its status; empty: none
  int64_t warm_pool_billable_s = -1;
  int64_t keep_alive_s = 0;  // how long its instances may be kept

  bool HasEnded() const;
  int64_t Interruptions() const;
  // The service's last words on the state.
  std::string Message() const;
};

// These throw JSON's exceptions if the document is not what the operation answers. What the service's description does
// not require may be missing.
JobRows ParseRows(const plugin::Json& document);
JobView ParseJob(const plugin::Json& document);
LogPage ParseLogPage(const plugin::Json& document);

}  // namespace ridgeline::sagemaker
