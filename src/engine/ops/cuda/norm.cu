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
#include "engine/ops/cuda/rows_ahead.cuh"
#include "engine/ops/cuda/vectors.h"
#include "engine/ops/fused_quantize.h"

namespace ridgeline::engine {
namespace {

// Both norms. kCenter adds what LayerNorm has beyond RMSNorm: the mean and the bias.
//
// A block has some rows, one after another, and each of its threads has the vectors threadIdx.x, + blockDim.x, … of
// them. The first few vectors are copied while earlier rows are processed (RowsAhead), and held. Further vectors, in
// very long rows, are read from the cache in every pass.

unsigned WholeWarps(int64_t threads, int64_t most) {
  return static_cast<unsigned>(std::min((threads + kWarp - 1) / kWarp * kWarp, most));
}

template <typename T>
struct ForwardArgs {
  const T* from[2] = {};  // x, or the branch and the residual from which x is made first
  T* x = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  float eps = 0;
  // For norms that write codes instead of y.
  uint8_t* codes = nullptr;
  float* tensor_scale = nullptr;
  const float* scale = nullptr;
  uint32_t* amax = nullptr;
  // For norms that make x.
  DropoutOp dropout = {};
};

// A vector of x from element `at` on, made and stored. Only a few elements at a time, because dropout takes many
// registers.
template <int kVec>
constexpr int kMadeAtOnce = std::min(kVec, 4);
template <typename T, int kVec>
__device__ __forceinline__ Vec<T, kVec> MakeVec(const ForwardArgs<T>& a, int64_t at, const Vec<T, kVec>& branch,
                                                const Vec<T, kVec>& residual) {
  constexpr int kEach = kMadeAtOnce<kVec>;
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
  StoreVec(a.x + at, x);
  return x;
}

// The codes of a vector's numbers, contiguous.
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

constexpr int kForwardThreads = 768;
constexpr int kForwardHeld = 2;  // vectors per thread
// Leaves a thread 64 registers, so that a multiprocessor has 1024 threads. (C++ compilers see no launch bounds.)
[[maybe_unused]] constexpr int kForwardBound = 1024;
// 8 for each multiprocessor, which runs as many at once for rows of 2048 elements. On an H200, one block per row, which
// loads nothing while it adds up and stores, took 38.6 us for (8192, 2048) in bf16 with x made first, 82 % of a copy's
// speed. With codes, where each block raises the amax, it reached 69 %.
constexpr int64_t kForwardBlocksEach = 8;

// x is read once and y is written once. (8192, 4096) bf16: 134 MB, 31 us; codes instead of y: 101 MB, 23 us. If x is
// made first (kSum), its branch and its residual are read once and it is written once: 134 MB, 31 us more than if it is
// read. The sum alone would take 201 MB.
template <bool kCenter, bool kSum, bool kCodes, typename T, int kVec>
__global__ void __launch_bounds__(kForwardBound, kBlocksAtLeast) Forward(ForwardArgs<T> a) {
  using Vector = Vec<T, kVec>;
  __shared__ float scratch[2][kWarp];  // used alternately, so one barrier per sum suffices
  const int64_t last = a.rows * (blockIdx.x + int64_t{1}) / gridDim.x;
  const int64_t vectors = a.cols / kVec;
  int64_t row = a.rows * blockIdx.x / gridDim.x;
  constexpr int kTensors = kSum ? 2 : 1;
  RowsAhead<T, kVec, kTensors, kForwardHeld> ahead(a.from, a.cols, row, last);
  uint32_t largest = 0;
  for (int turn = 0; row < last; ++row, turn ^= 1) {
    const int64_t first = row * a.cols;
    Vector held[kForwardHeld];
    ahead.Await();
    Unrolled<kForwardHeld>([&](auto h) {
      const auto v = threadIdx.x + h * blockDim.x;
      if (v >= vectors) return;
      if constexpr (kSum) {
        held[h] = MakeVec<T, kVec>(a, first + int64_t{v} * kVec, ahead.Of(0, h), ahead.Of(1, h));
      } else {
        held[h] = ahead.Of(0, h);
      }
    });
    ahead.Start();
    if constexpr (kSum) {
      for (int64_t v = threadIdx.x + int64_t{kForwardHeld} * blockDim.x; v < vectors; v += blockDim.x) {
        const int64_t at = first + v * kVec;
        MakeVec<T, kVec>(a, at, LoadVec<T, kVec>(a.from[0] + at), LoadVec<T, kVec>(a.from[1] + at));
      }
    }
    // Calls fn(column, vector) for each of this thread's vectors.
    const auto for_each = [&](const auto& fn) {
      Unrolled<kForwardHeld>([&](auto h) {
        const auto v = threadIdx.x + h * blockDim.x;
        if (v < vectors) fn(int64_t{v} * kVec, held[h]);
      });
      for (int64_t v = threadIdx.x + int64_t{kForwardHeld} * blockDim.x; v < vectors; v += blockDim.x) {
        fn(v * kVec, LoadVec<T, kVec>(a.x + first + v * kVec));
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
    squares = BlockSum(squares, scratch[kCenter ? 1 : turn]);
    const float rstd = 1.0F / sqrtf(squares / static_cast<float>(a.cols) + a.eps);
    if (threadIdx.x == 0) {
      if constexpr (kCenter) a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
    float scale = 0;
    // Read for each row, because one more register throughout would be one too many.
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
        StoreVecCodes(out, scale, a.codes + first + c);
      } else {
        StoreVec(a.y + first + c, out);
      }
    });
  }
  if constexpr (kCodes) {
    __shared__ uint32_t amaxes[kWarp];
    if (blockIdx.x == 0 && threadIdx.x == 0) *a.tensor_scale = __fdiv_rn(1.0F, *a.scale);
    RaiseAmax(a.amax, largest, amaxes, static_cast<int>(blockDim.x) / kWarp);
  }
}

// Any of the forward norms. The operands determine which one, and what it does beside.
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
  // Sums follow the order of vectors, which does not depend on the additional work: codes begin a storage, as do a
  // branch and a residual.
  bool whole = AreWholeVectors(x.cols, {x, on.reads.weight});
  if constexpr (kCenter) whole = whole && AreWholeVectors(x.cols, {on.reads.bias});
  if constexpr (kSum) whole = whole && AreWholeVectors(x.cols, {on.reads.branch, on.reads.residual});
  if constexpr (!kCodes) whole = whole && AreWholeVectors(x.cols, {on.writes.y});
  const auto launch = [&](auto t) {
    using T = decltype(t);
    ForwardArgs<T> args;
    args.from[0] = args.x = run.Data<T>(x);
    args.weight = run.Data<T>(on.reads.weight);
    args.rstd = run.Data<float>(on.writes.rstd);
    args.rows = x.rows;
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
      args.from[0] = run.Data<T>(on.reads.branch);
      args.from[1] = run.Data<T>(on.reads.residual);
      if (dropout.p > 0) args.dropout = MakeDropout(run.Inputs(on.reads.inputs), dropout);
    }
    WithVector<T>(whole, [&](auto vec) {
      constexpr int kVec = decltype(vec)::value;
      constexpr int64_t kEach = int64_t{kVec} * kForwardHeld;
      constexpr int kTensors = kSum ? 2 : 1;
      using Ahead = RowsAhead<T, kVec, kTensors, kForwardHeld>;
      static_assert(kForwardThreads <= Ahead::kMostThreads);
      const unsigned threads = WholeWarps((x.cols + kEach - 1) / kEach, kForwardThreads);
      const unsigned blocks = BlocksFor(std::min(x.rows, kForwardBlocksEach * run.multiprocessors), 1);
      Launch(run.stream, {{blocks}, {threads}, Ahead::SharedBytes(threads)}, Forward<kCenter, kSum, kCodes, T, kVec>,
             args);
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
  float* parts;  // one row of `stride` for each block's dweight, then one for each block's dbias
  int64_t rows;
  int64_t cols;
  int64_t stride;
  bool overwrite_dx;
};

constexpr int kBackwardThreads = 512;

// As BlockSum, for several numbers at once.
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
// dy. A block has the rows of a part, and adds up its part's sums in their order: those of kHeld vectors per thread in
// registers, others, if a row is so long (kLong), in the part itself. dy, x and dx are read once and dx is written
// once. The parts, of a few MB, are still in the L2 cache when they are added up. (8192, 4096) bf16: 268 MB, 62 us.
template <bool kCenter, bool kLong, typename T, int kVec, int kHeld>
__global__ void __launch_bounds__(kBackwardThreads, kHeld == 1 ? 2 : kBlocksAtLeast) Backward(BackwardArgs<T> a) {
  using Vector = Vec<T, kVec>;
  __shared__ float scratch[2][2][kWarp];  // used alternately, so one barrier per row suffices
  const int64_t last = a.rows * (blockIdx.x + int64_t{1}) / gridDim.x;
  const int64_t vectors = a.cols / kVec;
  const auto scale = 1.0F / static_cast<float>(a.cols);
  int64_t row = a.rows * blockIdx.x / gridDim.x;
  float* dweight_part = a.parts + blockIdx.x * a.stride;
  float* dbias_part = a.parts + (gridDim.x + int64_t{blockIdx.x}) * a.stride;
  const T* const from[] = {a.dy, a.x, a.overwrite_dx ? nullptr : a.dx};
  RowsAhead<T, kVec, 3, kHeld> ahead(from, a.cols, row, last);
  // Calls fn(h, column) for vectors that are held, and fn(column) for the others. Few rows have others, and unrolled
  // they would take registers from all.
  const auto for_held = [&](const auto& fn) {
    Unrolled<kHeld>([&](auto h) {
      const auto v = threadIdx.x + h * blockDim.x;
      if (v < vectors) fn(h, int64_t{v} * kVec);
    });
  };
  const auto for_others = [&](const auto& fn) {
    if constexpr (kLong) {
#ifdef __CUDACC__
#pragma unroll 1
#endif
      for (int64_t v = threadIdx.x + int64_t{kHeld} * blockDim.x; v < vectors; v += blockDim.x) fn(v * kVec);
    }
  };

  Vector weight[kHeld];
  Vec<float, kVec> dweight[kHeld] = {};
  Vec<float, kVec> dbias[kHeld] = {};
  for_held([&](auto h, int64_t c) { weight[h] = LoadVec<T, kVec>(a.weight + c); });
  for_others([&](int64_t c) {
    for (int i = 0; i < kVec; ++i) {
      dweight_part[c + i] = 0;
      if constexpr (kCenter) dbias_part[c + i] = 0;
    }
  });

  float next_mean = 0;
  float next_rstd = 0;
  const auto read_next = [&](int64_t next) {
    if (next >= last) return;
    if constexpr (kCenter) next_mean = a.mean[next];
    next_rstd = a.rstd[next];
  };
  read_next(row);
  for (int turn = 0; row < last; ++row, turn ^= 1) {
    const int64_t first = row * a.cols;
    const float mean = next_mean;
    const float rstd = next_rstd;
    read_next(row + 1);
    ahead.Await();
    float sums[kCenter ? 2 : 1] = {};  // sums of g n, and of g
    const auto add = [&](const Vector& d, const Vector& at, const Vector& w) {
      for (int i = 0; i < kVec; ++i) {
        const float g = ToFloat(d.of[i]) * ToFloat(w.of[i]);
        sums[0] = fmaf(g, (ToFloat(at.of[i]) - mean) * rstd, sums[0]);
        if constexpr (kCenter) sums[1] += g;
      }
    };
    for_held([&](auto h, int64_t) { add(ahead.Of(0, h), ahead.Of(1, h), weight[h]); });
    for_others([&](int64_t c) {
      add(LoadVec<T, kVec>(a.dy + first + c), LoadVec<T, kVec>(a.x + first + c), LoadVec<T, kVec>(a.weight + c));
    });
    BlockSums(sums, scratch[turn]);
    const float gn_mean = sums[0] * scale;
    float g_mean = 0;
    if constexpr (kCenter) g_mean = sums[1] * scale;

    // Adds to the sums over rows, and returns dx.
    const auto gradient = [&](const Vector& d, const Vector& at, const Vector& w, const Vector& add_to,
                              float* weight_sums, float* bias_sums) {
      Vector out;
      for (int i = 0; i < kVec; ++i) {
        const float dyi = ToFloat(d.of[i]);
        const float n = (ToFloat(at.of[i]) - mean) * rstd;
        weight_sums[i] = fmaf(dyi, n, weight_sums[i]);
        if constexpr (kCenter) bias_sums[i] += dyi;
        const float dxi = rstd * fmaf(-n, gn_mean, fmaf(dyi, ToFloat(w.of[i]), -g_mean));
        out.of[i] = FromFloat<T>(a.overwrite_dx ? dxi : ToFloat(add_to.of[i]) + dxi);
      }
      return out;
    };
    for_held([&](auto h, int64_t c) {
      const Vector add_to = a.overwrite_dx ? Vector{} : ahead.Of(2, h);
      StoreVec(a.dx + first + c,
               gradient(ahead.Of(0, h), ahead.Of(1, h), weight[h], add_to, dweight[h].of, dbias[h].of));
    });
    ahead.Start();
    for_others([&](int64_t c) {
      const int64_t at = first + c;
      const Vector add_to = a.overwrite_dx ? Vector{} : LoadVec<T, kVec>(a.dx + at);
      StoreVec(a.dx + at, gradient(LoadVec<T, kVec>(a.dy + at), LoadVec<T, kVec>(a.x + at),
                                   LoadVec<T, kVec>(a.weight + c), add_to, dweight_part + c, dbias_part + c));
    });
  }
  for_held([&](auto h, int64_t c) {
    StoreVec(dweight_part + c, dweight[h]);
    if constexpr (kCenter) StoreVec(dbias_part + c, dbias[h]);
  });
}

template <bool kCenter, typename T>
void LaunchBackward(const CudaRun& run, const BackwardArgs<T>& args, int64_t parts, bool whole) {
  WithVector<T>(whole, [&](auto vec) {
    constexpr int kVec = decltype(vec)::value;
    const int64_t vectors = args.cols / kVec;
    const auto launch = [&](auto held, auto is_long) {
      constexpr int kHeld = held;
      using Ahead = RowsAhead<T, kVec, 3, kHeld>;
      static_assert(kBackwardThreads <= Ahead::kMostThreads);
      const unsigned threads = WholeWarps((vectors + kHeld - 1) / kHeld, kBackwardThreads);
      Launch(run.stream, {{BlocksFor(parts, 1)}, {threads}, Ahead::SharedBytes(threads)},
             Backward<kCenter, is_long, T, kVec, kHeld>, args);
    };
    if (vectors <= kBackwardThreads) {
      launch(Constant<1>{}, Constant<false>{});
    } else if (vectors <= 2 * kBackwardThreads) {
      launch(Constant<2>{}, Constant<false>{});
    } else {
      launch(Constant<2>{}, Constant<true>{});
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
  AddUpParts(run, parts, part_count, stride, on.writes.dweight, attrs.accumulate, on.writes.dbias);
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

}  // namespace ridgeline::engine
