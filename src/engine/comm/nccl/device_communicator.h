// Moves bytes between the ranks' devices. It mirrors the Communicator (communicator.h), which moves the host's bytes.
//
//   nccl     one device per rank (nccl_communicator.h)
//   virtual  rank 0 of `world` on one device, alone: what the others would have sent is assumed to equal its own data
//
// A collective is queued on a stream and may be captured. Its memory is the device's, and in use until the stream has
// passed it. Every rank queues the same collectives in the same order, and on one stream. A group of ranks along axes
// of the mesh has a communicator of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/comm/communicator.h"

namespace ridgeline::engine {

class DeviceCommunicator {
 public:
  DeviceCommunicator(int64_t rank, int64_t world) : rank_(rank), world_(world) {}
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;
  virtual ~DeviceCommunicator() = default;

  int64_t rank() const { return rank_; }
  int64_t world() const { return world_; }

  // full: world x bytes, filled with every rank's `bytes` in rank order. `mine` is this rank's part, and may be at its
  // place in full.
  virtual void AllGather(const std::byte* mine, std::byte* full, int64_t bytes, cudaStream_t stream) = 0;

  // full: world parts of `elements`, fp32, bf16 or fp16. part = the mean or the sum of the ranks' values for this
  // rank's part, of the same dtype; it may be that part.
  virtual void ReduceScatter(const std::byte* full, std::byte* part, DType dtype, int64_t elements, Reduction reduction,
                             cudaStream_t stream) = 0;

  // values, fp32, bf16 or fp16 = their mean, sum or maximum over the ranks: the same bits on every rank.
  virtual void AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction,
                         cudaStream_t stream) = 0;

  // If a rank is lost, throws an error that names it, and why (CudaCollectives::Check).
  virtual void Check() {}

 private:
  int64_t rank_;
  int64_t world_;
};

std::unique_ptr<DeviceCommunicator> MakeVirtualDeviceCommunicator(int64_t world);

}  // namespace ridgeline::engine
