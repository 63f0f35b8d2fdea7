// The state of the emulated machine, and how it runs the work that streams queue. The runtime's functions are in
// runtime.cc and streams.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_on_cpu/machine.h"
#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/random.h"
#include "cuda_on_cpu/task.h"

// A node waits for those before it. Each launch begins its tasks anew.
struct CUgraph_st {
  struct Node {
    cuda_on_cpu::Begin begin;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
  std::thread::id by;  // who recorded it
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUevent_st {
  // Streams may reach the event, or wait for it, after it was destroyed.
  struct Reached {
    int64_t number = 0;  // the last recording that streams have reached
    std::chrono::steady_clock::time_point when;
  };
  int64_t recorded = 0;  // how often cudaEventRecord was called
  std::shared_ptr<Reached> reached = std::make_shared<Reached>();
  CUgraph_st* capture = nullptr;  // the graph that it was recorded into, and the nodes that it follows
  std::vector<size_t> captured_after;

  bool completed() const { return reached->number >= recorded; }
};
struct CUstream_st {
  int device = 0;
  std::deque<cuda_on_cpu::Begin> queue;
  cuda_on_cpu::Step running;      // the first task of the queue
  CUgraph_st* capture = nullptr;  // if set, work goes into this graph, after these nodes
  std::vector<size_t> captured_after;
};

namespace cuda_on_cpu {

struct Machine {
  MachineOptions options;
  std::mutex mutex;  // guards all members
  std::condition_variable changed;
  int64_t changes = 0;
  std::unique_ptr<DeviceMemory> memory = std::make_unique<DeviceMemory>(options.device_bytes);
  std::map<const void*, size_t> pinned;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUstream_st>> null_streams;  // one for each device
  std::map<const void*, size_t> dynamic_shared_limits;     // of kernels that asked for more
  Random random{0};
  int64_t grids = 0;
  int64_t nodes = 0;              // of graphs, that ran
  bool keeps_priorities = false;  // of streams, in the graph that was instantiated last
  unsigned device_flags = 0;      // of cudaInitDevice
  bool event_sleeps = false;      // the event that was made last
  std::string failure;
  cudaError_t sticky = cudaSuccess;  // after a failure the machine does nothing
  int64_t calls = 0;                 // of the runtime, as MayFail counts them
  int64_t failing_call = 0;          // 0: none
  cudaError_t failing_error = cudaSuccess;
  int64_t allocations = 0, failing_allocation = 0;               // the same for calls that allocate memory
  std::atomic<int64_t> handles = 0;                              // events and graphs that are not destroyed
  std::atomic<std::chrono::steady_clock::duration> passed = {};  // the time that PassTime added
};
Machine& TheMachine();
using Lock = std::unique_lock<std::mutex>;

// The thread's device, and its last error that is not sticky.
extern thread_local int this_device;
extern thread_local cudaError_t last_error;

// Notes an error for cudaGetLastError, and returns it.
cudaError_t Said(cudaError_t error);
// Returns the error that FailCall and FailAllocation request for this call. Each function of the runtime that may fail
// calls it once. `takes`: whether the function allocates memory, or makes something that does.
cudaError_t MayFail(bool takes = false);
constexpr bool kTakes = true;

CUstream_st& StreamOf(Machine& m, cudaStream_t stream);
// Tells waiting threads that something has continued or may continue.
void NoteChange(Machine& m);
// Advances one stream by one step. False: nothing can run, as after a sticky error, when queued work may use graphs and
// memory that were given back.
bool Advance(Machine& m);
// Runs all work that can run until `done`. Other threads may have to bring what it waits for.
cudaError_t RunUntil(Machine& m, Lock& lock, const std::function<bool()>& done);
cudaError_t Finish(Machine& m, Lock& lock, CUstream_st& stream);
// Returns whether a recording into a graph forbids this thread the calls that no graph can hold. The recording is on
// its device by this thread, or on any device by any thread in the global mode.
bool Records(const Machine& m);
cudaError_t FinishDevice(Machine& m, Lock& lock);
// Appends work to the stream, or to the graph that it records.
cudaError_t Queue(Machine& m, Lock& lock, cudaStream_t where, Begin begin);
// Work that is done in one step, once the stream reaches it.
Begin Once(std::function<cudaError_t()> work);

}  // namespace cuda_on_cpu
