// Checks the collectives' kernels against what their calls declare, from the beginning of a flight to its landing.
#include <gtest/gtest.h>

#include "engine/comm/collective.h"
#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::engine {
namespace {

CpuKernelTable Kernels() {
  CpuKernelTable table;
  AddCollectivesCpu(table);
  return table;
}
void FlyAndLand(const OpCall& call, const CpuRun& run, KernelState* state) {
  Kernels().at(call.op).run(call, run, state);
  run.collectives->Wait(CollectiveAttrsOf(call).flight);
}
void HaveLanded(const OpCall& /*call*/, const CpuRun& /*run*/, KernelState* /*state*/) {}

TEST(Hazards, NoCollectiveTouchesWhatItsCallDoesNotDeclare) {
  constexpr int64_t kWorld = 2;
  constexpr int64_t kPart = 7;
  testing::WithGloo(kWorld, [](Communicator& communicator) {
    CpuKernelTable table = Kernels();
    for (const OpDef* op : {static_cast<const OpDef*>(&kAllGather), static_cast<const OpDef*>(&kReduceScatter),
                            static_cast<const OpDef*>(&kAllReduce)}) {
      table[op].run = FlyAndLand;
    }
    table[&kLand].run = HaveLanded;
    OpRunner runner;
    CollectiveQueue queue(communicator);
    runner.collectives = &queue;
    Flights flights(runner.trace, Mesh({.shard = kWorld}));
    const auto seed = static_cast<uint32_t>(communicator.rank());
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Tensor part = runner.Normal(dtype, 1, kPart, seed);
      flights.Land(flights.AllGather(MeshAxis::kShard, part, runner.Empty(dtype, 1, kWorld * kPart)));
      for (const bool accumulate : {false, true}) {
        const Tensor full = runner.Normal(DType::kF32, 1, kWorld * kPart, seed + 10);
        flights.Land(
            flights.ReduceScatter(MeshAxis::kShard, full, runner.Normal(dtype, 1, kPart, seed + 20), accumulate));
      }
    }
    flights.Land(flights.AllReduce(MeshAxis::kShard, runner.Normal(DType::kF32, 1, kWorld * kPart, seed)));
    flights.SumOverRanks(MeshAxis::kShard, runner.Normal(DType::kF32, 1, 1, seed));
    flights.MaxOverRanks(MeshAxis::kShard, runner.Normal(DType::kF32, 1, 3, seed));
    runner.Run(table);
  });
}

}  // namespace
}  // namespace ridgeline::engine
