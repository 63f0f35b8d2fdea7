// Collectives over the ranks of a run.
//
// Communicators: `self` is one rank and has nothing to move. `virtual` is rank 0 of `world`: it moves no bytes between
// ranks, so one process runs with the true shapes and memory of its rank; what the other ranks would have sent is
// taken to be what this one has.
#pragma once

#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"

namespace ridgeline {

extern const OpDef kAllGather;
extern const OpDef kReduceScatter;

// full (1, world * shard) = every rank's shard, in rank order. Same dtype.
void AllGather(Trace& trace, Tensor shard, Tensor full, int64_t world);

// shard (1, n) = the mean over ranks of their n elements of full (1, world * n), this rank's part of it; added to
// shard where `accumulate`. full fp32, shard fp32 or bf16.
void ReduceScatter(Trace& trace, Tensor full, Tensor shard, int64_t world, bool accumulate);

// Bytes a rank sends, ring algorithm: (world - 1) / world of the whole.
double RingBytes(double whole_bytes, int64_t world);

void AddVirtualCollectivesCpu(CpuKernelTable& table);

}  // namespace ridgeline
