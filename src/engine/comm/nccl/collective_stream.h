// Queues collectives on a stream of their own, one after another in the order they were begun, so that they fly while
// the program computes. Between the streams stand events, exactly where the trace begins a flight and where it lands; a
// capture of the program's stream has both streams.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "engine/comm/nccl/device_communicator.h"
#include "engine/device/cuda/collectives.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline {

class CollectiveStream final : public CudaCollectives {
 public:
  // On the current device. The stream has the highest priority: a collective's few blocks go before the program's many,
  // since all ranks wait for the last one's.
  explicit CollectiveStream(std::unique_ptr<DeviceCommunicator> ranks);

  void Prepare(const OpCall& call) override;
  void Queue(const OpCall& call, const CudaRun& run) override;
  void Check() override { ranks_->Check(); }

 private:
  void Fly(const OpCall& call, const CudaRun& run);
  void Land(const OpCall& call, cudaStream_t stream);

  CudaStream stream_;
  CudaEvent begun_;
  std::vector<CudaEvent> landed_;              // of a flight
  std::unique_ptr<DeviceCommunicator> ranks_;  // goes first: it knows whether what is queued can end
};

}  // namespace ridgeline
