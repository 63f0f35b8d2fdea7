#include "engine/comm/collective.h"

#include "base/error.h"

namespace ridgeline {

const OpDef kAllGather{"all_gather"};
const OpDef kReduceScatter{"reduce_scatter"};

double RingBytes(double whole_bytes, int64_t world) {
  return whole_bytes * static_cast<double>(world - 1) / static_cast<double>(world);
}

void AllGather(Trace& trace, Tensor shard, Tensor full, int64_t world) {
  if (shard.dtype != full.dtype || shard.elements() * world != full.elements()) {
    throw Error(ErrorKind::kInternal, "all_gather: shard and full do not fit together");
  }
  trace.Call(kAllGather, {shard, full}, {.bytes = RingBytes(static_cast<double>(full.bytes()), world)});
}

void ReduceScatter(Trace& trace, Tensor full, Tensor shard, int64_t world, bool accumulate) {
  if (full.dtype != DType::kF32 || shard.elements() * world != full.elements()) {
    throw Error(ErrorKind::kInternal, "reduce_scatter: shard and full do not fit together");
  }
  trace.Call(kReduceScatter, {full, shard}, {.bytes = RingBytes(static_cast<double>(full.bytes()), world)}, accumulate);
}

}  // namespace ridgeline
