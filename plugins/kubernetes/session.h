// The conversation with one cluster: Jobs created, followed, collected and deleted.
//
// A poll goes one way. What the API server says of a job is one value (observe.h), from which, with the job's record,
// follows what has become of it (judge.h); what it leaves is brought home (collect.h); the rest is the answer.
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

  // "Kubernetes v1.31.2, namespace default". Throws Failure where that takes no Jobs of ours (preflight.h).
  std::string Description() { return Preflight(*cluster_, options_); }

  // One answer a job, in order. Throw Failure where nobody answers.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs) { return submitter_.Submit(jobs); }
  std::vector<plugin::JobState> Poll(const std::vector<std::string>& keys);
  // The same, but takes no logs, keeps no end and deletes nothing.
  std::vector<plugin::JobState> Look(const std::vector<std::string>& keys);
  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys);

 private:
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
  std::set<std::string> deleted_;  // uids of Jobs that we have deleted
};

}  // namespace ridgeline::kubernetes
