// What a sweep says under `launch:` that concerns Kubernetes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/failure.h"

namespace ridgeline::kubernetes {

struct Mount {
  std::string path;
  std::string sub_path;
  bool read_only = false;
  plugin::Json volume;  // as a pod has it, with its name
};

// Empty, or 0: not said, so the cluster's own default holds. Amounts are Kubernetes' quantities.
struct Options {
  // Which cluster, and where in it; empty: as kubectl takes them.
  std::string context, kubeconfig, name_space;

  std::string image, image_pull_policy;  // no job can do without an image
  std::string trainer_image;  // of trainers that are not ours: exec is brought into it; empty: they are in `image`
  std::vector<std::string> image_pull_secrets;
  std::string program = "ridgeline";  // in the image

  int64_t nodes = 0;          // in place of what the jobs ask for
  int64_t most_nodes = 1;     // that a job of the session asks for
  bool exclusive = false;     // no two pods of ours on one node
  std::string same_topology;  // the label of nodes that is the same for all pods of a point; empty: none
  std::string cpu, memory;    // of a node; in place of what the jobs ask for
  int64_t gpus = 0;           // of a node
  std::string gpu_resource = "nvidia.com/gpu";
  int64_t efa = 0;                               // network interfaces of a node
  std::map<std::string, int64_t> devices;        // others of a node, by their resource: {"rdma/hca_shared", 1}
  std::map<std::string, std::string> hugepages;  // page size -> amount: {"2Mi", "5Gi"}
  std::string shared_memory;                     // /dev/shm; part of the memory
  std::string ephemeral_storage = "4Gi";         // disk of the node that a pod may fill: its folders and its log

  plugin::Json node_selector = plugin::Json::object();
  plugin::Json tolerations = plugin::Json::array();
  std::string priority_class, service_account;
  std::string queue;  // Kueue's LocalQueue

  std::vector<Mount> volumes;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> labels, annotations;  // of Jobs and pods

  int64_t user = 65532;                // and group, that the pod runs as
  int64_t ttl_s = int64_t{7} * 86400;  // a finished Job is kept, where nobody deletes it before
  int64_t start_limit_s =
      int64_t{7} * 86400;                   // from its submission until all its pods run: queue, image, volumes, gang
  int64_t idle_limit_s = int64_t{15} * 60;  // of that it may hold a node, and not all its pods run
  std::string output_claim;     // the PersistentVolumeClaim that holds the jobs' folders; empty: they go with the pod
  std::string output_sub_path;  // in it
  std::string output_path;      // where this machine has that folder, if it has

  plugin::Json patch;  // over the pod template; null: none
  int64_t window = 0;  // Jobs at once; 0: what kDefaultWindow says
};

// Clusters get into trouble with thousands of live Jobs.
inline constexpr int64_t kDefaultWindow = 200;

// Jobs at once.
int64_t Window(const Options& options);

// `config` is the sweep's `launch:` mapping: `max_parallel` is the window, `kubernetes:` has the rest. Throws Failure
// naming the setting, what it must be, and for an unknown one which there are. What the settings come to is checked in
// the manifests (lint.h).
Options ReadOptions(const plugin::Json& config);

// The options of a job: the session's, or those of its own `config`. Throws Failure as ReadOptions, and where the job
// would be of another cluster or namespace.
Options OptionsOf(const plugin::Json& job, const Options& session);

}  // namespace ridgeline::kubernetes
