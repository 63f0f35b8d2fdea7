// What the CUDA device asks of who moves bytes between the ranks' devices (comm/nccl).
#pragma once

#include "engine/device/trace.h"

namespace ridgeline {

struct CudaRun;

// Used by one thread. Goes before the slab that its collectives work on, and after the graphs they were captured in.
class CudaCollectives {
 public:
  CudaCollectives() = default;
  CudaCollectives(const CudaCollectives&) = delete;
  CudaCollectives& operator=(const CudaCollectives&) = delete;
  virtual ~CudaCollectives() = default;

  // Makes what a collective call needs: before the first step, outside of any capture.
  virtual void Prepare(const OpCall& call) = 0;

  // Queues a collective, or its landing, in the order of run.stream, which may be captured. Throws as Check does.
  virtual void Queue(const OpCall& call, const CudaRun& run) = 0;

  // Throws which rank is lost, and why. To be asked after each wait for the device, before what it computed, or what
  // the wait returned, is believed: where a rank is lost, the device is let go on without the others.
  virtual void Check() = 0;
};

}  // namespace ridgeline
