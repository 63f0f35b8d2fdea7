#include "engine/comm/nccl/collective.h"

#include "engine/comm/collective.h"
#include "engine/comm/nccl/collective_stream.h"
#include "engine/comm/nccl/nccl_communicator.h"

namespace ridgeline::engine {
namespace {

void Queue(const OpCall& call, const CudaRun& run, KernelState* /*state*/) { run.collectives->Queue(call, run); }

std::shared_ptr<KernelState> Prepare(const OpCall& call, const CudaRun& run) {
  run.collectives->Prepare(call);
  return nullptr;
}

}  // namespace

void AddCollectivesCuda(CudaKernelTable& table) {
  for (const OpDef* op : {static_cast<const OpDef*>(&kAllGather), static_cast<const OpDef*>(&kReduceScatter),
                          static_cast<const OpDef*>(&kAllReduce), static_cast<const OpDef*>(&kLand),
                          static_cast<const OpDef*>(&kSumOverRanks), static_cast<const OpDef*>(&kMaxOverRanks)}) {
    table[op] = {Queue, Prepare};
  }
}

std::unique_ptr<CudaCollectives> MakeCudaCollectives(Communicator& ranks, const Nccl& (*nccl)()) {
  if (ranks.world() == 1) return nullptr;
  const bool is_virtual = ranks.name() == "virtual";
  return std::make_unique<CollectiveStream>(ranks, [=](Communicator& group) {
    return is_virtual ? MakeVirtualDeviceCommunicator(group.world()) : ConnectNccl(nccl(), group);
  });
}

}  // namespace ridgeline::engine
