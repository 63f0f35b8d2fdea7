#include "engine/ops/norm.h"

#include <algorithm>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/registers.cuh"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/add_up_parts.h"
#include "engine/ops/cuda/codes.cuh"
#include "engine/ops/cuda/dropout.cuh"
#include "engine/ops/cuda/floats.cuh"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/cuda/vectors.h"
#include "engine/ops/fused_quantize.h"

namespace ridgeline {
namespace {

// Both norms: kCenter is what LayerNorm has more, the mean and the bias.
//
// A block has a row, and each of its threads the vectors threadIdx.x, + blockDim.x, … of it. The first few stay in
// registers between the passes over the row; what is beyond them, in very long rows, is read from the cache again.

unsigned WholeWarps(int64_t threads, int64_t most) {
  return static_cast<unsigned>(std::min((threads + kWarp - 1) / kWarp * kWarp, most));
}

template <typename T>
struct ForwardArgs {
  const T* x = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  int64_t cols = 0;
  float eps = 0;
  // Of those that write codes in place of y.
  uint8_t* codes = nullptr;
  float* tensor_scale = nullptr;
  const float* scale = nullptr;
  uint32_t* amax = nullptr;
  // Of those that make x first.
  const T* branch = nullptr;
  const T* residual = nullptr;
  T* sum = nullptr;  // x
  DropoutOp dropout = {};
};

// A vector of x from element `at` on, made and stored: a few elements at a time, since dropout takes many registers.
template <int kVec>
constexpr int kMadeAtOnce = std::min(kVec, 4);
template <typename T, int kVec>
__device__ __forceinline__ Vec<T, kVec> MakeVec(const ForwardArgs<T>& a, int64_t at) {
  constexpr int kEach = kMadeAtOnce<kVec>;
  const auto branch = LoadVec<T, kVec>(a.branch + at);
  const auto residual = LoadVec<T, kVec>(a.residual + at);
  Vec<T, kVec> x;
  Unrolled<kVec / kEach>([&](auto part) {
    constexpr int kFirst = decltype(part)() * kEach;
    Floats<kEach> added;
    Floats<kEach> to;
    for (int i = 0; i < kEach; ++i) {
      added.of[i] = ToFloat(branch.of[kFirst + i]);
      to.of[i] = ToFloat(residual.of[kFirst + i]);
    }
    const bool drops = a.dropout.random.inputs != nullptr;
    const Floats<kEach> sum = drops ? a.dropout(at + kFirst, added, to) : AddOp()(at, added, to);
    for (int i = 0; i < kEach; ++i) x.of[kFirst + i] = FromFloat<T>(sum.of[i]);
  });
  StoreVec(a.sum + at, x);
  return x;
}

// The codes of a vector's numbers, side by side.
template <typename T, int kVec>
__device__ __forceinline__ void StoreVecCodes(const Vec<T, kVec>& vector, float scale, uint8_t* to) {
  const auto value = [&](int i) { return __fmul_rn(ToFloat(vector.of[i]), scale); };
  if constexpr (kVec % 4 == 0) {
    Vec<uint32_t, kVec / 4> words;
    Unrolled<kVec / 4>(
        [&](auto w) { words.of[w] = NearestCodes<Format::kE4M3>([&](int i) { return value(4 * w + i); }); });
    StoreVec(reinterpret_cast<uint32_t*>(to), words);
  } else {
    for (int i = 0; i < kVec; ++i) to[i] = Encode(Format::kE4M3, value(i));
  }
}

constexpr int kForwardThreads = 1024;
constexpr int kForwardHeld = 2;  // vectors a thread

// x is read once and y written once. (8192, 4096) bf16: 134 MB, 31 us; codes in place of y: 101 MB, 23 us. Where x is
// made first (kSum), its branch and its residual are read once and it is written once: 134 MB, 31 us more than where
// it is read, in place of the 201 MB that the sum takes alone.
template <bool kCenter, bool kSum, bool kCodes, typename T, int kVec>
__global__ void __launch_bounds__(kForwardThreads, kBlocksAtLeast) Forward(ForwardArgs<T> a) {
  using Vector = Vec<T, kVec>;
  __shared__ float scratch[2][kWarp];
  const int64_t row = blockIdx.x;
  const int64_t vectors = a.cols / kVec;
  const T* x = a.x + row * a.cols;
  T* y = nullptr;
  if constexpr (!kCodes) y = a.y + row * a.cols;
  Vector held[kForwardHeld];
  if constexpr (kSum) {
    const int64_t first = row * a.cols;
    Unrolled<kForwardHeld>([&](auto i) {
      const auto v = threadIdx.x + i * blockDim.x;
      if (v < vectors) held[i] = MakeVec<T, kVec>(a, first + int64_t{v} * kVec);
    });
    for (int64_t v = threadIdx.x + int64_t{kForwardHeld} * blockDim.x; v < vectors; v += blockDim.x) {
      MakeVec<T, kVec>(a, first + v * kVec);
    }
  } else {
    for (int i = 0; i < kForwardHeld; ++i) {
      const auto v = threadIdx.x + i * blockDim.x;
      if (v < vectors) held[i] = LoadVec<T, kVec>(x + v * kVec);
    }
  }
  // fn(column, vector) for each of this thread's.
  const auto for_each = [&](const auto& fn) {
    const auto of_held = [&](auto i) {
      const auto v = threadIdx.x + i * blockDim.x;
      if (v < vectors) fn(int64_t{v} * kVec, held[i]);
    };
    if constexpr (kCodes) {
      Unrolled<kForwardHeld>(of_held);  // which nvcc leaves a loop where codes make it long; others so would spill
    } else {
      for (int i = 0; i < kForwardHeld; ++i) of_held(i);
    }
    for (int64_t v = threadIdx.x + int64_t{kForwardHeld} * blockDim.x; v < vectors; v += blockDim.x) {
      fn(v * kVec, LoadVec<T, kVec>(x + v * kVec));
    }
  };

  float mean = 0;
  if constexpr (kCenter) {
    float sum = 0;
    for_each([&](int64_t, const Vector& vector) {
      for (int i = 0; i < kVec; ++i) sum += ToFloat(vector.of[i]);
    });
    mean = BlockSum(sum, scratch[0]) / static_cast<float>(a.cols);
  }
  float squares = 0;
  for_each([&](int64_t, const Vector& vector) {
    for (int i = 0; i < kVec; ++i) {
      const float off = ToFloat(vector.of[i]) - mean;
      squares = fmaf(off, off, squares);
    }
  });
  const float rstd = 1.0F / sqrtf(BlockSum(squares, scratch[1]) / static_cast<float>(a.cols) + a.eps);
  if (threadIdx.x == 0) {
    if constexpr (kCenter) a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  uint32_t largest = 0;
  float scale = 0;
  if constexpr (kCodes) scale = *a.scale;
  for_each([&](int64_t c, const Vector& vector) {
    const auto weight = LoadVec<T, kVec>(a.weight + c);
    Vector bias{};
    if constexpr (kCenter) bias = LoadVec<T, kVec>(a.bias + c);
    Vector out;
    for (int i = 0; i < kVec; ++i) {
      const float scaled = (ToFloat(vector.of[i]) - mean) * rstd * ToFloat(weight.of[i]);
      out.of[i] = FromFloat<T>(kCenter ? scaled + ToFloat(bias.of[i]) : scaled);
    }
    if constexpr (kCodes) {
      for (int i = 0; i < kVec; ++i) largest = max(largest, Magnitude(ToFloat(out.of[i])));
      StoreVecCodes(out, scale, a.codes + row * a.cols + c);
    } else {
      StoreVec(y + c, out);
    }
  });
  if constexpr (kCodes) {
    __shared__ uint32_t amaxes[kWarp];
    if (row == 0 && threadIdx.x == 0) *a.tensor_scale = __fdiv_rn(1.0F, scale);
    RaiseAmax(a.amax, largest, amaxes, static_cast<int>(blockDim.x) / kWarp);
  }
}

// Any of the norms forward: which, and what it does beside, its operands say.
template <const auto& kOp, bool kCenter>
void NormCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kOp);
  constexpr bool kSum = requires { on.reads.residual; };
  constexpr bool kCodes = requires { on.writes.y.codes; };
  Tensor x;
  if constexpr (kSum) {
    x = on.writes.x;
  } else {
    x = on.reads.x;
  }
  // Sums are in the order of vectors, which are the same whatever is done beside: codes begin a storage, as do a branch
  // and a residual.
  bool whole = AreWholeVectors(x.cols, {x, on.reads.weight});
  if constexpr (kCenter) whole = whole && AreWholeVectors(x.cols, {on.reads.bias});
  if constexpr (kSum) whole = whole && AreWholeVectors(x.cols, {on.reads.branch, on.reads.residual});
  if constexpr (!kCodes) whole = whole && AreWholeVectors(x.cols, {on.writes.y});
  const auto launch = [&](auto t) {
    using T = decltype(t);
    ForwardArgs<T> args;
    args.x = run.Data<T>(x);
    args.weight = run.Data<T>(on.reads.weight);
    args.rstd = run.Data<float>(on.writes.rstd);
    args.cols = x.cols;
    args.eps = static_cast<float>(call.attrs(kOp).eps);
    if constexpr (kCenter) {
      args.bias = run.Data<T>(on.reads.bias);
      args.mean = run.Data<float>(on.writes.mean);
    }
    if constexpr (kCodes) {
      args.codes = run.Data<uint8_t>(on.writes.y.codes);
      args.tensor_scale = run.Data<float>(on.writes.y.tensor_scale);
      args.scale = run.Data<float>(on.reads.delayed_scale);
      args.amax = run.Data<uint32_t>(on.writes.delayed_amax);
    } else {
      args.y = run.Data<T>(on.writes.y);
    }
    if constexpr (kSum) {
      const DropoutAttrs& dropout = call.attrs(kOp).dropout;
      args.branch = run.Data<T>(on.reads.branch);
      args.residual = run.Data<T>(on.reads.residual);
      args.sum = run.Data<T>(x);
      if (dropout.p > 0) args.dropout = MakeDropout(run.Inputs(on.reads.inputs), dropout);
    }
    WithVector<T>(whole, [&](auto vec) {
      constexpr int kVec = decltype(vec)::value;
      constexpr int64_t kEach = int64_t{kVec} * kForwardHeld;
      const unsigned threads = WholeWarps((x.cols + kEach - 1) / kEach, kForwardThreads);
      Launch(run.stream, {{BlocksFor(x.rows, 1)}, {threads}}, Forward<kCenter, kSum, kCodes, T, kVec>, args);
    });
  };
  if constexpr (kCodes) {
    launch(__nv_bfloat16{});
  } else {
    WithCudaType(x.dtype, launch);
  }
}

template <typename T>
struct BackwardArgs {
  const T* dy;
  const T* x;
  const T* weight;
  const float* mean;
  const float* rstd;
  T* dx;
  float* parts;  // a row of `stride` for each block's dweight, then one for each block's dbias
  int64_t rows;
  int64_t cols;
  int64_t stride;
  bool overwrite_dx;
};

constexpr int kBackwardThreads = 512;

// As BlockSum, of several numbers at once.
template <int kCount>
__device__ void BlockSums(float (&values)[kCount], float (*scratch)[kWarp]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (int k = 0; k < kCount; ++k) {
    values[k] = WarpSum(values[k]);
    if (lane == 0) scratch[k][warp] = values[k];
  }
  __syncthreads();
  for (int k = 0; k < kCount; ++k) values[k] = WarpSum(lane < warps ? scratch[k][lane] : 0.0F);
}

// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)); dweight = sum of dy n, dbias of
// dy. A block has the rows of a part, and adds up its part's sums in their order: those of kHeld vectors a thread in
// registers, others in the part itself. Rows of no more are themselves held, several at a time (kRows) so that enough
// loads are under way; longer ones are read from the cache again. dy, x and dx are read once and dx is written once.
// (8192, 4096) bf16: 268 MB, 62 us.
//
// There are 64 parts at most (RowParts), so that every device adds up rows in one order and plans one scratch: fewer
// than an H200 has multiprocessors, 132. Of that shape each has 73 KB on their way, 4.7 MB in all, where 4.3 TB/s
// take 2.6 MB if memory answers in 600 ns; whether 64 reach that, no GPU has shown.
template <bool kCenter, typename T, int kVec, int kRows, int kHeld>
__global__ void __launch_bounds__(kBackwardThreads, kBlocksAtLeast) Backward(BackwardArgs<T> a) {
  using Vector = Vec<T, kVec>;
  constexpr bool kHeldWhole = kRows > 1;
  __shared__ float scratch[2][2 * kRows][kWarp];  // take turns: one barrier for kRows is enough
  const int64_t first = a.rows * blockIdx.x / gridDim.x;
  const int64_t last = a.rows * (blockIdx.x + int64_t{1}) / gridDim.x;
  const int64_t vectors = a.cols / kVec;
  const auto scale = 1.0F / static_cast<float>(a.cols);
  float* dweight_part = a.parts + blockIdx.x * a.stride;
  float* dbias_part = a.parts + (gridDim.x + int64_t{blockIdx.x}) * a.stride;
  // fn(column) for the vectors that are not held: few rows have them, and unrolled they take registers from all.
  const auto for_others = [&](const auto& fn) {
    if constexpr (!kHeldWhole) {
#ifdef __CUDACC__
#pragma unroll 1
#endif
      for (int64_t v = threadIdx.x + int64_t{kHeld} * blockDim.x; v < vectors; v += blockDim.x) fn(v * kVec);
    }
  };

  Vector weight[kHeld];
  float dweight[kHeld][kVec] = {};
  float dbias[kHeld][kVec] = {};
  if constexpr (kHeldWhole) {
    Unrolled<kHeld>([&](auto h) {
      const auto v = threadIdx.x + h * blockDim.x;
      weight[h] = v < vectors ? LoadVec<T, kVec>(a.weight + v * kVec) : Vector{};
    });
  }
  for_others([&](int64_t c) {
    for (int i = 0; i < kVec; ++i) {
      dweight_part[c + i] = 0;
      if constexpr (kCenter) dbias_part[c + i] = 0;
    }
  });

  int turn = 0;
  for (int64_t row = first; row < last; row += kRows, turn ^= 1) {
    float mean[kRows];
    float rstd[kRows];
    Vector dy[kRows][kHeld];
    Vector x[kRows][kHeld];
    Vector old[kRows][kHeld];
    Unrolled<kRows>([&](auto r) {
      const bool inside = row + r < last;  // the sums of rows beyond are of zeros
      mean[r] = kCenter && inside ? a.mean[row + r] : 0.0F;
      rstd[r] = inside ? a.rstd[row + r] : 0.0F;
      Unrolled<kHeld>([&](auto h) {
        const auto v = threadIdx.x + h * blockDim.x;
        const int64_t at = (row + r) * a.cols + int64_t{v} * kVec;
        const bool there = inside && v < vectors;
        dy[r][h] = there ? LoadVec<T, kVec>(a.dy + at) : Vector{};
        x[r][h] = there ? LoadVec<T, kVec>(a.x + at) : Vector{};
        old[r][h] = there && !a.overwrite_dx ? LoadVec<T, kVec>(a.dx + at) : Vector{};
        if constexpr (!kHeldWhole) weight[h] = there ? LoadVec<T, kVec>(a.weight + v * kVec) : Vector{};
      });
    });

    float sums[kCenter ? 2 * kRows : kRows] = {};  // of g n, then of g
    const auto add = [&](auto r, const Vector& d, const Vector& from, const Vector& w) {
      for (int i = 0; i < kVec; ++i) {
        const float g = ToFloat(d.of[i]) * ToFloat(w.of[i]);
        sums[r] = fmaf(g, (ToFloat(from.of[i]) - mean[r]) * rstd[r], sums[r]);
        if constexpr (kCenter) sums[kRows + r] += g;
      }
    };
    Unrolled<kRows>([&](auto r) { Unrolled<kHeld>([&](auto h) { add(r, dy[r][h], x[r][h], weight[h]); }); });
    for_others([&](int64_t c) {
      const int64_t at = row * a.cols + c;
      add(Constant<0>{}, LoadVec<T, kVec>(a.dy + at), LoadVec<T, kVec>(a.x + at), LoadVec<T, kVec>(a.weight + c));
    });
    BlockSums(sums, scratch[turn]);

    // Adds to the sums over rows, and gives dx.
    const auto gradient = [&](auto r, const Vector& d, const Vector& from, const Vector& w, const Vector& add_to,
                              float* weight_sums, float* bias_sums) {
      const float gn_mean = sums[r] * scale;
      float g_mean = 0;
      if constexpr (kCenter) g_mean = sums[kRows + r] * scale;
      Vector out;
      for (int i = 0; i < kVec; ++i) {
        const float dyi = ToFloat(d.of[i]);
        const float n = (ToFloat(from.of[i]) - mean[r]) * rstd[r];
        weight_sums[i] = fmaf(dyi, n, weight_sums[i]);
        if constexpr (kCenter) bias_sums[i] += dyi;
        const float dxi = rstd[r] * fmaf(-n, gn_mean, fmaf(dyi, ToFloat(w.of[i]), -g_mean));
        out.of[i] = FromFloat<T>(a.overwrite_dx ? dxi : ToFloat(add_to.of[i]) + dxi);
      }
      return out;
    };
    Unrolled<kRows>([&](auto r) {
      Unrolled<kHeld>([&](auto h) {
        const auto v = threadIdx.x + h * blockDim.x;
        const int64_t at = (row + r) * a.cols + int64_t{v} * kVec;
        if (row + r >= last || v >= vectors) return;
        if constexpr (!kHeldWhole) {
          dy[r][h] = LoadVec<T, kVec>(a.dy + at);
          x[r][h] = LoadVec<T, kVec>(a.x + at);
          weight[h] = LoadVec<T, kVec>(a.weight + v * kVec);
        }
        StoreVec(a.dx + at, gradient(r, dy[r][h], x[r][h], weight[h], old[r][h], dweight[h], dbias[h]));
      });
    });
    for_others([&](int64_t c) {
      const int64_t at = row * a.cols + c;
      const Vector add_to = a.overwrite_dx ? Vector{} : LoadVec<T, kVec>(a.dx + at);
      StoreVec(a.dx + at, gradient(Constant<0>{}, LoadVec<T, kVec>(a.dy + at), LoadVec<T, kVec>(a.x + at),
                                   LoadVec<T, kVec>(a.weight + c), add_to, dweight_part + c, dbias_part + c));
    });
  }
  Unrolled<kHeld>([&](auto h) {
    const auto v = threadIdx.x + h * blockDim.x;
    if (v >= vectors) return;
    for (int i = 0; i < kVec; ++i) {
      dweight_part[v * kVec + i] = dweight[h][i];
      if constexpr (kCenter) dbias_part[v * kVec + i] = dbias[h][i];
    }
  });
}

template <bool kCenter, typename T>
void LaunchBackward(const CudaRun& run, const BackwardArgs<T>& args, int64_t parts, bool whole) {
  WithVector<T>(whole, [&](auto vec) {
    constexpr int kVec = decltype(vec)::value;
    const int64_t vectors = args.cols / kVec;
    const LaunchShape shape = {{BlocksFor(parts, 1)}, {WholeWarps(vectors, kBackwardThreads)}};
    if (vectors <= kBackwardThreads) {
      Launch(run.stream, shape, Backward<kCenter, T, kVec, 3, 1>, args);
    } else {
      Launch(run.stream, shape, Backward<kCenter, T, kVec, 1, 2>, args);
    }
  });
}

void RmsNormBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kRmsNormBackward);
  const NormBackwardAttrs& attrs = call.attrs(kRmsNormBackward);
  const Tensor& x = on.reads.x;
  auto* parts = run.Data<float>(on.scratch.parts);
  const bool whole = AreWholeVectors(x.cols, {on.reads.dy, x, on.reads.weight, on.writes.dx});
  WithCudaType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const BackwardArgs<T> args = {run.Data<T>(on.reads.dy),
                                  run.Data<T>(x),
                                  run.Data<T>(on.reads.weight),
                                  nullptr,
                                  run.Data<float>(on.reads.rstd),
                                  run.Data<T>(on.writes.dx),
                                  parts,
                                  x.rows,
                                  x.cols,
                                  on.scratch.parts.cols,
                                  attrs.overwrite_dx};
    LaunchBackward<false>(run, args, on.scratch.parts.rows, whole);
  });
  AddUpParts(run, parts, on.scratch.parts.rows, on.scratch.parts.cols, on.writes.dweight, attrs.accumulate);
}

void LayerNormBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kLayerNormBackward);
  const NormBackwardAttrs& attrs = call.attrs(kLayerNormBackward);
  const Tensor& x = on.reads.x;
  auto* parts = run.Data<float>(on.scratch.parts);
  const int64_t part_count = on.scratch.parts.rows / 2;
  const int64_t stride = on.scratch.parts.cols;
  const bool whole = AreWholeVectors(x.cols, {on.reads.dy, x, on.reads.weight, on.writes.dx});
  WithCudaType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const BackwardArgs<T> args = {run.Data<T>(on.reads.dy),
                                  run.Data<T>(x),
                                  run.Data<T>(on.reads.weight),
                                  run.Data<float>(on.reads.mean),
                                  run.Data<float>(on.reads.rstd),
                                  run.Data<T>(on.writes.dx),
                                  parts,
                                  x.rows,
                                  x.cols,
                                  stride,
                                  attrs.overwrite_dx};
    LaunchBackward<true>(run, args, part_count, whole);
  });
  AddUpParts(run, parts, part_count, stride, on.writes.dweight, attrs.accumulate);
  AddUpParts(run, parts + part_count * stride, part_count, stride, on.writes.dbias, attrs.accumulate);
}

}  // namespace

void AddNormCuda(CudaKernelTable& table) {
  table[&kRmsNorm].run = &NormCuda<kRmsNorm, false>;
  table[&kRmsNormQuantize].run = &NormCuda<kRmsNormQuantize, false>;
  table[&kResidualRmsNorm].run = &NormCuda<kResidualRmsNorm, false>;
  table[&kResidualRmsNormQuantize].run = &NormCuda<kResidualRmsNormQuantize, false>;
  table[&kLayerNorm].run = &NormCuda<kLayerNorm, true>;
  table[&kLayerNormQuantize].run = &NormCuda<kLayerNormQuantize, true>;
  table[&kResidualLayerNorm].run = &NormCuda<kResidualLayerNorm, true>;
  table[&kResidualLayerNormQuantize].run = &NormCuda<kResidualLayerNormQuantize, true>;
  table[&kRmsNormBackward].run = &RmsNormBackwardCuda;
  table[&kLayerNormBackward].run = &LayerNormBackwardCuda;
}

}  // namespace ridgeline
