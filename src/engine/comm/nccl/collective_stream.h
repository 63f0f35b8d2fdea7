// Queues collectives on a separate stream, in the order in which they began, so that they run while the program
// computes. Events connect the streams exactly where the trace begins a flight and where it lands. A capture of the
// program's stream includes both streams.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/nccl/device_communicator.h"
#include "engine/device/cuda/collectives.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {

class CollectiveStream final : public CudaCollectives {
 public:
  // Connects the devices of a communicator's ranks.
  using Connect = std::function<std::unique_ptr<DeviceCommunicator>(Communicator& ranks)>;

  // On the current device. The stream has the highest priority. So a collective's few blocks precede the program's
  // many, because all ranks wait for the last one's. Connects all ranks at once if they form no other groups, and each
  // group of ranks when its first collective is prepared. `ranks` must outlive it.
  CollectiveStream(Communicator& ranks, Connect connect);

  void Prepare(const OpCall& call) override;
  void Queue(const OpCall& call, const CudaRun& run) override;
  void Check() override;

 private:
  // The devices of this rank's group along the call's axes.
  DeviceCommunicator& RanksOf(const OpCall& call);
  void Fly(const OpCall& call, const CudaRun& run);
  void Land(const OpCall& call, cudaStream_t stream);

  CudaStream stream_;
  CudaEvent begun_;
  std::vector<CudaEvent> landed_;  // for each flight
  Communicator& ranks_;
  const Connect connect_;
  // By the communicator of the host; destroyed first, because they know whether queued work can end.
  std::map<Communicator*, std::unique_ptr<DeviceCommunicator>> devices_;
};

}  // namespace ridgeline::engine
