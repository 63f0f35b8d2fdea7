// Checks that a cluster takes our Jobs, before anything is made there.
#pragma once

#include <string>

#include "kubernetes/cluster.h"
#include "kubernetes/config.h"

namespace ridgeline::kubernetes {

// Returns "Kubernetes v1.31.2, namespace default". Throws Failure that says what is wrong: a server that is too old,
// all missing rights, and the server's objections to such a Job and its pod in a dry run, in which nothing is made. The
// cluster's own rules apply when a pod is admitted, so only a user who may create pods learns of its objections to the
// pod.
std::string Preflight(Cluster& cluster, const Options& options);

}  // namespace ridgeline::kubernetes
