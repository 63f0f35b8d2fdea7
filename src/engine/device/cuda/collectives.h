// The interface through which the CUDA device moves bytes between the ranks' devices (comm/nccl).
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct CudaRun;

// Used by one thread. Destroy it before the slab on which its collectives work, and after the graphs that captured
// them.
class CudaCollectives {
 public:
  CudaCollectives() = default;
  CudaCollectives(const CudaCollectives&) = delete;
  CudaCollectives& operator=(const CudaCollectives&) = delete;
  virtual ~CudaCollectives() = default;

  // Creates what a collective call needs. Call it before the first step, outside of any capture.
  virtual void Prepare(const OpCall& call) = 0;

  // Queues a collective, or its landing, in the order of run.stream, which may be captured. Throws as Check does.
  virtual void Queue(const OpCall& call, const CudaRun& run) = 0;

  // Throws an error that names the lost rank, and why. Call it after each wait for the device, before you use what it
  // computed or what the wait returned: if a rank is lost, the device continues without the others.
  virtual void Check() = 0;
};

}  // namespace ridgeline::engine
