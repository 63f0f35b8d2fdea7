#include "engine/comm/nccl/collective_stream.h"

#include <utility>

#include "engine/comm/collective.h"
#include "engine/comm/nccl/collective_kernels.h"
#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {
namespace {

std::byte* Bytes(const CudaRun& run, const Tensor& tensor) {
  return run.Data<std::byte>({tensor.storage, tensor.dtype}) + tensor.offset * SizeOf(tensor.dtype);
}

size_t FlightOf(const OpCall& call) { return static_cast<size_t>(CollectiveAttrsOf(call).flight); }

}  // namespace

CollectiveStream::CollectiveStream(Communicator& ranks, Connect connect)
    : stream_(NewCudaStream(StreamPriority::kHighest)),
      begun_(NewCudaEvent()),
      ranks_(ranks),
      connect_(std::move(connect)) {
  if (ranks.mesh().Groupings().size() == 1) devices_[&ranks] = connect_(ranks);
}

DeviceCommunicator& CollectiveStream::RanksOf(const OpCall& call) {
  return *devices_.at(&ranks_.Along(CollectiveAttrsOf(call).axes));
}

void CollectiveStream::Check() {
  for (const auto& [ranks, devices] : devices_) devices->Check();
}

void CollectiveStream::Prepare(const OpCall& call) {
  const size_t flight = FlightOf(call);
  if (flight >= landed_.size()) landed_.resize(flight + 1);
  if (!landed_[flight]) landed_[flight] = NewCudaEvent();
  if (call.op->kind == OpKind::kLanding) return;
  Communicator& ranks = ranks_.Along(CollectiveAttrsOf(call).axes);
  if (!devices_.contains(&ranks)) devices_[&ranks] = connect_(ranks);
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
  DeviceCommunicator& ranks = RanksOf(call);
  const Reduction reduction = CollectiveAttrsOf(call).reduction;
  if (call.op == &kAllGather) {
    const AllGatherOperands on = call.operands(kAllGather);
    ranks.AllGather(Bytes(run, on.reads.part), Bytes(run, on.writes.full), on.reads.part.bytes(), stream);
  } else if (call.op == &kReduceScatter) {
    const ReduceScatterOperands on = call.operands(kReduceScatter);
    const Tensor& part = on.writes.part;
    const int64_t elements = part.elements();
    const bool accumulate = call.attrs(kReduceScatter).accumulate;
    const DType dtype = on.writes.full.dtype;
    std::byte* full = Bytes(run, on.writes.full);
    const bool at_once = part.dtype == dtype && !accumulate;
    std::byte* reduced = at_once ? Bytes(run, part) : full + ranks.rank() * elements * SizeOf(dtype);
    ranks.ReduceScatter(full, reduced, dtype, elements, reduction, stream);
    if (at_once) return;
    TakeMeanCuda(reinterpret_cast<const float*>(reduced), part.dtype, Bytes(run, part), elements, accumulate, stream);
  } else {  // in place
    const Tensor values = call.writes().front();
    ranks.AllReduce(Bytes(run, values), values.dtype, values.elements(), reduction, stream);
  }
}

}  // namespace ridgeline::engine
