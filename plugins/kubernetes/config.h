// The settings for Kubernetes under a sweep's `launch:`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/failure.h"
#include "kubernetes/kinds.h"

namespace ridgeline::kubernetes {

struct Mount {
  std::string path;
  std::string sub_path;
  bool read_only = false;
  plugin::Json volume;  // as in a pod, with its name
};

// Empty or 0 means "not given", so the cluster's own default applies. Amounts are Kubernetes' quantities.
struct Options {
  // The cluster, and the place in it; empty: as kubectl chooses.
  std::string context, kubeconfig, name_space;

  const Kind* kind = &JobKind();      // what each job becomes
  std::string runtime = "ridgeline";  // of a TrainJob: ParseRuntime

  std::string image, image_pull_policy;  // every job needs an image
  std::string trainer_image;  // for other trainers than ours; exec is copied into it; empty: they are in `image`
  std::vector<std::string> image_pull_secrets;
  std::string program = "ridgeline";  // path in the image

  int64_t nodes = 0;          // instead of what the jobs ask for; 0: not given
  int64_t most_nodes = 1;     // the most nodes that a job of the session asks for
  bool exclusive = false;     // no two of our pods on one node
  std::string same_topology;  // the node label whose value all pods of a point share; empty: none
  std::string cpu, memory;    // for each node, instead of what the jobs ask for
  int64_t gpus = 0;           // for each node
  std::string gpu_resource = "nvidia.com/gpu";
  int64_t efa = 0;                               // network interfaces for each node
  std::map<std::string, int64_t> devices;        // other devices for each node, by resource: {"rdma/hca_shared", 1}
  std::map<std::string, std::string> hugepages;  // page size -> amount: {"2Mi", "5Gi"}
  std::string shared_memory;                     // size of /dev/shm; part of the memory
  std::string ephemeral_storage = "4Gi";  // most of the node's disk that a pod may fill with its folders and its log

  plugin::Json node_selector = plugin::Json::object();
  plugin::Json tolerations = plugin::Json::array();
  std::string priority_class, service_account;
  std::string queue;                             // Kueue's LocalQueue
  bool gangs_scheduled = false;                  // the cluster starts all pods of a gang or none
  plugin::Json objects = plugin::Json::array();  // more objects that each job owns, such as a PodGroup

  std::vector<Mount> volumes;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> labels, annotations;  // for Jobs and pods

  int64_t user = 65532;                        // user and group that the pod runs as
  int64_t ttl_s = int64_t{7} * 86400;          // how long a finished Job is kept, unless somebody deletes it earlier
  int64_t start_limit_s = int64_t{7} * 86400;  // from submission until all its pods run: queue, image, volumes, gang
  int64_t idle_limit_s = int64_t{15} * 60;     // the part of it in which it may hold a node while not all its pods run
  std::string output_claim;     // the PersistentVolumeClaim that holds the jobs' folders; empty: they go with the pod
  std::string output_sub_path;  // within the claim
  std::string output_path;      // this machine's path of that folder, if it has one

  plugin::Json patch;  // is merged over the pod template; null: none
  int64_t window = 0;  // most Jobs at once; 0: kDefaultWindow
};

// Clusters get into trouble with thousands of live Jobs.
inline constexpr int64_t kDefaultWindow = 200;

// Returns the most Jobs at once.
int64_t Window(const Options& options);

// `config` is the sweep's `launch:` mapping. `max_parallel` is the window, and `kubernetes:` has the rest. Throws
// Failure that names the setting and what it must be, and for an unknown setting the known ones. The resulting
// manifests are checked later (lint.h).
Options ReadOptions(const plugin::Json& config);

// Returns the options of a job: the session's, or those of its own `config`. Throws Failure as ReadOptions does, and if
// the job would go to another cluster or namespace.
Options OptionsOf(const plugin::Json& job, const Options& session);

}  // namespace ridgeline::kubernetes
