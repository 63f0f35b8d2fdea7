// Matrix products: every linear layer, forward and backward.
#pragma once

#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"

namespace ridgeline {

extern const OpDef kGemm;

enum class Trans : uint8_t { kNo, kYes };

// Of a recorded call; its arguments are a, b, c, bias.
struct GemmAttrs {
  Trans trans_a = Trans::kNo;
  Trans trans_b = Trans::kNo;
  bool accumulate = false;
};

// c (M, N) = op(a) (M, K) · op(b) (K, N) [+ bias (1, N), broadcast over rows] [+ c where `accumulate`].
// a and b have one dtype (fp32 or bf16), sums are fp32, c is fp32 or bf16. All may be strided (row_stride >= cols).
// op(x) is x, or its transpose: a is stored (K, M) where trans_a, b is stored (N, K) where trans_b.
// FLOPs: 2 M N K.
void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate = false,
          Tensor bias = {});

void AddGemmCpu(CpuKernelTable& table);

// What the prepared products of this process keep outside the slab, all of them together: at most 12 MiB and, where
// products are our own, 0.2 MiB a thread; on CPUs with AMX about 2 MiB a thread. (oneDNN takes packing buffers of its
// own besides while a product runs: bench/ops_bench.cc measures them.)
int64_t GemmScratchBytes();

}  // namespace ridgeline
