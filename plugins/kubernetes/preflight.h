// What would keep Jobs from a cluster, asked before anything is made there.
#pragma once

#include <string>

#include "kubernetes/cluster.h"
#include "kubernetes/config.h"

namespace ridgeline::kubernetes {

// "Kubernetes v1.31.2, namespace default". Throws Failure saying what would: a server that is too old, rights that are
// missing, all of them, and what the server says against such a Job and its pod in a dry run, in which nothing is made.
// Of the pod, to whose admission the cluster's own rules belong, only somebody is told who may create pods.
std::string Preflight(Cluster& cluster, const Options& options);

}  // namespace ridgeline::kubernetes
