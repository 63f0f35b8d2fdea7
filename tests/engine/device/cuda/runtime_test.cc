#include "engine/device/cuda/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "cuda_on_cpu/machine.h"
#include "tests/engine/device/fake_libraries.h"

namespace ridgeline::engine {
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

TEST(CheckCuda, NamesWhatIsMissingBesideTheGpu) {
  EXPECT_THAT(ErrorOf(cudaErrorSystemNotReady).hint(), HasSubstr("fabric manager"));
  for (const cudaError_t error :
       {cudaErrorMpsConnectionFailed, cudaErrorMpsRpcFailure, cudaErrorMpsServerNotReady, cudaErrorMpsMaxClientsReached,
        cudaErrorMpsMaxConnectionsReached, cudaErrorMpsClientTerminated}) {
    EXPECT_EQ(ErrorOf(error).kind(), ErrorKind::kInfrastructure) << error;
    EXPECT_THAT(ErrorOf(error).hint(), HasSubstr("MPS")) << error;
  }
}

// A fault of ours ends the device, and a library may be the first to be told.
TEST(CheckCuda, FindsTheFaultBehindWhatALibrarySays) {
  const auto error_of = [](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      return std::pair(error.kind(), error.message());
    }
    return std::pair(ErrorKind::kUsage, std::string("none"));
  };
  const auto check_all = [&](ErrorKind kind, const std::string& words) {
    for (const auto& [said_kind, said] :
         {error_of([] { CheckCublasLt(CUBLAS_STATUS_EXECUTION_FAILED, "a product"); }),
          error_of([] { CheckCudnn(FakeCudnn(), CUDNN_STATUS_EXECUTION_FAILED, "a plan"); })}) {
      EXPECT_EQ(said_kind, kind);
      EXPECT_THAT(said, HasSubstr(words));
    }
  };
  cuda_on_cpu::ResetMachine();
  check_all(ErrorKind::kInfrastructure, "failed");
  CudaStream stream = NewCudaStream();
  EXPECT_EQ(cuda_on_cpu::Enqueue(stream.get(), [] { return cudaErrorIllegalAddress; }), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
  check_all(ErrorKind::kInternal, "cudaErrorIllegalAddress");
  stream.reset();
  cuda_on_cpu::ResetMachine();
}

TEST(OpenGpu, LetsTheHostSleepWhereItIsToldTo) {
  for (const bool sleeps : {false, true}) {
    cuda_on_cpu::ResetMachine();
    OpenGpu(0, sleeps);
    for (const bool timed : {false, true}) {
      const CudaEvent event = NewCudaEvent(timed);
      EXPECT_EQ(cuda_on_cpu::LastEventSleeps(), sleeps);
    }
  }
  cuda_on_cpu::ResetMachine();
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
}  // namespace ridgeline::engine
