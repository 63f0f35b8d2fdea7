#include "engine/comm/nccl/collective_kernels.h"
#include "engine/comm/nccl/device_communicator.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {
namespace {

void Copy(const void* from, void* to, int64_t bytes, cudaStream_t stream) {
  if (from == to || bytes == 0) return;
  CheckCuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
}

class VirtualDeviceCommunicator final : public DeviceCommunicator {
 public:
  explicit VirtualDeviceCommunicator(int64_t world) : DeviceCommunicator(0, world) {}

  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes, cudaStream_t stream) override {
    for (int64_t rank = 0; rank < world(); ++rank) Copy(mine, full + rank * bytes, bytes, stream);
  }
  // The mean of equal values is the value itself.
  void ReduceScatter(const std::byte* full, std::byte* part, DType dtype, int64_t elements, Reduction reduction,
                     cudaStream_t stream) override {
    Copy(full, part, elements * SizeOf(dtype), stream);
    if (reduction == Reduction::kSum) SumOfEqualsCuda(part, dtype, elements, world(), stream);
  }
  void AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction, cudaStream_t stream) override {
    if (reduction == Reduction::kSum) SumOfEqualsCuda(values, dtype, elements, world(), stream);
    if (reduction != Reduction::kMean) return;
    // This rank has reduced its own part.
    AllGather(values, values, elements / world() * SizeOf(dtype), stream);
  }
};

}  // namespace

std::unique_ptr<DeviceCommunicator> MakeVirtualDeviceCommunicator(int64_t world) {
  return std::make_unique<VirtualDeviceCommunicator>(world);
}

}  // namespace ridgeline::engine
