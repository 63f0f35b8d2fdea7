// The emulated machine detects faults of the host's code with memory, streams, events and graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>

#include "cuda_on_cpu/machine.h"
#include "cuda_on_cpu/numbers.h"
#include "cuda_on_cpu/task.h"
#include "engine/device/cuda/runtime.h"

namespace cuda_on_cpu {
namespace {

using ridgeline::engine::CudaEvent;
using ridgeline::engine::CudaStream;
using ridgeline::engine::NewCudaEvent;
using ridgeline::engine::NewCudaStream;

TEST(MemoryDeathTest, TheHostCannotReadTheDevices) {
  ResetMachine();
  const Numbers x;
  EXPECT_DEATH(std::printf("%f", static_cast<double>(x.data()[3])), "");
}

TEST(Memory, EndsWhereTheMachineSays) {
  ResetMachine({.device_bytes = 1 << 20});
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 2 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
  size_t free = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total - free, 1024U);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue) << "twice";
  EXPECT_EQ(AllocatedBytes(), 0U);
}

TEST(Memory, CopiesStayInOneAllocation) {
  ResetMachine();
  const Numbers x;
  std::array<float, kFaultyCount + 1> host{};
  EXPECT_EQ(cudaMemcpy(x.data(), host.data(), sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), x.data(), sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data(), host.data(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue)
      << "the wrong direction";
}

TEST(Streams, AReadBeforeTheCopyGetsOldContent) {
  ResetMachine();
  const ridgeline::engine::PinnedBuffer pinned = ridgeline::engine::NewPinnedBuffer(kNumbersBytes);
  const auto* values = reinterpret_cast<const float*>(pinned.get());
  const CudaStream stream = NewCudaStream();
  const Numbers x;
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), x.data(), kNumbersBytes, cudaMemcpyDeviceToHost, stream.get()), cudaSuccess);
  EXPECT_EQ(values[5], 0);
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess) << "a query runs one piece of the stream's work";
  EXPECT_EQ(values[5], 5);
}

TEST(Streams, PinnedMemoryIsReadWhenTheCopysTurnComes) {
  ResetMachine();
  const CudaStream stream = NewCudaStream();
  const Numbers x;
  const ridgeline::engine::PinnedBuffer pinned = ridgeline::engine::NewPinnedBuffer(kNumbersBytes);
  auto* values = reinterpret_cast<float*>(pinned.get());
  values[5] = 50;
  ASSERT_EQ(cudaMemcpyAsync(x.data(), values, kNumbersBytes, cudaMemcpyHostToDevice, stream.get()), cudaSuccess);
  values[5] = 60;  // too early
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(x.Read()[5], 60);
}

// Returns whether the final value is NaN, which one stream writes, and not 0, which another writes.
bool SecondIsLast(bool with_event, uint64_t seed) {
  ResetMachine({.seed = seed});
  const CudaStream first = NewCudaStream();
  const CudaStream second = NewCudaStream();
  const CudaEvent event = NewCudaEvent();
  const Numbers x;
  cudaMemsetAsync(x.data(), 0, kNumbersBytes, first.get());
  cudaEventRecord(event.get(), first.get());
  if (with_event) cudaStreamWaitEvent(second.get(), event.get(), 0);
  cudaMemsetAsync(x.data(), 0xff, kNumbersBytes, second.get());
  cudaDeviceSynchronize();
  return std::isnan(x.Read()[0]);
}

// Otherwise the copy would later write to memory that belongs to somebody else.
TEST(Streams, MemoryIsFreedWhenItsDeviceIsDoneWhateverAnotherRecords) {
  ResetMachine({.devices = 2});
  const CudaStream recorded = NewCudaStream();
  ASSERT_EQ(cudaStreamBeginCapture(recorded.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  {
    const CudaStream stream = NewCudaStream();
    const Numbers x;
    void* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, kNumbersBytes), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(pinned, x.data(), kNumbersBytes, cudaMemcpyDeviceToHost, stream.get()), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess) << "the copy is done";
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(recorded.get(), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(Streams, AMissingEventIsSeenInSomeOrder) {
  int with = 0;
  int without = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    with += SecondIsLast(true, seed) ? 1 : 0;
    without += SecondIsLast(false, seed) ? 1 : 0;
  }
  EXPECT_EQ(with, 8);
  EXPECT_GT(without, 0);
  EXPECT_LT(without, 8);
}

// CUDA allows this: a stream may reach the event, or wait for it, later.
TEST(Streams, AnEventMayGoBeforeWhatIsQueuedWithIt) {
  ResetMachine();
  const CudaStream recorded = NewCudaStream();
  const CudaStream waiting = NewCudaStream();
  const Numbers x;
  {
    const CudaEvent event = NewCudaEvent();
    ASSERT_EQ(cudaEventRecord(event.get(), recorded.get()), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(waiting.get(), event.get(), 0), cudaSuccess);
  }
  ASSERT_EQ(cudaMemsetAsync(x.data(), 0, kNumbersBytes, waiting.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(waiting.get()), cudaSuccess);
  EXPECT_EQ(x.Read()[5], 0);
}

// When the machine is lost, each rank gives back its own resources while others still wait for theirs.
TEST(Streams, NothingThatIsQueuedRunsOnceTheMachineIsLost) {
  ResetMachine({.devices = 2});
  const CudaStream failing = NewCudaStream();
  ASSERT_EQ(Enqueue(failing.get(), [] { return cudaErrorLaunchFailure; }), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const CudaStream other = NewCudaStream();
  const CudaEvent event = NewCudaEvent();
  int begun = 0;
  const auto count = [&begun]() -> Step { return ++begun, [] { return true; }; };
  ASSERT_EQ(QueueTask(other.get(), count), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event.get(), other.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(failing.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaEventSynchronize(event.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(QueueTask(other.get(), count), cudaErrorLaunchFailure);
  EXPECT_EQ(begun, 0);
}

TEST(Graphs, ReplaysTheRecordingOfTwoStreams) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    ResetMachine({.seed = seed});
    const CudaStream a = NewCudaStream();
    const CudaStream b = NewCudaStream();
    const CudaEvent fork = NewCudaEvent();
    const CudaEvent join = NewCudaEvent();
    const Numbers x, y, z;
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t instance = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(a.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaMemcpyAsync(y.data(), x.data(), kNumbersBytes, cudaMemcpyDeviceToDevice, a.get());
    cudaEventRecord(fork.get(), a.get());
    cudaStreamWaitEvent(b.get(), fork.get(), 0);
    cudaMemcpyAsync(z.data(), y.data(), kNumbersBytes, cudaMemcpyDeviceToDevice, b.get());
    cudaMemsetAsync(x.data(), 0, kNumbersBytes, a.get());
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamSynchronize(a.get()), cudaErrorStreamCaptureUnsupported);
    cudaEventRecord(join.get(), b.get());
    cudaStreamWaitEvent(a.get(), join.get(), 0);
    ASSERT_EQ(cudaStreamEndCapture(a.get(), &recorded), cudaSuccess);
    const ridgeline::engine::CudaGraph graph(recorded);
    ASSERT_EQ(cudaGraphInstantiate(&instance, graph.get(), 0), cudaSuccess);
    const ridgeline::engine::CudaGraphExec replayed(instance);
    EXPECT_EQ(x.Read()[5], 5) << "recording must run nothing";
    for (const float expected : {5.0F, 0.0F}) {
      ASSERT_EQ(cudaGraphLaunch(replayed.get(), a.get()), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(a.get()), cudaSuccess);
      EXPECT_EQ(z.Read()[5], expected);
    }
  }
}

TEST(Graphs, AStreamThatDoesNotComeBackIsRefused) {
  ResetMachine();
  const CudaStream a = NewCudaStream();
  const CudaStream b = NewCudaStream();
  const CudaEvent fork = NewCudaEvent();
  const Numbers x;
  cudaGraph_t recorded = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(a.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaMemsetAsync(x.data(), 0, kNumbersBytes, a.get());
  cudaEventRecord(fork.get(), a.get());
  cudaStreamWaitEvent(b.get(), fork.get(), 0);
  cudaMemsetAsync(x.data(), 1, kNumbersBytes, b.get());
  EXPECT_EQ(cudaStreamEndCapture(a.get(), &recorded), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(recorded, nullptr);
}

TEST(Calls, OneIsMadeToFailAndTheNextWorks) {
  ResetMachine();
  FailCall(CallsMade() + 2, cudaErrorNotSupported);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 16, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 16, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
}  // namespace cuda_on_cpu
