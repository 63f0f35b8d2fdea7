// `virtual`: rank 0 of the world, with every other rank taken to have what this one has.
#include <cstring>

#include "engine/comm/collective.h"
#include "engine/device/cpu/parallel.h"
#include "engine/tensor/bf16.h"

namespace ridgeline {
namespace {

void AllGatherCpu(const OpCall& call, const CpuRun& run, KernelState*) {
  const Tensor& shard = call.args[0];
  const Tensor& full = call.args[1];
  const auto bytes = static_cast<size_t>(shard.bytes());
  const auto* from = reinterpret_cast<const std::byte*>(run.Data<uint16_t>({shard.storage, DType::kBF16}));
  auto* to = reinterpret_cast<std::byte*>(run.Data<uint16_t>({full.storage, DType::kBF16}));
  ParallelFor(full.elements() / shard.elements(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t rank = begin; rank < end; ++rank) std::memcpy(to + static_cast<size_t>(rank) * bytes, from, bytes);
  });
}

void ReduceScatterCpu(const OpCall& call, const CpuRun& run, KernelState*) {
  const Tensor& shard = call.args[1];
  const float* full = run.Data<float>(call.args[0]);
  const bool accumulate = call.attrs<bool>();
  if (shard.dtype == DType::kF32) {
    float* to = run.Data<float>(shard);
    ParallelFor(shard.elements(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = full[i] + (accumulate ? to[i] : 0.0F);
    });
  } else {
    uint16_t* to = run.Data<uint16_t>(shard);
    ParallelFor(shard.elements(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = ToBf16(full[i] + (accumulate ? FromBf16(to[i]) : 0.0F));
    });
  }
}

}  // namespace

void AddVirtualCollectivesCpu(CpuKernelTable& table) {
  table[&kAllGather] = {AllGatherCpu, nullptr};
  table[&kReduceScatter] = {ReduceScatterCpu, nullptr};
}

}  // namespace ridgeline
