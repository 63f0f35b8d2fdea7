#include "engine/device/cuda/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "cuda_on_cpu/machine.h"

namespace ridgeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Error ErrorOf(cudaError_t error) {
  try {
    CheckCuda(error, "cudaStreamSynchronize");
  } catch (const Error& thrown) {
    return thrown;
  }
  ADD_FAILURE() << error << " is no Error";
  return Error(ErrorKind::kInternal, "");
}

TEST(CheckCuda, SaysWhoseMatterAnErrorIs) {
  EXPECT_NO_THROW(CheckCuda(cudaSuccess, "cudaMalloc"));
  EXPECT_EQ(ErrorOf(cudaErrorMemoryAllocation).kind(), ErrorKind::kOutOfMemory);
  for (const cudaError_t error :
       {cudaErrorInsufficientDriver, cudaErrorNoDevice, cudaErrorDevicesUnavailable, cudaErrorNoKernelImageForDevice,
        cudaErrorECCUncorrectable, cudaErrorContained, cudaErrorLaunchTimeout}) {
    EXPECT_EQ(ErrorOf(error).kind(), ErrorKind::kInfrastructure) << error;
    EXPECT_FALSE(ErrorOf(error).hint().empty()) << error;
  }
  for (const cudaError_t error : {cudaErrorInvalidValue, cudaErrorIllegalAddress, cudaErrorLaunchFailure}) {
    EXPECT_EQ(ErrorOf(error).kind(), ErrorKind::kInternal) << error;
  }
}

TEST(CheckCuda, SaysWhenTheDeviceIsLost) {
  EXPECT_THAT(
      ErrorOf(cudaErrorIllegalAddress).message(),
      AllOf(HasSubstr("cudaStreamSynchronize: "), HasSubstr("(cudaErrorIllegalAddress); the GPU computes nothing")));
  EXPECT_THAT(ErrorOf(cudaErrorInvalidValue).message(), testing::Not(HasSubstr("nothing more")));
}

TEST(CheckCuda, LeavesNoErrorToTheCallsThatFollow) {
  cuda_on_cpu::ResetMachine({.device_bytes = 4096});
  EXPECT_THROW(NewDeviceBuffer(1 << 20), Error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CudaOwners, GiveBackWhatTheyHold) {
  cuda_on_cpu::ResetMachine();
  {
    const DeviceBuffer device = NewDeviceBuffer(1000);
    const PinnedBuffer pinned = NewPinnedBuffer(1000);
    CudaStream stream = NewCudaStream();
    const CudaEvent event = NewCudaEvent(true);
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 3);
    const CudaStream moved = std::move(stream);
    EXPECT_EQ(cudaEventRecord(event.get(), moved.get()), cudaSuccess);
  }
  EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
  EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
}

}  // namespace
}  // namespace ridgeline
