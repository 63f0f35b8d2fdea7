#include "engine/device/cuda/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/device/cuda/fastest.h"
#include "engine/device/cuda/order.h"
#include "engine/device/cuda/ranges.h"

namespace ridgeline::engine {
namespace {

int Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  CheckCuda(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

// Makes the device current for the thread, before anything is created on it.
int ComputeCapability(int device) {
  CheckCuda(cudaSetDevice(device), "cudaSetDevice");
  return 10 * Attribute(cudaDevAttrComputeCapabilityMajor, device) +
         Attribute(cudaDevAttrComputeCapabilityMinor, device);
}

DeviceBuffer NewSlab(int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0;
    size_t total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw Error(
        ErrorKind::kOutOfMemory,
        fmt::format("the plan needs {} ({} bytes), and {} ({} bytes) of the GPU's {} are free", FormatBytes(bytes),
                    bytes, FormatBytes(static_cast<int64_t>(free)), free, FormatBytes(static_cast<int64_t>(total))),
        "use activation checkpointing, a smaller batch_size, seq_length or model, or a GPU with more memory");
  }
  CheckCuda(error, "cudaMalloc");
  return DeviceBuffer(static_cast<std::byte*>(memory));
}

// If a rank is lost, its collectives report it better than the wait's return value.
void CheckWait(cudaError_t error, const char* what, CudaCollectives* collectives) {
  if (collectives != nullptr) collectives->Check();
  CheckCuda(error, what);
}
void Wait(cudaStream_t stream, CudaCollectives* collectives) {
  CheckWait(cudaStreamSynchronize(stream), "cudaStreamSynchronize", collectives);
}

}  // namespace

CudaStaging::CudaStaging() : memory_(NewPinnedBuffer(kSlots * kSlotBytes)) {
  for (CudaEvent& event : read_) event = NewCudaEvent();
}

void CudaStaging::Upload(std::byte* to, std::span<const std::byte> from, cudaStream_t stream) {
  while (!from.empty()) {
    const auto piece = from.first(std::min(from.size(), kSlotBytes));
    CheckCuda(cudaEventSynchronize(read_[next_].get()), "cudaEventSynchronize");
    std::memcpy(Slot(next_), piece.data(), piece.size());
    CheckCuda(cudaMemcpyAsync(to, Slot(next_), piece.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    CheckCuda(cudaEventRecord(read_[next_].get(), stream), "cudaEventRecord");
    next_ = (next_ + 1) % kSlots;
    to += piece.size();
    from = from.subspan(piece.size());
  }
}

void CudaStaging::Download(const std::byte* from, std::span<std::byte> to, cudaStream_t stream,
                           CudaCollectives* collectives) {
  while (!to.empty()) {
    const auto part = to.first(std::min(to.size(), kSlots * kSlotBytes));
    // Queued after the uploads that use this memory, on the same stream.
    CheckCuda(cudaMemcpyAsync(memory_.get(), from, part.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    Wait(stream, collectives);
    std::memcpy(part.data(), memory_.get(), part.size());
    from += part.size();
    to = to.subspan(part.size());
  }
}

CudaScalars::CudaScalars()
    : memory_(NewPinnedBuffer(static_cast<int64_t>(kReadings * Executor::kMostScalars * sizeof(float)))) {
  for (Reading& reading : readings_) reading.done = NewCudaEvent(true);
}

void CudaScalars::Queue(std::span<const std::byte* const> from, cudaStream_t stream) {
  if (queued_ - taken_ == kReadings - 1 || from.size() > Executor::kMostScalars) {
    throw Error(ErrorKind::kInternal, "more scalars are queued than there is room for");
  }
  const size_t slot = queued_ % kReadings;
  for (size_t i = 0; i < from.size(); ++i) {
    CheckCuda(cudaMemcpyAsync(Numbers(slot) + i, from[i], sizeof(float), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
  }
  CheckCuda(cudaEventRecord(readings_[slot].done.get(), stream), "cudaEventRecord");
  readings_[slot].count = from.size();
  ++queued_;
}

Executor::Scalars CudaScalars::Take(CudaCollectives* collectives) {
  if (queued_ == taken_) throw Error(ErrorKind::kInternal, "scalars are taken that were never queued");
  const size_t slot = taken_ % kReadings;
  const Reading& reading = readings_[slot];
  CheckWait(cudaEventSynchronize(reading.done.get()), "cudaEventSynchronize", collectives);
  Executor::Scalars scalars{{Numbers(slot), Numbers(slot) + reading.count}, std::nullopt};
  if (taken_ > 0) {
    const Reading& last = readings_[(taken_ - 1) % kReadings];
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, last.done.get(), reading.done.get()), "cudaEventElapsedTime");
    scalars.since_last_ns = std::llround(double{ms} * 1e6);
  }
  ++taken_;
  return scalars;
}

CudaExecutor::CudaExecutor(const Trace& trace, const Layout& layout, const CudaKernelTable& kernels,
                           const CudaOptions& options, std::shared_ptr<CudaCollectives> collectives)
    : kernels_(kernels),
      options_(options),
      compute_capability_(ComputeCapability(options_.device)),
      slab_bytes_(layout.slab_bytes),
      slab_(NewSlab(slab_bytes_)),
      stream_(NewCudaStream(options_.beside_products ? StreamPriority::kAbovePlain : StreamPriority::kPlain)),
      staging_(std::make_unique<CudaStaging>()),
      collectives_(std::move(collectives)),
      inputs_(trace.inputs()) {
  run_.slab = slab_.get();
  run_.offsets = layout.offsets.data();
  run_.stream = stream_.get();
  run_.multiprocessors = Attribute(cudaDevAttrMultiProcessorCount, options_.device);
  run_.shared_bytes = Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, options_.device);
  run_.libraries = options_.libraries;
  run_.collectives = collectives_.get();
  run_.algorithms = options_.algorithms;
  run_.notes = options_.notes;
  run_.all_plans = options_.all_plans;
  if (options_.load_seconds > 0) PrepareLoad();
  // Algorithms are measured where they will run, in the slab. That needs no further memory and has the final
  // alignments. The slab holds nothing yet. These bytes are ordinary numbers in every format, 1.5 in e4m3 and 0.01 in
  // bf16: no NaN, for which a device may take longer. Because all bytes are equal, few wires change, and the device may
  // clock higher than in a step. But that holds for all algorithms, which are only compared with each other. Under a
  // step's load, products and attention write random operands.
  if (options_.algorithms != nullptr) Fill(0x3c);
  calls_.reserve(trace.calls().size());
  for (const OpCall& call : trace.calls()) {
    const auto kernel = kernels.find(call.op);
    if (kernel == kernels.end()) {
      throw Error(ErrorKind::kInternal, fmt::format("the op {} has no CUDA kernel", call.op->name));
    }
    const CudaKernel& k = kernel->second;
    calls_.push_back({&call, k.run, k.prepare == nullptr ? nullptr : k.prepare(call, run_), k.run_together, 1, {}, {}});
  }
  if (options_.algorithms != nullptr) {
    if (options_.epilogue != nullptr) ChooseEpilogues(trace);
    options_.algorithms->Save();
  }
  Clear();  // as with the CPU's slab: unwritten memory reads as zeros
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) {
    if (calls_[i].run_together != nullptr) calls_[i].together = CountTogether(trace, layout, i);
  }
  if (options_.beside_products) PrepareBeside(trace, layout);
}

// The first stream has the higher priority. So the second one's blocks take what a product's blocks leave.
void CudaExecutor::PrepareBeside(const Trace& trace, const Layout& layout) {
  second_stream_ = NewCudaStream();
  forked_ = NewCudaEvent();
  SecondStream order;
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) {
    if (calls_[i].run == nullptr) continue;
    SlabBytes bytes(trace, layout);
    for (size_t j = i; j < i + calls_[i].together; ++j) bytes.Add(*calls_[j].call);
    for (const auto& [done, by] : done_by_) {
      if (by == i) bytes.Add(*calls_[done].call);
    }
    if (kernels_.at(calls_[i].call->op).beside) {
      calls_[i].beside = order.Beside(std::move(bytes));
      besides_.push_back(NewCudaEvent());
    } else {
      calls_[i].after = order.WaitOf(bytes);
    }
  }
}

// Reads twice as many bytes as the L2 cache has, each time other ones of the slab.
void CudaExecutor::PrepareLoad() {
  const int64_t bytes = std::min(int64_t{2} * Attribute(cudaDevAttrL2CacheSize, options_.device), slab_bytes_);
  load_.seconds = options_.load_seconds;
  load_.take_other_data = [this, bytes, at = int64_t{0}]() mutable {
    if (at + bytes > slab_bytes_) at = 0;
    options_.read_through(stream_.get(), slab_.get() + at, bytes);
    at += bytes;
  };
  run_.load = &load_;
}

void CudaExecutor::Fill(int byte) {
  CheckCuda(cudaMemsetAsync(slab_.get(), byte, static_cast<size_t>(slab_bytes_), stream_.get()), "cudaMemsetAsync");
}

// An epilogue's candidates: the call right before a product that makes its operand, or a call that changes the
// product's result. The latter may come a few calls later, if a weight's gradient was computed in between.
void CudaExecutor::ChooseEpilogues(const Trace& trace) {
  constexpr size_t kBehind = 8;
  const TraceOrder order(trace);
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (size_t other = i == 0 ? 0 : i - 1; other < std::min(i + kBehind, calls_.size()); ++other) {
      if (other == i || calls_[other].run == nullptr) continue;
      const CudaEpilogue epilogue = options_.epilogue(*calls_[i].call, *calls_[other].call, run_);
      if (epilogue.work.empty() || !order.MayMove(other, i)) continue;
      std::shared_ptr<KernelState> state = TakeEpilogue(calls_[i], calls_[other], epilogue);
      if (state == nullptr) continue;
      calls_[i].state = std::move(state);
      calls_[other].run = nullptr;
      done_by_.emplace_back(other, i);
      options_.algorithms->Took(calls_[other].call->op->name);
      break;
    }
  }
}

// Takes it if it is faster than the two calls one after the other, or if a file says so.
std::shared_ptr<KernelState> CudaExecutor::TakeEpilogue(const Bound& call, const Bound& other,
                                                        const CudaEpilogue& epilogue) {
  constexpr std::string_view kTwoCalls = "two calls";
  constexpr std::string_view kOneCall = "one call";
  AlgorithmFile& algorithms = *options_.algorithms;
  const std::optional<std::string> kept = algorithms.Find(epilogue.work);
  if (kept == kOneCall) return epilogue.prepare();
  if (kept == kTwoCalls || !algorithms.measures()) return nullptr;
  std::shared_ptr<KernelState> state = epilogue.prepare();
  if (state != nullptr) {
    const auto queue = [&](size_t way) {
      call.run(*call.call, run_, way == 0 ? call.state.get() : state.get());
      if (way == 0) other.run(*other.call, run_, other.state.get());
      return true;
    };
    if (Fastest(2, queue, stream_.get(), run_.load) != 1U) state = nullptr;
  }
  algorithms.Keep(epilogue.work, std::string(state == nullptr ? kTwoCalls : kOneCall));
  return state;
}

// Waits, because queued work uses memory that is freed now. A step that could not be queued whole may have left the
// streams apart.
CudaExecutor::~CudaExecutor() {
  cudaStreamSynchronize(stream_.get());
  if (second_stream_ != nullptr) cudaStreamSynchronize(second_stream_.get());
}

bool CudaExecutor::Multiplies(MathFormat format) const {
  switch (format) {
    case MathFormat::kF32:
    case MathFormat::kTF32:
    case MathFormat::kBF16:
    case MathFormat::kF16:
      return true;  // true from compute capability 8.0 on, and older devices are refused
    case MathFormat::kFp8:
      return compute_capability_ >= 89;
    case MathFormat::kMxfp8:
    case MathFormat::kFp4:
      return compute_capability_ >= 100;
  }
  return false;
}

std::unique_ptr<Executor> CudaExecutor::Beside(const Trace& trace, const Layout& layout) const {
  return std::make_unique<CudaExecutor>(trace, layout, kernels_, options_);
}

void CudaExecutor::Zero(const Tensor& tensor) {
  CheckCuda(cudaMemsetAsync(Address(tensor, tensor.offset * SizeOf(tensor.dtype)), 0,
                            static_cast<size_t>(tensor.bytes()), stream_.get()),
            "cudaMemsetAsync");
}

bool CudaExecutor::WriteNormal(const Tensor& to, int64_t first, const NormalNumbers& numbers) {
  if (options_.write_normal == nullptr) return false;
  std::byte* address = Address(to, to.offset * SizeOf(to.dtype));
  options_.write_normal(stream_.get(), to.dtype, address, first, to.elements(), numbers);
  return true;
}

void CudaExecutor::Upload(const Tensor& to, int64_t byte, std::span<const std::byte> from) {
  staging_->Upload(Address(to, byte), from, stream_.get());
}

void CudaExecutor::Download(const Tensor& from, int64_t byte, std::span<std::byte> to) const {
  staging_->Download(Address(from, byte), to, stream_.get(), run_.collectives);
}

void CudaExecutor::QueueScalars(std::span<const Tensor> scalars) {
  std::vector<const std::byte*> from;
  for (const Tensor& scalar : scalars) from.push_back(Address(scalar, scalar.offset * SizeOf(scalar.dtype)));
  scalars_.Queue(from, stream_.get());
}

void CudaExecutor::Step(const StepInputs& inputs) {
  const NvtxRange range("step");
  if (inputs_.defined()) {
    staging_->Upload(Address(inputs_, inputs_.offset * SizeOf(inputs_.dtype)), std::as_bytes(std::span(&inputs, 1)),
                     stream_.get());
  }
  if (!call_ns_.empty()) {
    RunTimed();
  } else if (!options_.graph || !ran_) {
    RunCalls();  // libraries load their kernels now, which is not allowed while a graph is recorded
  } else {
    if (graph_ == nullptr) Capture();
    CheckCuda(cudaGraphLaunch(graph_.get(), stream_.get()), "cudaGraphLaunch");
  }
  ran_ = true;
}

void CudaExecutor::RunCalls() const {
  if (!besides_.empty()) return RunBeside();
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) Run(calls_[i], run_);
}

// Both streams begin and end together.
void CudaExecutor::RunBeside() const {
  CudaRun second = run_;
  second.stream = second_stream_.get();
  second.beside = true;
  const auto wait = [&](size_t number) {
    CheckCuda(cudaStreamWaitEvent(stream_.get(), besides_[number].get(), 0), "cudaStreamWaitEvent");
  };
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) {
    const Bound& bound = calls_[i];
    if (bound.run != nullptr && bound.beside) {
      CheckCuda(cudaEventRecord(forked_.get(), stream_.get()), "cudaEventRecord");
      CheckCuda(cudaStreamWaitEvent(second.stream, forked_.get(), 0), "cudaStreamWaitEvent");
      Run(bound, second);
      CheckCuda(cudaEventRecord(besides_[*bound.beside].get(), second.stream), "cudaEventRecord");
    } else {
      if (bound.after) wait(*bound.after);
      Run(bound, run_);
    }
  }
  wait(besides_.size() - 1);
}

// Runs the call, with the calls that run together with it.
void CudaExecutor::Run(const Bound& bound, const CudaRun& run) const {
  if (bound.run == nullptr) return;
  const NvtxRange range(bound.call->op->name);
  if (bound.together > 1) {
    bound.run_together({bound.call, bound.together}, run);  // the trace's calls are contiguous
  } else {
    bound.run(*bound.call, run, bound.state.get());
  }
}

// Other threads, such as NCCL's, may call CUDA meanwhile: only this thread's calls must be capturable.
void CudaExecutor::Capture() {
  CheckCuda(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t recorded = nullptr;
  try {
    RunCalls();
  } catch (...) {
    cudaStreamEndCapture(stream_.get(), &recorded);
    cudaGetLastError();
    const CudaGraph dropped(recorded);
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(stream_.get(), &recorded);
  const CudaGraph graph(recorded);
  CheckCuda(ended, "cudaStreamEndCapture");
  cudaGraphExec_t instance = nullptr;
  // Without the flag, all nodes have the same priority, and a collective's blocks wait behind those of the computation.
  CheckCuda(cudaGraphInstantiate(&instance, graph.get(), cudaGraphInstantiateFlagUseNodePriority),
            "cudaGraphInstantiate");
  graph_.reset(instance);
}

void CudaExecutor::EnableTiming() {
  between_calls_.clear();
  for (size_t i = 0; i <= calls_.size(); ++i) between_calls_.push_back(NewCudaEvent(true));
  call_ns_.assign(calls_.size(), 0);
}

void CudaExecutor::RunTimed() {
  const auto record = [&](size_t i) {
    CheckCuda(cudaEventRecord(between_calls_[i].get(), stream_.get()), "cudaEventRecord");
  };
  record(0);
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) {
    Run(calls_[i], run_);
    record(i + calls_[i].together);
  }
  Wait(stream_.get(), run_.collectives);
  for (size_t i = 0; i < calls_.size(); i += calls_[i].together) {
    const size_t together = calls_[i].together;
    float milliseconds = 0;
    CheckCuda(cudaEventElapsedTime(&milliseconds, between_calls_[i].get(), between_calls_[i + together].get()),
              "cudaEventElapsedTime");
    // Calls that run at once share the time.
    for (size_t j = 0; j < together; ++j) {
      call_ns_[i + j] += std::llround(double{milliseconds} * 1e6 / static_cast<double>(together));
    }
  }
}

}  // namespace ridgeline::engine
