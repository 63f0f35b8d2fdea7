#include "engine/comm/nccl/collective_stream.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/comm/collective.h"
#include "engine/comm/nccl/collective_kernels.h"
#include "engine/device/cuda/kernel.h"

namespace ridgeline {
namespace {

std::byte* Bytes(const CudaRun& run, const Tensor& tensor) {
  return run.Data<std::byte>({tensor.storage, tensor.dtype}) + tensor.offset * SizeOf(tensor.dtype);
}

size_t FlightOf(const OpCall& call) {
  const CollectiveAttrs& attrs = CollectiveAttrsOf(call);
  if (attrs.group != ProcessGroup::kWorld) {
    throw Error(ErrorKind::kInternal, fmt::format("{} is of a process group that no device has", call.op->name));
  }
  return static_cast<size_t>(attrs.flight);
}

}  // namespace

CollectiveStream::CollectiveStream(std::unique_ptr<DeviceCommunicator> ranks)
    : stream_(NewCudaStream(StreamPriority::kHighest)), begun_(NewCudaEvent()), ranks_(std::move(ranks)) {}

void CollectiveStream::Prepare(const OpCall& call) {
  const size_t flight = FlightOf(call);
  if (flight >= landed_.size()) landed_.resize(flight + 1);
  if (!landed_[flight]) landed_[flight] = NewCudaEvent();
}

void CollectiveStream::Queue(const OpCall& call, const CudaRun& run) {
  if (call.op->kind == OpKind::kLanding) return Land(call, run.stream);
  CheckCuda(cudaEventRecord(begun_.get(), run.stream), "cudaEventRecord");
  CheckCuda(cudaStreamWaitEvent(stream_.get(), begun_.get(), 0), "cudaStreamWaitEvent");
  Fly(call, run);
  CheckCuda(cudaEventRecord(landed_[FlightOf(call)].get(), stream_.get()), "cudaEventRecord");
  if (call.op->kind == OpKind::kAtOnce) Land(call, run.stream);
}

void CollectiveStream::Land(const OpCall& call, cudaStream_t stream) {
  CheckCuda(cudaStreamWaitEvent(stream, landed_[FlightOf(call)].get(), 0), "cudaStreamWaitEvent");
}

void CollectiveStream::Fly(const OpCall& call, const CudaRun& run) {
  cudaStream_t stream = stream_.get();
  if (call.op == &kAllGather) {
    const AllGatherOperands on = call.operands(kAllGather);
    ranks_->AllGather(Bytes(run, on.reads.part), Bytes(run, on.writes.full), on.reads.part.bytes(), stream);
  } else if (call.op == &kReduceScatter) {
    const ReduceScatterOperands on = call.operands(kReduceScatter);
    const Tensor& part = on.writes.part;
    const int64_t elements = part.elements();
    const bool accumulate = call.attrs(kReduceScatter).accumulate;
    auto* full = run.Data<float>(on.writes.full);
    const bool at_once = part.dtype == DType::kF32 && !accumulate;
    float* mean = at_once ? run.Data<float>(part) : full + ranks_->rank() * elements;
    ranks_->ReduceScatterMean(full, mean, elements, stream);
    if (!at_once) TakeMeanCuda(mean, part.dtype, Bytes(run, part), elements, accumulate, stream);
  } else if (call.op == &kAllReduce) {
    const Tensor values = call.operands(kAllReduce).writes.values;
    ranks_->AllReduceMean(run.Data<float>(values), values.elements(), stream);
  } else if (call.op == &kSumOverRanks) {
    const Tensor values = call.operands(kSumOverRanks).writes.values;
    ranks_->AllReduce(run.Data<float>(values), values.elements(), Reduction::kSum, stream);
  } else {
    const Tensor values = call.operands(kMaxOverRanks).writes.values;
    ranks_->AllReduce(run.Data<float>(values), values.elements(), Reduction::kMax, stream);
  }
}

}  // namespace ridgeline
