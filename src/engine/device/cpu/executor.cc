#include "engine/device/cpu/executor.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/parallel.h"
#include "base/text.h"

namespace ridgeline::engine {
namespace {

// Returns what RLIMIT_DATA leaves; the largest number if there is no limit.
int64_t LeftOfDataLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int64_t kibibytes = 0;
    if (word == "VmData:" && in >> kibibytes) return static_cast<int64_t>(limit.rlim_cur) - kibibytes * 1024;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

// By all cores.
void ZeroBytes(std::byte* data, int64_t bytes) {
  constexpr int64_t kGrain = int64_t{1} << 20;
  ParallelFor(bytes, kGrain,
              [&](int64_t begin, int64_t end) { std::memset(data + begin, 0, static_cast<size_t>(end - begin)); });
}

}  // namespace

int64_t AvailableBytes() { return std::max<int64_t>(std::min(AvailableMemoryBytes(), LeftOfDataLimit()), 0); }

Slab::Slab(int64_t bytes) : bytes_(bytes) {
  const int64_t available = AvailableBytes();
  const auto refuse = [&] {
    throw Error(ErrorKind::kOutOfMemory,
                fmt::format("the plan needs {} ({} bytes), and {} ({} bytes) are available", FormatBytes(bytes), bytes,
                            FormatBytes(available), available),
                "use activation checkpointing, a smaller batch_size, seq_length or model, or a larger machine");
  };
  if (bytes > available) refuse();
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) refuse();
  ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // only advice: fewer TLB misses if it is taken
  data_ = static_cast<std::byte*>(data);
}

Slab::~Slab() { ::munmap(data_, static_cast<size_t>(bytes_)); }

CpuExecutor::CpuExecutor(const Trace& trace, const Layout& layout, const CpuKernelTable& kernels,
                         std::shared_ptr<CollectiveQueue> collectives)
    : kernels_(kernels), collectives_(std::move(collectives)), slab_(layout.slab_bytes), inputs_(trace.inputs()) {
  run_.slab = slab_.data();
  run_.offsets = layout.offsets.data();
  run_.collectives = collectives_.get();
  calls_.reserve(trace.calls().size());
  for (const OpCall& call : trace.calls()) {
    const auto kernel = kernels.find(call.op);
    if (kernel == kernels.end()) {
      throw Error(ErrorKind::kInternal, fmt::format("the op {} has no CPU kernel", call.op->name));
    }
    calls_.push_back(
        {&call, kernel->second.run, kernel->second.prepare == nullptr ? nullptr : kernel->second.prepare(call)});
  }
}

void CpuExecutor::Zero(const Tensor& tensor) {
  ZeroBytes(slab_.data() + run_.offsets[tensor.storage] + tensor.offset * SizeOf(tensor.dtype), tensor.bytes());
}

void CpuExecutor::Clear() { ZeroBytes(slab_.data(), slab_.bytes()); }

void CpuExecutor::Upload(const Tensor& to, int64_t byte, std::span<const std::byte> from) {
  std::copy(from.begin(), from.end(), slab_.data() + run_.offsets[to.storage] + byte);
}

void CpuExecutor::Download(const Tensor& from, int64_t byte, std::span<std::byte> to) const {
  std::copy_n(slab_.data() + run_.offsets[from.storage] + byte, to.size(), to.begin());
}

void CpuExecutor::QueueScalars(std::span<const Tensor> scalars) {
  scalars_.clear();
  for (const Tensor& scalar : scalars) scalars_.push_back(Element<float>(scalar));
}

void CpuExecutor::Step(const StepInputs& inputs) {
  if (inputs_.defined()) *run_.Data<StepInputs>(inputs_) = inputs;
  if (call_ns_.empty()) {
    for (const Bound& bound : calls_) bound.run(*bound.call, run_, bound.state.get());
    return;
  }
  const SystemClock clock;
  int64_t before_ns = clock.MonotonicNs();
  for (size_t i = 0; i < calls_.size(); ++i) {
    calls_[i].run(*calls_[i].call, run_, calls_[i].state.get());
    const int64_t after_ns = clock.MonotonicNs();
    call_ns_[i] += after_ns - before_ns;
    before_ns = after_ns;
  }
}

}  // namespace ridgeline::engine
