#include "cuda_on_cpu/machine.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "cuda_on_cpu/block.h"
#include "cuda_on_cpu/machine_state.h"
#include "cuda_on_cpu/writes.h"

namespace cuda_on_cpu {
namespace {

constexpr auto kStandstill = std::chrono::seconds(10);

}  // namespace

// kernel.h's typed launches call this.
cudaError_t Launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);

Machine& TheMachine() {
  static Machine machine;
  return machine;
}
thread_local int this_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t Said(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t MayFail(bool takes) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  const bool takes_too_much = takes && ++m.allocations == m.failing_allocation;
  if (++m.calls == m.failing_call) return m.failing_error;
  return takes_too_much ? cudaErrorMemoryAllocation : cudaSuccess;
}

CUstream_st& StreamOf(Machine& m, cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) return *stream;
  while (m.null_streams.size() <= static_cast<size_t>(this_device)) {
    m.null_streams.push_back(std::make_unique<CUstream_st>());
    m.null_streams.back()->device = static_cast<int>(m.null_streams.size()) - 1;
  }
  return *m.null_streams[static_cast<size_t>(this_device)];
}

void NoteChange(Machine& m) {
  ++m.changes;
  m.changed.notify_all();
}

bool Advance(Machine& m) {
  if (m.sticky != cudaSuccess) return false;
  std::vector<CUstream_st*> ready;
  for (const auto* streams : {&m.streams, &m.null_streams}) {
    for (const auto& stream : *streams) {
      if (!stream->queue.empty()) ready.push_back(stream.get());
    }
  }
  const size_t first = ready.empty() || m.random.trivial() ? 0 : m.random.Below(ready.size());
  for (size_t i = 0; i < ready.size(); ++i) {
    CUstream_st& stream = *ready[(first + i) % ready.size()];
    if (!stream.running) stream.running = stream.queue.front()();
    const int64_t nodes = m.nodes;
    if (stream.running()) {
      stream.running = nullptr;
      stream.queue.pop_front();
    } else if (nodes == m.nodes) {
      continue;
    }
    NoteChange(m);
    return true;
  }
  return false;
}

cudaError_t RunUntil(Machine& m, Lock& lock, const std::function<bool()>& done) {
  std::optional<DeviceMemory::Access> access;  // one for all work until another thread may have to continue
  while (m.sticky == cudaSuccess && !done()) {
    if (!access) access.emplace(*m.memory);
    if (Advance(m)) continue;
    access.reset();
    // A waiting thread may not be scheduled for longer than that while others continue.
    const int64_t changes = m.changes;
    if (m.changed.wait_for(lock, kStandstill) == std::cv_status::timeout && m.changes == changes) {
      m.failure = "streams stand still: they wait for events or ranks that never come";
      std::fprintf(stderr, "cuda_on_cpu: %s\n", m.failure.c_str());
      m.sticky = cudaErrorLaunchTimeout;
      NoteChange(m);
    }
  }
  return m.sticky;
}
cudaError_t Finish(Machine& m, Lock& lock, CUstream_st& stream) {
  if (stream.capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return RunUntil(m, lock, [&] { return stream.queue.empty(); });
}
bool Records(const Machine& m) {
  return std::any_of(m.streams.begin(), m.streams.end(), [](const auto& s) {
    if (s->capture == nullptr || s->capture->mode == cudaStreamCaptureModeRelaxed) return false;
    return s->capture->mode == cudaStreamCaptureModeGlobal ||
           (s->capture->by == std::this_thread::get_id() && s->device == this_device);
  });
}
cudaError_t FinishDevice(Machine& m, Lock& lock) {
  if (Records(m)) return cudaErrorStreamCaptureUnsupported;
  const auto idle = [&](const auto& stream) { return stream->device != this_device || stream->queue.empty(); };
  return RunUntil(m, lock, [&] {
    return std::all_of(m.streams.begin(), m.streams.end(), idle) &&
           std::all_of(m.null_streams.begin(), m.null_streams.end(), idle);
  });
}

cudaError_t Queue(Machine& m, Lock& lock, cudaStream_t where, Begin begin) {
  if (m.sticky != cudaSuccess) return m.sticky;
  CUstream_st& stream = StreamOf(m, where);
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back({std::move(begin), stream.captured_after});
    stream.captured_after = {stream.capture->nodes.size() - 1};
    return cudaSuccess;
  }
  const bool null_stream = &stream != where;
  if (null_stream) {  // the legacy stream runs after all work queued before it, and before all work queued after it
    if (const cudaError_t error = FinishDevice(m, lock); error != cudaSuccess) return error;
  }
  stream.queue.push_back(std::move(begin));
  NoteChange(m);
  return null_stream ? Finish(m, lock, stream) : cudaSuccess;
}

Begin Once(std::function<cudaError_t()> work) {
  return [work = std::move(work)]() -> Step {
    return [&work] {
      Machine& m = TheMachine();
      if (m.sticky != cudaSuccess) return true;  // an earlier node of the graph failed
      const DeviceMemory::Access access(*m.memory);
      if (const cudaError_t error = work(); error != cudaSuccess) m.sticky = error;
      return true;
    };
  };
}

cudaError_t QueueTask(cudaStream_t stream, Begin begin) {
  Machine& m = TheMachine();
  Lock lock(m.mutex);
  return Said(Queue(m, lock, stream, std::move(begin)));
}
cudaError_t Enqueue(cudaStream_t stream, std::function<cudaError_t()> work) {
  return QueueTask(stream, Once(std::move(work)));
}
void Change(const std::function<void()>& change) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  change();
  NoteChange(m);
}
void WithDeviceMemory(const std::function<void()>& work) {
  const DeviceMemory::Access access(*TheMachine().memory);
  work();
}

cudaError_t Launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread) {
  if (const cudaError_t error = MayFail(); error != cudaSuccess) return Said(error);
  Machine& m = TheMachine();
  const Grid grid = {config.gridDim, config.blockDim, config.dynamicSmemBytes};
  const auto count = [](dim3 n) { return uint64_t{n.x} * n.y * n.z; };
  if (count(grid.blocks) == 0 || grid.blocks.x > 0x7fffffff || grid.blocks.y > 65535 || grid.blocks.z > 65535 ||
      count(grid.threads) == 0 || count(grid.threads) > 1024 || grid.threads.z > 64) {
    return Said(cudaErrorInvalidConfiguration);
  }
  {
    Lock lock(m.mutex);
    // A kernel's other shared memory counts too, but is not known here. It may be this much.
    constexpr size_t kWithoutAsking = (48 - 16) * 1024;
    const auto limit = m.dynamic_shared_limits.find(kernel);
    if (grid.dynamic_shared_bytes > (limit == m.dynamic_shared_limits.end() ? kWithoutAsking : limit->second)) {
      return Said(cudaErrorInvalidValue);
    }
  }
  return Enqueue(config.stream, [grid, thread = std::move(thread)] {
    Machine& machine = TheMachine();
    const uint64_t number = static_cast<uint64_t>(++machine.grids);
    const uint64_t seed = machine.options.seed == 0 ? 0 : machine.options.seed * 1'000'003 + number;
    // Watches only small grids, because every block costs a comparison of all of the memory.
    constexpr uint64_t kWatchedBlocks = 32;
    constexpr size_t kWatchedBytes = 256 << 10;
    const uint64_t blocks = uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
    std::optional<WriteWatch> watch;
    if (seed != 0 && blocks > 1 && blocks <= kWatchedBlocks && machine.memory->allocated_bytes() <= kWatchedBytes) {
      watch.emplace(*machine.memory);
    }
    machine.failure =
        RunGrid(grid, thread, seed, watch ? [&] { return watch->AfterBlock(); } : std::function<std::string()>());
    if (machine.failure.empty()) return cudaSuccess;
    std::fprintf(stderr, "cuda_on_cpu: %s\n", machine.failure.c_str());
    return cudaErrorLaunchFailure;
  });
}

void ResetMachine(const MachineOptions& options) {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  m.streams.clear();
  m.null_streams.clear();
  m.dynamic_shared_limits.clear();
  m.memory = std::make_unique<DeviceMemory>(options.device_bytes);
  m.options = options;
  m.random = Random(options.seed);
  m.grids = 0;
  m.failure.clear();
  m.sticky = cudaSuccess;
  m.calls = m.failing_call = 0;
  m.allocations = m.failing_allocation = 0;
  m.device_flags = 0;
  last_error = cudaSuccess;
  this_device = 0;
}
std::string LastFailure() { return TheMachine().failure; }
size_t AllocatedBytes() { return TheMachine().memory->allocated_bytes(); }
int64_t OpenHandles() {
  const Machine& m = TheMachine();
  return m.handles + static_cast<int64_t>(m.streams.size() + m.pinned.size());
}
void PassTime(std::chrono::duration<double, std::milli> time) {
  Machine& m = TheMachine();
  m.passed = m.passed.load() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
}
int64_t CallsMade() { return TheMachine().calls; }
void FailCall(int64_t number, cudaError_t error) {
  TheMachine().failing_call = number;
  TheMachine().failing_error = error;
}
int64_t AllocationsMade() { return TheMachine().allocations; }
void FailAllocation(int64_t number) { TheMachine().failing_allocation = number; }
uint64_t AnyOrder() {
  Machine& m = TheMachine();
  const Lock lock(m.mutex);
  return m.options.seed == 0 ? 0 : 1 + m.random.Below(1 << 20);
}
bool LastEventSleeps() { return TheMachine().event_sleeps; }
bool GraphKeepsPriorities() { return TheMachine().keeps_priorities; }
int64_t GridsRun() { return TheMachine().grids; }

}  // namespace cuda_on_cpu
