#include "engine/ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/cuda/sums.h"

namespace ridgeline::engine {
namespace {

constexpr int kUpdateThreads = 256;
constexpr int kVec = 8;  // elements per thread: 128 bytes of a bf16 weight with fp32 state
constexpr int64_t kChunk = kUpdateThreads * kVec;
constexpr int kBlocksPerMultiprocessor = 4;  // with three, an H200 reached 84% of a copy's speed
constexpr int64_t kChunksBeside = 8;         // of a block beside products, which ends after some microseconds

// The parameters that one launch updates, which the kernel gets by value.
struct AdamTensor {
  void* work;
  void* master;
  void* m;
  void* v;
  const void* grad;
  int64_t count;
  int64_t first_chunk;  // among the launch's chunks, which are distributed over its blocks

  __device__ bool aligned() const {
    return (reinterpret_cast<uintptr_t>(work) | reinterpret_cast<uintptr_t>(master) | reinterpret_cast<uintptr_t>(m) |
            reinterpret_cast<uintptr_t>(v) | reinterpret_cast<uintptr_t>(grad)) %
               16 ==
           0;
  }
};
constexpr int kMostTensors = 64;  // limited by the 4 KiB of arguments that every device accepts
struct AdamLaunch {
  AdamTensor tensors[kMostTensors];
  int count = 0;
  int64_t chunks = 0;
  AdamAttrs attrs;
  const float* scale = nullptr;
  const float* loss_scale = nullptr;
  const StepInputs* inputs = nullptr;
};
static_assert(sizeof(AdamLaunch) <= 4096);

// By squaring: about thirty multiplications, whose rounding vanishes when the result becomes fp32.
__device__ double Power(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) power *= exponent % 2 == 1 ? base : 1;
  return power;
}

// The constants of one step, computed in double as PyTorch does.
struct AdamStep {
  float gradient_scale;
  float keep;
  float decay;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float minus_step_size;
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};
__device__ AdamStep StepOf(const AdamLaunch& launch) {
  const AdamAttrs& attrs = launch.attrs;
  const double rate = launch.inputs->learning_rate;
  const int64_t skipped = launch.loss_scale == nullptr ? 0 : static_cast<int64_t>(launch.loss_scale[2]);
  const int64_t updates = launch.inputs->step - skipped;
  AdamStep step;
  step.gradient_scale = launch.scale == nullptr ? 1.0F : *launch.scale;
  step.keep = static_cast<float>(attrs.decoupled ? 1 - rate * attrs.weight_decay : 1);
  step.decay = static_cast<float>(attrs.decoupled ? 0 : attrs.weight_decay);
  step.one_minus_beta1 = static_cast<float>(1 - attrs.beta1);
  step.beta2 = static_cast<float>(attrs.beta2);
  step.one_minus_beta2 = static_cast<float>(1 - attrs.beta2);
  step.minus_step_size = static_cast<float>(-rate / (1 - Power(attrs.beta1, updates)));
  step.root_correction = static_cast<float>(1 / sqrt(1 - Power(attrs.beta2, updates)));
  step.epsilon = static_cast<float>(attrs.epsilon);
  return step;
}

// The CPU's operations, each rounded as there. A CPU with FMA gives the same bits.
__device__ void Update(const AdamStep& step, float& weight, float& m, float& v, float g) {
  g = __fmul_rn(g, step.gradient_scale);
  g = __fmaf_rn(weight, step.decay, g);
  weight = __fmul_rn(weight, step.keep);
  m = __fmaf_rn(step.one_minus_beta1, __fsub_rn(g, m), m);
  v = __fmaf_rn(__fmul_rn(step.one_minus_beta2, g), g, __fmul_rn(v, step.beta2));
  const float denominator = __fmaf_rn(__fsqrt_rn(v), step.root_correction, step.epsilon);
  weight = __fadd_rn(weight, __fdiv_rn(__fmul_rn(step.minus_step_size, m), denominator));
}

// kCount numbers, 16 bytes at a time if there are that many.
template <int kCount, typename T>
__device__ void Read(const T* from, float (&values)[kCount]) {
  constexpr int kPiece = kCount * sizeof(T) > 16 ? 16 / sizeof(T) : kCount;
  for (int i = 0; i < kCount; i += kPiece) {
    const Vec<T, kPiece> piece = LoadVec<T, kPiece>(from + i);
    for (int j = 0; j < kPiece; ++j) values[i + j] = ToFloat(piece.of[j]);
  }
}
template <int kCount, typename T>
__device__ void Write(T* to, const float (&values)[kCount]) {
  constexpr int kPiece = kCount * sizeof(T) > 16 ? 16 / sizeof(T) : kCount;
  for (int i = 0; i < kCount; i += kPiece) {
    Vec<T, kPiece> piece;
    for (int j = 0; j < kPiece; ++j) piece.of[j] = FromFloat<T>(values[i + j]);
    StoreVec(to + i, piece);
  }
}

// A master weight's bits, as SplitMaster. The upper half is the nearest bf16, ties away from zero, and the lower half
// is its difference from the weight.
__device__ uint32_t SplitBits(float master) {
  const uint32_t bits = __float_as_uint(master);
  if (std::isnan(master)) return (bits | 0x400000) & 0xffff0000;
  return ((bits + 0x8000) & 0xffff0000) | (bits & 0xffff);
}
// As JoinMaster.
__device__ float Joined(uint16_t work, uint16_t low) {
  return __uint_as_float((static_cast<uint32_t>(work) << 16) +
                         static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(low))));
}

// How a parameter's weights are stored: in the dtype that is multiplied, …
template <typename W>
struct PlainWeights {
  template <int kCount>
  static __device__ void ReadAt(const AdamTensor& t, int64_t at, float (&values)[kCount]) {
    Read(static_cast<const W*>(t.work) + at, values);
  }
  template <int kCount>
  static __device__ void WriteAt(const AdamTensor& t, int64_t at, const float (&values)[kCount]) {
    Write(static_cast<W*>(t.work) + at, values);
  }
};

// … as fp32 in two parts, …
struct SplitWeights {
  template <int kCount>
  static __device__ void ReadAt(const AdamTensor& t, int64_t at, float (&values)[kCount]) {
    const auto work = LoadVec<uint16_t, kCount>(static_cast<const uint16_t*>(t.work) + at);
    const auto low = LoadVec<uint16_t, kCount>(static_cast<const uint16_t*>(t.master) + at);
    for (int i = 0; i < kCount; ++i) values[i] = Joined(work.of[i], low.of[i]);
  }
  template <int kCount>
  static __device__ void WriteAt(const AdamTensor& t, int64_t at, const float (&values)[kCount]) {
    Vec<uint16_t, kCount> work;
    Vec<uint16_t, kCount> low;
    for (int i = 0; i < kCount; ++i) {
      const uint32_t bits = SplitBits(values[i]);
      work.of[i] = static_cast<uint16_t>(bits >> 16);
      low.of[i] = static_cast<uint16_t>(bits & 0xffff);
    }
    StoreVec(static_cast<uint16_t*>(t.work) + at, work);
    StoreVec(static_cast<uint16_t*>(t.master) + at, low);
  }
};

// … or as fp32, which is rounded to the multiplied dtype: to bf16 as SplitMaster does.
template <typename W>
struct RoundedWeights {
  template <int kCount>
  static __device__ void ReadAt(const AdamTensor& t, int64_t at, float (&values)[kCount]) {
    Read(static_cast<const float*>(t.master) + at, values);
  }
  template <int kCount>
  static __device__ void WriteAt(const AdamTensor& t, int64_t at, const float (&values)[kCount]) {
    Write(static_cast<float*>(t.master) + at, values);
    if constexpr (std::is_same_v<W, __nv_bfloat16>) {
      Vec<uint16_t, kCount> work;
      for (int i = 0; i < kCount; ++i) work.of[i] = static_cast<uint16_t>(SplitBits(values[i]) >> 16);
      StoreVec(static_cast<uint16_t*>(t.work) + at, work);
    } else {
      Write(static_cast<W*>(t.work) + at, values);
    }
  }
};

template <typename Weights, typename M, typename G, int kCount>
__device__ void UpdateAt(const AdamStep& step, const AdamTensor& t, int64_t at) {
  float weight[kCount];
  float m[kCount];
  float v[kCount];
  float g[kCount];
  Weights::ReadAt(t, at, weight);
  Read(static_cast<const M*>(t.m) + at, m);
  Read(static_cast<const M*>(t.v) + at, v);
  Read(static_cast<const G*>(t.grad) + at, g);
  for (int i = 0; i < kCount; ++i) Update(step, weight[i], m[i], v[i], g[i]);
  Weights::WriteAt(t, at, weight);
  Write(static_cast<M*>(t.m) + at, m);
  Write(static_cast<M*>(t.v) + at, v);
}

// As many blocks as fit take chunks in turns, so that few compute the step's constants.
template <typename Weights, typename M, typename G>
__global__ void __launch_bounds__(kUpdateThreads, kBlocksPerMultiprocessor) UpdateTensors(const AdamLaunch launch) {
  __shared__ AdamStep shared_step;
  if (threadIdx.x == 0) shared_step = StepOf(launch);
  __syncthreads();
  const AdamStep step = shared_step;
  if (step.gradient_scale < 0) return;
  int index = 0;
  for (int64_t chunk = blockIdx.x; chunk < launch.chunks; chunk += gridDim.x) {
    while (index + 1 < launch.count && launch.tensors[index + 1].first_chunk <= chunk) ++index;
    const AdamTensor& t = launch.tensors[index];
    const int64_t first = (chunk - t.first_chunk) * kChunk + threadIdx.x * kVec;
    if (t.aligned() && first + kVec <= t.count) {
      UpdateAt<Weights, M, G, kVec>(step, t, first);
    } else {
      const int64_t end = min(first + kVec, t.count);
      for (int64_t i = first; i < end; ++i) UpdateAt<Weights, M, G, 1>(step, t, i);
    }
  }
}

using AdamKernel = void (*)(AdamLaunch);

template <typename Weights>
AdamKernel KernelFor(DType moments, DType grad) {
  if (moments == DType::kF32) {
    return grad == DType::kF32 ? UpdateTensors<Weights, float, float> : UpdateTensors<Weights, float, __nv_bfloat16>;
  }
  return grad == DType::kF32 ? UpdateTensors<Weights, __nv_bfloat16, float>
                             : UpdateTensors<Weights, __nv_bfloat16, __nv_bfloat16>;
}
AdamKernel KernelFor(const AdamOperands& on) {
  const Tensor& master = on.writes.master;
  const DType work = on.writes.work.dtype;
  const DType m = on.writes.m.dtype;
  const DType grad = on.reads.grad.dtype;
  if (master.defined() && master.dtype == DType::kI16) return KernelFor<SplitWeights>(m, grad);
  if (master.defined()) {
    return work == DType::kBF16 ? KernelFor<RoundedWeights<__nv_bfloat16>>(m, grad)
                                : KernelFor<RoundedWeights<__half>>(m, grad);
  }
  if (work == DType::kF32) return KernelFor<PlainWeights<float>>(m, grad);
  return work == DType::kBF16 ? KernelFor<PlainWeights<__nv_bfloat16>>(m, grad)
                              : KernelFor<PlainWeights<__half>>(m, grad);
}

// Whether one launch can update both.
bool Joins(const OpCall& a, const OpCall& b) {
  const AdamOperands on_a = a.operands(kAdam);
  const AdamOperands on_b = b.operands(kAdam);
  return KernelFor(on_a) == KernelFor(on_b) && a.attrs(kAdam) == b.attrs(kAdam) &&
         on_a.reads.scale.storage == on_b.reads.scale.storage && on_a.reads.scale.offset == on_b.reads.scale.offset &&
         on_a.reads.loss_scale.storage == on_b.reads.loss_scale.storage;
}

// Reads weights, m, v and gradient and writes all but the last. For a bf16 weight with an fp32 master in two parts, and
// fp32 moments and gradient: 28 bytes per parameter, 2^28 of them 7.5 GB, 1.75 ms on an H200. In separate launches, the
// many small parameters (norms, biases) would take about 4 us each, whatever their size.
void AdamsCuda(std::span<const OpCall> calls, const CudaRun& run) {
  const auto data = [&](const Tensor& t) -> void* {
    return t.defined() ? run.slab + run.offsets[t.storage] + t.offset * SizeOf(t.dtype) : nullptr;
  };
  for (size_t first = 0; first < calls.size();) {
    const AdamOperands on_first = calls[first].operands(kAdam);
    AdamLaunch launch;
    launch.attrs = calls[first].attrs(kAdam);
    launch.scale = on_first.reads.scale.defined() ? run.Data<float>(on_first.reads.scale) : nullptr;
    launch.loss_scale = on_first.reads.loss_scale.defined() ? run.Data<float>(on_first.reads.loss_scale) : nullptr;
    launch.inputs = run.Inputs(on_first.reads.inputs);
    size_t next = first;
    do {
      const AdamOperands on = calls[next].operands(kAdam);
      const int64_t count = on.writes.work.elements();
      launch.tensors[launch.count] = {data(on.writes.work), data(on.writes.master), data(on.writes.m),
                                      data(on.writes.v),    data(on.reads.grad),    count,
                                      launch.chunks};
      launch.chunks += (count + kChunk - 1) / kChunk;
      ++launch.count;
      ++next;
    } while (next < calls.size() && launch.count < kMostTensors && Joins(calls[first], calls[next]));
    const int64_t most = run.beside ? (launch.chunks + kChunksBeside - 1) / kChunksBeside
                                    : int64_t{run.multiprocessors} * kBlocksPerMultiprocessor;
    const int64_t blocks = std::min(launch.chunks, most);
    Launch(run.stream, {{static_cast<unsigned>(blocks)}, {kUpdateThreads}}, KernelFor(on_first), launch);
    first = next;
  }
}

void AdamCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) { AdamsCuda({&call, 1}, run); }

// Reads x once, as SumLoss does.
void SquaredSumCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const SquaredSumOperands on = call.operands(kSquaredSum);
  AddElementsCuda(run, on.reads.x, on.scratch.parts, true, 1, run.Data<float>(on.writes.sum));
}

// The device decides and stores whether to skip a step. The host neither knows nor waits.
__global__ void Clip(const float* sum, float clip, float* norm, float* scale) {
  *norm = __fsqrt_rn(*sum);
  const float wanted = __fdiv_rn(clip, __fadd_rn(*norm, 1e-6F));
  *scale = wanted > 1 ? 1 : wanted;  // NaN stays
}
__global__ void ScaleLoss(const float* sum, float clip, float* state, float* norm, float* scale) {
  const float factor = state[0];
  const float unscaled = __fdiv_rn(__fsqrt_rn(*sum), factor);
  *norm = unscaled;
  if (!std::isfinite(unscaled)) {
    *scale = -1;
    state[0] = factor / 2;
    state[1] = 0;
    state[2] += 1;
    return;
  }
  const float clipped = clip > 0 ? fminf(1, __fdiv_rn(clip, __fadd_rn(unscaled, 1e-6F))) : 1;
  *scale = __fdiv_rn(clipped, factor);
  state[1] += 1;
  if (state[1] == kLossScaleWindow) {
    state[0] = factor * 2;
    state[1] = 0;
  }
}

void ClipScaleCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const ClipScaleOperands on = call.operands(kClipScale);
  Launch(run.stream, {{1}, {1}}, Clip, run.Data<float>(on.reads.sum), call.attrs(kClipScale).clip,
         run.Data<float>(on.writes.norm), run.Data<float>(on.writes.scale));
}

void LossScaleCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const LossScaleOperands on = call.operands(kLossScale);
  Launch(run.stream, {{1}, {1}}, ScaleLoss, run.Data<float>(on.reads.sum), call.attrs(kLossScale).clip,
         run.Data<float>(on.writes.state), run.Data<float>(on.writes.norm), run.Data<float>(on.writes.scale));
}

}  // namespace

void AddOptimizerCuda(CudaKernelTable& table) {
  table[&kAdam] = {.run = &AdamCuda, .run_together = &AdamsCuda, .beside = true};
  table[&kSquaredSum] = {.run = &SquaredSumCuda, .beside = true};
  table[&kClipScale].run = &ClipScaleCuda;
  table[&kLossScale].run = &LossScaleCuda;
}

}  // namespace ridgeline::engine
