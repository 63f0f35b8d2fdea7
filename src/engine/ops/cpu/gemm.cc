// Products by our own loops (gemm_packed.h): of operands as stored, widened to fp32 or rounded to TF32, or of codes and
// scales.
#include <omp.h>

#include <array>
#include <cstddef>
#include <memory>

#include "base/parallel.h"
#include "engine/device/kernel_state.h"
#include "engine/ops/cpu/gemm_operand.h"
#include "engine/ops/cpu/gemm_packed.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/cpu/scratch.h"
#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/gemm.h"

namespace ridgeline::engine {
namespace {

// Scratch that all products of a thread share, since they run one after another. A process may have a rank on each of
// several threads, as tests do.
SharedCache<int, AlignedBuffer>& Scratches() {
  thread_local SharedCache<int, AlignedBuffer> scratches;
  return scratches;
}
std::shared_ptr<AlignedBuffer> SharedScratch() {
  return Scratches().Get(0, [] { return std::make_shared<AlignedBuffer>(); });
}

PackedShape ShapeOf(const OpCall& call) {
  PackedShape shape;
  const auto set = [&](const Tensor& c, const Tensor& bias, DType in, bool accumulate) {
    shape.m = c.rows;
    shape.n = c.cols;
    shape.ldc = c.row_stride;
    // bf16 stays bf16 if the CPU multiplies it; else it is widened.
    shape.in = in == DType::kBF16 && CpuMultipliesBf16() ? DType::kBF16 : DType::kF32;
    shape.out = c.dtype;
    shape.has_bias = bias.defined();
    if (shape.has_bias) shape.bias = bias.dtype;
    shape.accumulate = accumulate;
  };
  if (call.op == &kQuantizedGemm) {
    const QuantizedGemmOperands on = call.operands(kQuantizedGemm);
    const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
    set(on.writes.c, on.reads.bias, DType::kBF16, attrs.accumulate);
    shape.k = attrs.terms;
    shape.scaled = true;
  } else {
    const GemmOperands on = call.operands(kGemm);
    const GemmAttrs& attrs = call.attrs(kGemm);
    set(on.writes.c, on.reads.bias, on.reads.a.dtype, attrs.accumulate);
    shape.k = attrs.trans_a == Trans::kYes ? on.reads.a.rows : on.reads.a.cols;
  }
  return shape;
}

std::byte* BytesOf(const CpuRun& run, Tensor t) {
  t.offset *= SizeOf(t.dtype);
  return run.Data<std::byte>(t);
}

class GemmState : public KernelState {
 public:
  explicit GemmState(const PackedShape& shape) : shape_(shape), product_(shape), scratch_(SharedScratch()) {
    if (scratch_->bytes() < product_.scratch_bytes()) TouchPages(scratch_->Reserve(product_.scratch_bytes()));
  }

  void Run(const OpCall& call, const CpuRun& run) const {
    const GemmOperands on = call.operands(kGemm);
    const auto& [a, b, bias, added] = on.reads;
    const Tensor& c = on.writes.c;
    const GemmAttrs& attrs = call.attrs(kGemm);
    const bool a_terms = attrs.trans_a == Trans::kNo;  // contiguous
    const bool b_terms = attrs.trans_b == Trans::kYes;
    const std::byte* a_data = BytesOf(run, a);
    const std::byte* b_data = BytesOf(run, b);
    if (a.dtype == shape_.in && !attrs.tf32) {
      Multiply(run, StoredOperand(a_data, a.row_stride, a_terms, a.dtype),
               StoredOperand(b_data, b.row_stride, b_terms, b.dtype), c, bias, 1);
    } else {
      Multiply(run, ConvertedOperand(a_data, a.row_stride, a_terms, a.dtype, attrs.tf32),
               ConvertedOperand(b_data, b.row_stride, b_terms, b.dtype, attrs.tf32), c, bias, 1);
    }
  }

  void RunQuantized(const OpCall& call, const CpuRun& run) const {
    const QuantizedGemmOperands on = call.operands(kQuantizedGemm);
    const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
    float scale = 1;
    for (const StoredCodes& operand : {on.reads.a, on.reads.b}) {
      if (operand.tensor_scale.defined()) scale *= *run.Data<float>(operand.tensor_scale);
    }
    Multiply(run, QuantizedOperand(DataOf(run, attrs.a, on.reads.a), shape_.in),
             QuantizedOperand(DataOf(run, attrs.b, on.reads.b), shape_.in), on.writes.c, on.reads.bias, scale);
  }

 private:
  // Touches all pages now, however few a product would use, on the threads that will use them. So a process's memory
  // besides its slab does not depend on its products' shapes, and none of it is faulted in while a step is measured.
  void TouchPages(std::byte* scratch) const {
    constexpr int64_t kPage = 4096;
    ParallelFor((product_.scratch_bytes() + kPage - 1) / kPage, 64, [&](int64_t begin, int64_t end) {
      for (int64_t page = begin; page < end; ++page) scratch[page * kPage] = std::byte{0};
    });
  }

  void Multiply(const CpuRun& run, const ProductOperand& a, const ProductOperand& b, const Tensor& c,
                const Tensor& bias, float scale) const {
    product_.Run(a, b, BytesOf(run, c), bias.defined() ? BytesOf(run, bias) : nullptr, scale, scratch_->data());
  }

  PackedShape shape_;
  PackedProduct product_;
  std::shared_ptr<AlignedBuffer> scratch_;
};

std::shared_ptr<KernelState> Prepare(const OpCall& call) {
  thread_local SharedCache<std::array<int64_t, 10>, GemmState> states;  // they have the thread's scratch
  const PackedShape s = ShapeOf(call);
  return states.Get(
      {s.m, s.n, s.k, s.ldc, static_cast<int64_t>(s.in), static_cast<int64_t>(s.out),
       s.has_bias ? static_cast<int64_t>(s.bias) : -1, int64_t{s.accumulate}, int64_t{s.scaled}, omp_get_max_threads()},
      [&] { return std::make_shared<GemmState>(s); });
}

void Run(const OpCall& call, const CpuRun& run, KernelState* state) { static_cast<GemmState*>(state)->Run(call, run); }
void RunQuantized(const OpCall& call, const CpuRun& run, KernelState* state) {
  static_cast<GemmState*>(state)->RunQuantized(call, run);
}

}  // namespace

int64_t GemmScratchBytes() { return SharedScratch()->bytes(); }

void AddGemmCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kGemm] = {Run, Prepare};
  table[&kQuantizedGemm] = {RunQuantized, Prepare};
}

}  // namespace ridgeline::engine
