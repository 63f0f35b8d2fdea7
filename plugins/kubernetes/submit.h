// Jobs handed over to the cluster: created, or found created, each once whatever happens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/clock.h"
#include "kubernetes/cluster.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {

class Submitter {
 public:
  Submitter(Cluster& cluster, Journal& journal, const plugin::Clock& clock, const Options& options);

  // One answer a job, in order. Throws Failure where nobody answers.
  std::vector<plugin::Submission> Submit(const plugin::Json& jobs);

 private:
  // A Job that is to be created, or to be found created.
  struct Pending {
    Manifests manifests;
    std::string uid;
    std::optional<plugin::Failure> failure;
  };

  Pending Prepare(const plugin::Json& job);
  void Create(std::vector<Pending>& pending);
  void CreateOthers(std::vector<Pending>& pending);
  std::optional<plugin::Failure> Adopt(Pending& pending);

  Cluster& cluster_;
  Journal& journal_;
  const plugin::Clock& clock_;
  const Options& options_;
};

}  // namespace ridgeline::kubernetes
