// The session with one account and region: it creates, follows, collects and stops training jobs.
//
// A poll lists the jobs of each sweep, describes those that changed, and reads the log of all. At a job's end, what the
// log lacks is read from S3.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/clock.h"
#include "common/remote_job.h"
#include "sagemaker/aws.h"
#include "sagemaker/config.h"
#include "sagemaker/journal.h"
#include "sagemaker/logs.h"
#include "sagemaker/parse.h"
#include "sagemaker/submit.h"

namespace ridgeline::sagemaker {

class Session {
 public:
  // Throws Failure.
  Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Aws> aws,
          const plugin::Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns "SageMaker in us-west-2, as arn:…", and whether the log or S3 refuse to be read. Asks for each right that
  // can be asked for without a job: STS, to list and describe jobs, to list and read objects, and to read the log.
  // Throws Failure if one is refused that a run needs.
  std::string Description();

  // What is billed now of the training jobs whose names begin as this sweep's do: a line each for those that have not
  // ended and for instances that are kept warm. Throws Failure.
  std::vector<std::string> StillBilled(const std::string& sweep);

  // These return one answer for each job, in order. They throw Failure if the service does not answer.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs, std::chrono::milliseconds within) {
    return submitter_.Submit(jobs, within);
  }
  // Poll asks the service no more often than poll_pause says. In between it repeats what was last seen.
  std::vector<plugin::JobState> Poll(const std::vector<std::string>& keys);
  // For how many ms Poll would only repeat what it said; at least 1.
  int64_t PauseMs() const;
  // The same, but takes no output and records no end.
  std::vector<plugin::JobState> Look(const std::vector<std::string>& keys);
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys);

 private:
  // A job that has not ended.
  struct Live {
    std::optional<JobRow> row;  // as it was listed when it was last described
    std::optional<JobView> job;
    std::optional<plugin::Clock::Time> described_at;
    bool deleted = false;  // SageMaker had it, and does not know it any more
    std::unique_ptr<plugin::JobOutput> output;
    std::optional<plugin::Clock::Time> ended_at;      // when its end was first seen
    std::optional<plugin::Clock::Time> unread_since;  // since when S3 does not let us read its output
  };

  std::string WhatIsRefused(const Place& output);
  std::optional<std::vector<plugin::JobState>> LastSaid(const std::vector<std::string>& keys);
  std::vector<plugin::JobState> Ask(const std::vector<std::string>& keys);
  void Refresh(const std::vector<std::string>& keys);
  // Lists the training jobs that `request` filters and sorts by their creation.
  void ForEachRow(plugin::Json request, const std::function<void(const JobRow&)>& take);
  std::map<std::string, JobRow> ListAll(const std::vector<Record*>& records);
  void Observe(Record& record, const std::map<std::string, JobRow>& rows);
  void ReadLogs(const std::vector<Record*>& records);
  plugin::JobOutput& OutputOf(const Record& record);
  plugin::JobState StateOf(const Record& record);
  plugin::JobState Follow(Record& record);
  // Whether all that the job left was read, or will not come.
  bool TakeRest(const Record& record, Live& live, std::string& problem);

  const Options options_;
  Journal journal_;
  const std::unique_ptr<Aws> aws_;
  const plugin::Clock& clock_;
  Submitter submitter_;
  std::map<std::string, Live> live_;              // by key
  std::map<std::string, SweepLog> logs_;          // by prefix
  std::map<std::string, plugin::JobState> said_;  // the last answers to polls, by key
  std::optional<plugin::Clock::Time> asked_at_;
};

}  // namespace ridgeline::sagemaker
