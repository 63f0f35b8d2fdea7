// The session with one cluster: it creates, follows, collects and deletes Jobs.
//
// A poll goes one way. The API server's reports on a job are one value (observe.h). From that value and the job's
// record follows the job's state (judge.h). Then its results are collected (collect.h). The rest is the answer.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/clock.h"
#include "kubernetes/cluster.h"
#include "kubernetes/collect.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/observe.h"
#include "kubernetes/preflight.h"
#include "kubernetes/submit.h"

namespace ridgeline::kubernetes {

class Session {
 public:
  // Throws Failure.
  Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Cluster> cluster,
          const plugin::Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns "Kubernetes v1.31.2, namespace default". Throws Failure if the cluster does not take our Jobs
  // (preflight.h).
  std::string Description() { return Preflight(*cluster_, options_); }

  // These return one answer for each job, in order. They throw Failure if the server does not answer.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs) { return submitter_.Submit(jobs); }
  std::vector<plugin::JobState> Poll(const std::vector<std::string>& keys);
  // The same, but takes no logs, records no end and deletes nothing.
  std::vector<plugin::JobState> Look(const std::vector<std::string>& keys);
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys);

 private:
  // Returns nullptr if there is none. Throws Failure if it is of another kind than the session's and has not ended.
  Record* Find(const std::string& key);
  Request DeleteRequest(const std::string& name, const std::string& uid, const char* propagation) const;
  Record& Noted(Record& record, const JobView& job);
  plugin::JobState Follow(Record& record);
  void DeleteEnded();

  const Options options_;
  Journal journal_;
  const std::unique_ptr<Cluster> cluster_;
  Submitter submitter_;
  Observer observer_;
  Collector collector_;
  std::set<std::string> deleted_;  // uids of the Jobs that we have deleted
};

}  // namespace ridgeline::kubernetes
