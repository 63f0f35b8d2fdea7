// Submits jobs to the cluster. Each Job is created, or found created, exactly once whatever happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/answers.h"
#include "kubernetes/cluster.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {

class Submitter {
 public:
  Submitter(Cluster& cluster, Journal& journal, const Options& options);

  // Returns one answer for each job, in order. Throws Failure if the server does not answer.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs);

 private:
  // A Job to be created or found, with what it needs.
  struct Pending {
    Manifests manifests;
    std::string uid;               // empty: it does not exist yet
    std::optional<int64_t> ttl_s;  // in the cluster, counted from its end
    int64_t created_unix_s = 0;
    std::set<size_t> made;  // indices into manifests.others
    std::optional<plugin::Failure> failure;
  };

  // What an earlier failed submission of this job has done stays done.
  Pending& Prepare(const plugin::Json& job);
  void Create(const std::vector<Pending*>& pending);
  void CreateOthers(const std::vector<Pending*>& pending);
  void TakeJob(const plugin::Json& object, Pending& pending);
  std::optional<plugin::Failure> Adopt(Pending& pending);

  Cluster& cluster_;
  Journal& journal_;
  const Options& options_;
  std::map<std::string, Pending> pending_;  // by key
};

}  // namespace ridgeline::kubernetes
