// Amazon SageMaker's containers: checkpoint files, the nodes of a job, and where a failure is told.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// Sets the spec's checkpoint_dir to /opt/ml/checkpoints, which SageMaker copies to S3 and back, if the spec names none,
// we run on SageMaker and that folder exists. If several runs share a container, sets it to `folder` below that. `root`
// is "/" except in tests.
void UseSageMakerCheckpointDir(std::string_view folder, RunSpec& spec, const std::filesystem::path& root = "/");

// The hosts of a training job, from its resourceconfig.json.
struct SageMakerHosts {
  std::vector<std::string> names;  // in the order of their numbers: algo-2 before algo-10
  size_t here = 0;                 // index of this one
  std::string interface;           // the network interface between them; empty: not told
  std::string instance_type;       // of this one; empty: not told
};
// Nothing if the text is none, or does not name this host.
std::optional<SageMakerHosts> ParseSageMakerHosts(std::string_view text);

// On SageMaker, sets the variables by which the nodes of a job find each other (node/ranks.h), unless they are set:
// RIDGELINE_NNODES, RIDGELINE_NODE_RANK, MASTER_ADDR and MASTER_PORT, and NCCL_SOCKET_IFNAME. If the container has EFA
// devices, also sets FI_PROVIDER and, where they have RDMA, FI_EFA_USE_DEVICE_RDMA. Copies the ranks' secret,
// which SageMaker puts where all may read it, to a file of ours alone, and sets RIDGELINE_SECRET_FILE to that. Waits
// until the first node's name is known, for a time. Throws Error(kInvalidInput) if resourceconfig.json cannot be used.
void UseSageMakerNodes(const std::filesystem::path& root = "/");

// On SageMaker, writes why the job fails where SageMaker takes FailureReason from. It keeps the first 1024 characters.
void WriteSageMakerFailure(std::string_view why, const std::filesystem::path& root = "/");

// The point's folder below /opt/ml/checkpoints, if UseSageMakerCheckpointDir has chosen `dir`; else empty.
std::filesystem::path SageMakerCheckpointDir(std::string_view folder, const std::filesystem::path& dir,
                                             const std::filesystem::path& root = "/");

// Unix time in seconds at which the job's training plan takes its instances away; 0: it has none, or does not say.
int64_t SageMakerPlanEndUnixS();

}  // namespace ridgeline
