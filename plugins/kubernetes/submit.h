// Jobs handed over to the cluster: created, or found created, each once whatever happens.
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

  // One answer a job, in order. Throws Failure where nobody answers.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs);

 private:
  // A Job that is to be created, or to be found created, with what it needs.
  struct Pending {
    Manifests manifests;
    std::string uid;               // empty: it is not there yet
    std::optional<int64_t> ttl_s;  // after its end, as the cluster has it
    int64_t created_unix_s = 0;
    std::set<size_t> made;  // of manifests.others
    std::optional<plugin::Failure> failure;
  };

  // Where an earlier submission of it failed, what that one has done stays done.
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
