// Queues collectives on a separate stream, in the order in which they began, so that they run while the program
// computes. Events connect the streams exactly where the trace begins a flight and where it lands. A capture of the
// program's stream includes both streams.
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
  // On the current device. The stream has the highest priority. So a collective's few blocks precede the program's
  // many, because all ranks wait for the last one's.
  explicit CollectiveStream(std::unique_ptr<DeviceCommunicator> ranks);

  void Prepare(const OpCall& call) override;
  void Queue(const OpCall& call, const CudaRun& run) override;
  void Check() override { ranks_->Check(); }

 private:
  void Fly(const OpCall& call, const CudaRun& run);
  void Land(const OpCall& call, cudaStream_t stream);

  CudaStream stream_;
  CudaEvent begun_;
  std::vector<CudaEvent> landed_;              // for each flight
  std::unique_ptr<DeviceCommunicator> ranks_;  // destroyed first: it knows whether queued work can end
};

}  // namespace ridgeline
