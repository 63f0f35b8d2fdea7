#include "engine/ops/elementwise.h"

#include <algorithm>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/activation.cuh"
#include "engine/ops/cuda/add_up_parts.h"
#include "engine/ops/cuda/dropout.cuh"
#include "engine/ops/cuda/floats.cuh"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/cuda/vectors.h"

namespace ridgeline::engine {
namespace {

constexpr int kMapThreads = 256;

// out[i] = op(i, in[i]…) for n elements, one vector per thread. Reads or writes every operand once. (8192, 4096) bf16:
// 67 MB, 16 us, per operand.
template <typename Op, int kVec, typename T, typename... In>
__global__ void __launch_bounds__(kMapThreads) Map(Op op, int64_t n, T* out, const In*... in) {
  const int64_t i = (int64_t{blockIdx.x} * kMapThreads + threadIdx.x) * kVec;
  if (i < n) StoreFirst(op.template operator()<kVec>(i, LoadFirst<kVec>(in + i, n - i)...), out + i, n - i);
}

template <typename T, typename>
using Always = T;

// Op has a template <int kVec> Floats<kVec> operator()(int64_t i, Floats<kVec>…). All operands have type T.
template <typename T, typename Op, typename... In>
void LaunchMap(const CudaRun& run, const Op& op, const Tensor& out, const In&... in) {
  const int64_t n = out.elements();
  WithVector<T>(AreWholeVectors(0, {out, in...}), [&](auto vec) {
    constexpr int kVec = decltype(vec)::value;
    Launch(run.stream, {{BlocksFor(n, int64_t{kMapThreads} * kVec)}, {kMapThreads}}, Map<Op, kVec, T, Always<T, In>...>,
           op, n, run.Data<T>(out), run.Data<T>(in)...);
  });
}

struct GeluOp {
  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t /*i*/, const Floats<kVec>& x) const {
    return ForEach([](float v) { return GeluOf(v); }, x);
  }
};
struct GeluBackwardOp {
  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t /*i*/, const Floats<kVec>& dy, const Floats<kVec>& x) const {
    return ForEach([](float d, float v) { return GeluGradient(d, v); }, dy, x);
  }
};
struct CopyOp {
  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t /*i*/, const Floats<kVec>& x) const {
    return x;
  }
};
struct FillOp {
  float value;
  const float* factor;

  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t /*i*/) const {
    const float filled = factor == nullptr ? value : value * *factor;
    Floats<kVec> out;
    for (int j = 0; j < kVec; ++j) out.of[j] = filled;
    return out;
  }
};

// As many bits as T represents exactly, so that no rounding reaches 1.
template <typename T>
struct UniformOp {
  Random random;

  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t i) const {
    constexpr int kBits = sizeof(T) == 2 ? 8 : 24;
    uint32_t bits[kVec];
    random.Fill(bits, i);
    Floats<kVec> out;
    for (int j = 0; j < kVec; ++j) {
      out.of[j] = static_cast<float>(bits[j] >> (32 - kBits)) * (1.0F / static_cast<float>(1 << kBits));
    }
    return out;
  }
};

void GeluCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kGelu);
  WithCudaType(on.reads.x.dtype, [&](auto t) { LaunchMap<decltype(t)>(run, GeluOp(), on.writes.y, on.reads.x); });
}
void GeluBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kGeluBackward);
  WithCudaType(on.reads.x.dtype,
               [&](auto t) { LaunchMap<decltype(t)>(run, GeluBackwardOp(), on.writes.dx, on.reads.dy, on.reads.x); });
}
void DropoutAddCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kDropoutAdd);
  const DropoutAttrs& attrs = call.attrs(kDropoutAdd);
  WithCudaType(on.reads.x.dtype, [&](auto t) {
    using T = decltype(t);
    if (attrs.p == 0) return LaunchMap<T>(run, AddOp(), on.writes.out, on.reads.x, on.reads.residual);
    LaunchMap<T>(run, MakeDropout(run.Inputs(on.reads.inputs), attrs), on.writes.out, on.reads.x, on.reads.residual);
  });
}
void DropoutBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kDropoutBackward);
  const DropoutAttrs& attrs = call.attrs(kDropoutBackward);
  WithCudaType(on.reads.dy.dtype, [&](auto t) {
    using T = decltype(t);
    if (attrs.p == 0) return LaunchMap<T>(run, CopyOp(), on.writes.dx, on.reads.dy);
    LaunchMap<T>(run, MakeDropout(run.Inputs(on.reads.inputs), attrs), on.writes.dx, on.reads.dy);
  });
}
void FillCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kFill);
  const FillOp op = {static_cast<float>(call.attrs(kFill).value),
                     on.reads.factor.defined() ? run.Data<float>(on.reads.factor) : nullptr};
  WithCudaType(on.writes.x.dtype, [&](auto t) { LaunchMap<decltype(t)>(run, op, on.writes.x); });
}
void FillUniformCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kFillUniform);
  const StreamAttrs& attrs = call.attrs(kFillUniform);
  const Random random = {run.Inputs(on.reads.inputs), attrs.stream, attrs.first};
  WithCudaType(on.writes.x.dtype, [&](auto t) {
    using T = decltype(t);
    LaunchMap<T>(run, UniformOp<T>{random}, on.writes.x);
  });
}

// A thread has up to four cosines and sines, and rotates heads of a token with them. It loads kTurned of these at a
// time, 64 bytes. threadIdx.x counts such pieces of half a head, threadIdx.y heads, threadIdx.z tokens. x is read and
// written once. The table stays in the L2 cache. Queries of (8192, 4096) bf16: 134 MB, 31 us. With one token per block
// and one head at a time, an H200 took half as long again.
constexpr int kMostCosines = 4;
constexpr int64_t kMostTokens = 64;  // tokens of a block; CUDA limits the third dimension to this
template <typename T>
constexpr int kTurned = sizeof(T) == 2 ? 4 : 2;
template <typename T, int kVec>
__global__ void __launch_bounds__(kMapThreads) Turn(T* x, int64_t row_stride, unsigned tokens, int heads, int half,
                                                    const float* cos_sin, unsigned seq, float sign) {
  const unsigned token = blockIdx.x * blockDim.z + threadIdx.z;
  if (token >= tokens) return;
  const float* cosines = cos_sin + int64_t{token % seq} * 2 * half;
  T* row = x + token * row_stride;
  const auto apart = static_cast<int>(blockDim.y);
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < half; i += static_cast<int>(blockDim.x) * kVec) {
    const auto cos = Load<kVec>(cosines + i);
    const auto sin = ForEach([&](float s) { return sign * s; }, Load<kVec>(cosines + half + i));
    for (int head = static_cast<int>(threadIdx.y); head < heads; head += kTurned<T> * apart) {
      T* first = row + int64_t{head} * 2 * half + i;
      const int64_t next = int64_t{apart} * 2 * half;
      Vec<T, kVec> x0[kTurned<T>];
      Vec<T, kVec> x1[kTurned<T>];
      for (int h = 0; h < kTurned<T>; ++h) {
        if (head + h * apart >= heads) break;
        x0[h] = LoadVec<T, kVec>(first + h * next);
        x1[h] = LoadVec<T, kVec>(first + h * next + half);
      }
      for (int h = 0; h < kTurned<T>; ++h) {
        if (head + h * apart >= heads) break;
        for (int j = 0; j < kVec; ++j) {
          const float a = ToFloat(x0[h].of[j]);
          const float b = ToFloat(x1[h].of[j]);
          x0[h].of[j] = FromFloat<T>(fmaf(-b, sin.of[j], a * cos.of[j]));
          x1[h].of[j] = FromFloat<T>(fmaf(a, sin.of[j], b * cos.of[j]));
        }
        StoreVec(first + h * next, x0[h]);
        StoreVec(first + h * next + half, x1[h]);
      }
    }
  }
}
void RopeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kRope);
  const RopeAttrs& attrs = call.attrs(kRope);
  const Tensor& x = on.writes.x;
  const int64_t half = attrs.head_dim / 2;
  const int64_t heads = x.cols / attrs.head_dim;
  WithCudaType(x.dtype, [&](auto t) {
    using T = decltype(t);
    WithVector<T>(AreWholeVectors(half, {x, on.reads.cos_sin}), [&](auto vec) {
      constexpr int kVec = std::min(decltype(vec)::value, kMostCosines);
      const int64_t lanes = std::min<int64_t>((half + kVec - 1) / kVec, kMapThreads);
      const int64_t down = std::min((heads + kTurned<T> - 1) / kTurned<T>, kMapThreads / lanes);
      const int64_t tokens = std::min(kMapThreads / (lanes * down), kMostTokens);
      Launch(run.stream,
             {{BlocksFor(x.rows, tokens)},
              {static_cast<unsigned>(lanes), static_cast<unsigned>(down), static_cast<unsigned>(tokens)}},
             Turn<T, kVec>, run.Data<T>(x), x.row_stride, x.rows, heads, half, run.Data<float>(on.reads.cos_sin),
             attrs.seq, attrs.inverse ? -1.0F : 1.0F);
    });
  });
}

// One block per token. gate_up is read once and y is written once. (8192, 14336) bf16: 705 MB, 164 us.
template <typename T, int kVec>
__global__ void __launch_bounds__(kMapThreads) Gate(const T* gate_up, T* y, int64_t ffn) {
  const T* gates = gate_up + blockIdx.x * 2 * ffn;
  const T* ups = gates + ffn;
  T* to = y + blockIdx.x * ffn;
  for (int64_t i = int64_t{threadIdx.x} * kVec; i < ffn; i += int64_t{blockDim.x} * kVec) {
    Store(ForEach([](float gate, float up) { return SwiGluOf(gate, up); }, Load<kVec>(gates + i), Load<kVec>(ups + i)),
          to + i);
  }
}
void SwiGluCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kSwiGlu);
  const Tensor& y = on.writes.y;
  WithCudaType(y.dtype, [&](auto t) {
    using T = decltype(t);
    WithVector<T>(AreWholeVectors(y.cols, {on.reads.gate_up, y}), [&](auto vec) {
      Launch(run.stream, {{BlocksFor(y.rows, 1)}, {kMapThreads}}, Gate<T, decltype(vec)::value>,
             run.Data<T>(on.reads.gate_up), run.Data<T>(y), y.cols);
    });
  });
}

// One block per token. dy and gate_up are read once. d_gate_up, which may be gate_up, is written once. (8192, 14336)
// bf16: 1.17 GB, 273 us.
template <typename T, int kVec>
__global__ void __launch_bounds__(kMapThreads) GateBackward(const T* dy, const T* gate_up, T* d_gate_up, int64_t ffn) {
  const int64_t row = blockIdx.x * 2 * ffn;
  for (int64_t i = int64_t{threadIdx.x} * kVec; i < ffn; i += int64_t{blockDim.x} * kVec) {
    const auto d = Load<kVec>(dy + blockIdx.x * ffn + i);
    const auto gate = Load<kVec>(gate_up + row + i);
    const auto up = Load<kVec>(gate_up + row + ffn + i);
    Floats<kVec> d_gate;
    Floats<kVec> d_up;
    for (int j = 0; j < kVec; ++j) SwiGluGradient(d.of[j], gate.of[j], up.of[j], d_gate.of[j], d_up.of[j]);
    Store(d_gate, d_gate_up + row + i);
    Store(d_up, d_gate_up + row + ffn + i);
  }
}
void SwiGluBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kSwiGluBackward);
  const Tensor& dy = on.reads.dy;
  WithCudaType(dy.dtype, [&](auto t) {
    using T = decltype(t);
    WithVector<T>(AreWholeVectors(dy.cols, {dy, on.reads.gate_up, on.writes.d_gate_up}), [&](auto vec) {
      Launch(run.stream, {{BlocksFor(dy.rows, 1)}, {kMapThreads}}, GateBackward<T, decltype(vec)::value>,
             run.Data<T>(dy), run.Data<T>(on.reads.gate_up), run.Data<T>(on.writes.d_gate_up), dy.cols);
    });
  });
}

// A block sums a warp's vectors of columns over the rows of a part. Warp w has rows w, w + kMapWarps, …, and the warps'
// sums are added in order. x is read once. (8192, 4096) bf16: 67 MB, 16 us.
constexpr int kMapWarps = kMapThreads / kWarp;
template <typename T, int kVec>
__global__ void __launch_bounds__(kMapThreads)
    SumRows(const T* x, int64_t row_stride, int64_t rows, int64_t cols, float* parts, int64_t stride) {
  __shared__ Floats<kVec> sums[kMapWarps][kWarp];
  const auto lane = threadIdx.x;
  const auto warp = threadIdx.y;
  const int64_t c = (int64_t{blockIdx.x} * kWarp + lane) * kVec;
  const int64_t last = rows * (blockIdx.y + int64_t{1}) / gridDim.y;
  Floats<kVec> sum{};
  if (c < cols) {
    for (int64_t row = rows * blockIdx.y / gridDim.y + warp; row < last; row += kMapWarps) {
      const auto values = Load<kVec>(x + row * row_stride + c);
      for (int j = 0; j < kVec; ++j) sum.of[j] += values.of[j];
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || c >= cols) return;
  for (int w = 1; w < kMapWarps; ++w) {
    for (int j = 0; j < kVec; ++j) sum.of[j] += sums[w][lane].of[j];
  }
  for (int j = 0; j < kVec; ++j) parts[blockIdx.y * stride + c + j] = sum.of[j];
}
void ColumnSumCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kColumnSum);
  const Tensor& x = on.reads.x;
  const Tensor& parts = on.scratch.parts;
  auto* part = run.Data<float>(parts);
  WithCudaType(x.dtype, [&](auto t) {
    using T = decltype(t);
    WithVector<T>(AreWholeVectors(x.cols, {x}), [&](auto vec) {
      constexpr int kVec = decltype(vec)::value;
      Launch(run.stream, {{BlocksFor(x.cols, int64_t{kWarp} * kVec), BlocksFor(parts.rows, 1)}, {kWarp, kMapWarps}},
             SumRows<T, kVec>, run.Data<T>(x), x.row_stride, x.rows, x.cols, part, parts.cols);
    });
  });
  AddUpParts(run, part, parts.rows, parts.cols, on.writes.sum, call.attrs(kColumnSum).accumulate);
}

}  // namespace

void AddElementwiseCuda(CudaKernelTable& table) {
  table[&kRope].run = &RopeCuda;
  table[&kSwiGlu].run = &SwiGluCuda;
  table[&kSwiGluBackward].run = &SwiGluBackwardCuda;
  table[&kGelu].run = &GeluCuda;
  table[&kGeluBackward].run = &GeluBackwardCuda;
  table[&kDropoutAdd].run = &DropoutAddCuda;
  table[&kDropoutBackward].run = &DropoutBackwardCuda;
  table[&kFill].run = &FillCuda;
  table[&kFillUniform].run = &FillUniformCuda;
  table[&kColumnSum] = {.run = &ColumnSumCuda, .beside = true};
}

}  // namespace ridgeline::engine
