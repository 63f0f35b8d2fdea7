// The CUDA runtime's streams, events and graphs. Work is queued and runs only when something waits for it. Data that is
// read too early is not there yet, and streams that no event orders run in the seed's order.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cuda_on_cpu/machine_state.h"

using namespace cuda_on_cpu;

extern "C" {

// Streams.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  if (const cudaError_t error = MayFail(kTakes); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  m.streams.push_back(std::make_unique<CUstream_st>());
  *stream = m.streams.back().get();
  (*stream)->device = this_device;
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
// Priorities have no effect on the order here.
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  return *lowest = 0, *highest = -5, cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  return Said(Finish(m, lock, StreamOf(m, stream)));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  Advance(m);
  if (m.sticky != cudaSuccess) return m.sticky;
  return StreamOf(m, stream).queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  const cudaError_t error = Finish(m, lock, *stream);
  std::erase_if(m.streams, [&](const auto& s) { return s.get() == stream; });
  return Said(error);
}

// Events.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = MayFail(kTakes); error != cudaSuccess) return Said(error);
  TheMachine().event_sleeps = (flags & cudaEventBlockingSync) != 0;
  *event = new CUevent_st;
  return ++TheMachine().handles, cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return --TheMachine().handles, cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t where) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  CUstream_st& stream = StreamOf(m, where);
  event->capture = stream.capture;
  event->captured_after = stream.captured_after;
  if (stream.capture != nullptr) return cudaSuccess;
  const int64_t number = ++event->recorded;
  return Said(Queue(m, lock, where, Once([reached = event->reached, number] {
                      reached->number = number;
                      reached->when = std::chrono::steady_clock::now() + TheMachine().passed.load();
                      return cudaSuccess;
                    })));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t where, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  CUstream_st& stream = StreamOf(m, where);
  if (event->capture != nullptr) {  // joins the capture
    if (stream.capture == nullptr) stream.captured_after.clear();
    stream.capture = event->capture;
    for (const size_t node : event->captured_after) stream.captured_after.push_back(node);
    return cudaSuccess;
  }
  const int64_t number = event->recorded;
  return Said(Queue(m, lock, where, [reached = event->reached, number]() -> Step {
    return [=] { return reached->number >= number; };
  }));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  return Said(RunUntil(m, lock, [&] { return event->completed(); }));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  Advance(m);
  if (m.sticky != cudaSuccess) return m.sticky;
  return event->completed() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  if (from->reached->number == 0 || to->reached->number == 0) return Said(cudaErrorInvalidResourceHandle);
  if (!from->completed() || !to->completed()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to->reached->when - from->reached->when).count();
  return cudaSuccess;
}

// Graphs.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = MayFail(kTakes); error != cudaSuccess) return Said(error);
  const Lock lock(TheMachine().mutex);
  if (stream == nullptr || stream->capture != nullptr) return Said(cudaErrorStreamCaptureUnsupported);
  stream->capture = new CUgraph_st;
  stream->capture->by = std::this_thread::get_id();
  stream->capture->mode = mode;
  ++TheMachine().handles;
  stream->captured_after.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  *graph = stream->capture;
  if (*graph == nullptr) return Said(cudaErrorIllegalState);
  // The nodes that other streams added must have joined this one.
  std::set<size_t> joined;
  std::vector<size_t> open = stream->captured_after;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (!joined.insert(node).second) continue;
    for (const size_t before : (*graph)->nodes[node].after) open.push_back(before);
  }
  bool unjoined = false;
  for (const auto& other : m.streams) {
    if (other->capture != *graph) continue;
    for (const size_t node : other->captured_after) unjoined = unjoined || joined.count(node) == 0;
    other->capture = nullptr;
  }
  cudaError_t error = unjoined ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
  if (++m.calls == m.failing_call) error = m.failing_error;
  if (error != cudaSuccess) {
    delete *graph;
    --m.handles;
    *graph = nullptr;
  }
  return Said(error);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const bool capturing = stream != nullptr && stream->capture != nullptr;
  return *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (const cudaError_t error = MayFail(kTakes); error != cudaSuccess) return Said(error);
  *exec = new CUgraphExec_st{*graph};
  TheMachine().keeps_priorities = (flags & cudaGraphInstantiateFlagUseNodePriority) != 0;
  return ++TheMachine().handles, cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  // Runs nodes in any order that keeps their dependencies.
  return QueueTask(stream, [exec]() -> Step {
    struct Launched {
      std::vector<bool> done;
      Step running;
      size_t node = 0;
    };
    auto launched = std::make_shared<Launched>();
    launched->done.resize(exec->nodes.size());
    return [exec, launched] {
      const auto& nodes = exec->nodes;
      for (;;) {
        if (!launched->running) {
          std::vector<size_t> ready;
          for (size_t i = 0; i < nodes.size(); ++i) {
            const auto& after = nodes[i].after;
            if (!launched->done[i] &&
                std::all_of(after.begin(), after.end(), [&](size_t j) { return launched->done[j]; }))
              ready.push_back(i);
          }
          if (ready.empty()) return true;
          Random& random = TheMachine().random;
          launched->node = ready[random.trivial() ? 0 : random.Below(ready.size())];
          launched->running = nodes[launched->node].begin();
        }
        if (!launched->running()) return false;
        launched->running = nullptr;
        launched->done[launched->node] = true;
        ++TheMachine().nodes;
      }
    };
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return --TheMachine().handles, cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  {
    Lock lock(TheMachine().mutex);
    FinishDevice(TheMachine(), lock);
  }
  delete exec;
  return --TheMachine().handles, cudaSuccess;
}

}  // extern "C"
