// The collectives' kernels. Each hands its work to the queue's thread, which must leave the cores to the program, so
// nothing here runs in parallel.
#include <algorithm>
#include <span>

#include "engine/comm/collective.h"
#include "engine/comm/communicator.h"
#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/tensor/bf16.h"

namespace ridgeline::engine {
namespace {

std::byte* Bytes(const CpuRun& run, const Tensor& tensor) {
  return run.Data<std::byte>({tensor.storage, tensor.dtype}) + tensor.offset * SizeOf(tensor.dtype);
}

void GatherNow(const OpCall& call, const CpuRun& run, Communicator& ranks) {
  Communicator& communicator = ranks.Along(CollectiveAttrsOf(call).axes);
  const AllGatherOperands on = call.operands(kAllGather);
  communicator.AllGather(Bytes(run, on.reads.part), Bytes(run, on.writes.full), on.reads.part.bytes());
}

void ReduceScatterNow(const OpCall& call, const CpuRun& run, Communicator& ranks) {
  const auto& [flight, accumulate, reduction, axes] = CollectiveAttrsOf(call);
  Communicator& communicator = ranks.Along(axes);
  const ReduceScatterOperands on = call.operands(kReduceScatter);
  const Tensor& part = on.writes.part;
  const int64_t elements = part.elements();
  const DType dtype = on.writes.full.dtype;
  std::byte* full = Bytes(run, on.writes.full);
  communicator.ReduceScatter(full, dtype, elements, reduction);
  const std::byte* own = full + communicator.rank() * elements * SizeOf(dtype);
  if (dtype != DType::kF32) {
    std::copy_n(own, part.bytes(), Bytes(run, part));
    return;
  }
  const auto* reduced = reinterpret_cast<const float*>(own);
  if (part.dtype == DType::kF32) {
    auto* to = run.Data<float>(part);
    for (int64_t i = 0; i < elements; ++i) to[i] = reduced[i] + (accumulate ? to[i] : 0.0F);
  } else {
    auto* to = run.Data<uint16_t>(part);
    for (int64_t i = 0; i < elements; ++i) to[i] = ToBf16(reduced[i] + (accumulate ? FromBf16(to[i]) : 0.0F));
  }
}

void AllReduceNow(const OpCall& call, const CpuRun& run, Communicator& ranks) {
  const auto& [flight, accumulate, reduction, axes] = CollectiveAttrsOf(call);
  const Tensor full = call.operands(kAllReduce).writes.values;
  ranks.Along(axes).AllReduce(Bytes(run, full), full.dtype, full.elements(), reduction);
}

void SumNow(const OpCall& call, const CpuRun& run, Communicator& ranks) {
  Communicator& communicator = ranks.Along(CollectiveAttrsOf(call).axes);
  const Tensor values = call.operands(kSumOverRanks).writes.values;
  communicator.AllReduce(std::span(run.Data<float>(values), 1), Reduction::kSum);
}

void MaxNow(const OpCall& call, const CpuRun& run, Communicator& ranks) {
  Communicator& communicator = ranks.Along(CollectiveAttrsOf(call).axes);
  const Tensor values = call.operands(kMaxOverRanks).writes.values;
  communicator.AllReduce(std::span(run.Data<float>(values), static_cast<size_t>(values.elements())), Reduction::kMax);
}

template <CollectiveQueue::Work work>
void Begin(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  run.collectives->Begin(CollectiveAttrsOf(call).flight, work, call, run);
}

void Land(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  run.collectives->Wait(CollectiveAttrsOf(call).flight);
}

void SumOverRanks(const OpCall& call, const CpuRun& run, KernelState* state) {
  Begin<SumNow>(call, run, state);
  Land(call, run, state);
}

void MaxOverRanks(const OpCall& call, const CpuRun& run, KernelState* state) {
  Begin<MaxNow>(call, run, state);
  Land(call, run, state);
}

}  // namespace

void AddCollectivesCpu(CpuKernelTable& table) {
  table[&kAllGather].run = Begin<GatherNow>;
  table[&kReduceScatter].run = Begin<ReduceScatterNow>;
  table[&kAllReduce].run = Begin<AllReduceNow>;
  table[&kLand].run = Land;
  table[&kSumOverRanks].run = SumOverRanks;
  table[&kMaxOverRanks].run = MaxOverRanks;
}

}  // namespace ridgeline::engine
