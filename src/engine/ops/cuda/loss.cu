#include "engine/ops/loss.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/cuda/sums.h"

namespace ridgeline::engine {
namespace {

// A block takes a whole multiprocessor, and keeps as much of a row as fits in its shared memory (160 KB on an H200, of
// 257 KB for 128256 bf16). The rest is read last, and first again afterwards. Over all multiprocessors' rows it is 13
// MB, which stay in the L2 cache.
constexpr int kLossThreads = 1024;
constexpr int kLossBatch = 4;  // vectors that a thread loads from memory at a time, …
constexpr int64_t kUnderWayBytes = int64_t{16} * kLossThreads * kLossBatch;  // … and their bytes in the L1 cache
constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

// e^x in two instructions, of expf's eight: 2^(x log2 e), which the multiprocessors approximate to 2^-22 of it. Results
// below 2^-126 are 0.
__device__ float Exp(float x) {
  x *= std::numbers::log2e_v<float>;
#ifdef __CUDACC__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return exp2f(x);
#endif
}

// The sum of e^(x - max) over the values seen by one thread (Milakov & Gimelshein, 2018). Only the sum notices a NaN.
struct OnlineSum {
  float max = kLowest;  // not infinity, because its difference from itself is NaN
  float sum = 0;

  template <typename T, int kVec, int kCount>
  __device__ void Add(const Vec<T, kVec> (&x)[kCount]) {
    float seen = max;
    for (const Vec<T, kVec>& vector : x) {
      for (int i = 0; i < kVec; ++i) seen = fmaxf(seen, ToFloat(vector.of[i]));
    }
    sum *= Exp(max - seen);
    max = seen;
    for (const Vec<T, kVec>& vector : x) {
      for (int i = 0; i < kVec; ++i) sum += Exp(ToFloat(vector.of[i]) - max);
    }
  }
};

// A row's elements before its first whole vector, its whole vectors, and the elements after them, divided among a
// block's threads.
template <typename T>
struct RowParts {
  static constexpr int kVec = 16 / sizeof(T);
  using Vector = Vec<std::remove_const_t<T>, kVec>;

  __device__ RowParts(T* row, int64_t cols) {
    const auto over = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16);
    const int64_t before = min(cols, (16 - over) % 16 / static_cast<int64_t>(sizeof(T)));
    const int64_t vectors = (cols - before) / kVec;
    const auto thread = static_cast<int64_t>(threadIdx.x);
    first = row + before + thread * kVec;
    count = static_cast<int>((vectors - thread + kLossThreads - 1) / kLossThreads);
    const int64_t behind = before + vectors * kVec;
    if (thread < before) {
      single = row + thread;
    } else if (thread - before < cols - behind) {
      single = row + behind + thread - before;
    }
  }
  __device__ T* At(int vector) const { return first + int64_t{vector} * kLossThreads * kVec; }

  T* first;
  int count;            // number of this thread's vectors
  T* single = nullptr;  // this thread's element outside of vectors
};

// One block per row. losses[row] = its loss; logits become (softmax - onehot) * scale. Each thread's first `held`
// vectors stay in shared memory between the two times that they are read.
template <typename T>
__global__ void __launch_bounds__(kLossThreads)
    CrossEntropyRow(T* logits, const int32_t* targets, const float* factor, int64_t cols, int64_t row_stride,
                    double scale, int held, float* losses) {
  using Vector = typename RowParts<T>::Vector;
  __shared__ float max_scratch[kWarp];
  __shared__ double sum_scratch[kWarp];
  Vector* mine = DynamicShared<Vector>() + threadIdx.x;
  const int64_t row = blockIdx.x;
  T* data = logits + row * row_stride;
  const RowParts<T> parts(data, cols);
  const auto target = static_cast<int64_t>(targets[row]);
  const float target_logit = ToFloat(data[target]);  // read before the row is written, after the barriers

  OnlineSum online;
  for (int v = 0; v < parts.count; v += kLossBatch) {
    Vector batch[kLossBatch];
    for (int b = 0; b < kLossBatch; ++b) {
      if (v + b < parts.count) {
        batch[b] = LoadVec<T, RowParts<T>::kVec>(parts.At(v + b));
      } else {
        for (T& value : batch[b].of) value = FromFloat<T>(kNothing);
      }
    }
    for (int b = 0; b < kLossBatch; ++b) {
      if (v + b < held) mine[(v + b) * kLossThreads] = batch[b];
    }
    online.Add(batch);
  }
  if (parts.single != nullptr) online.Add({LoadVec<T, 1>(parts.single)});
  const float max = BlockMax(online.max, max_scratch);
  const double sum = BlockSum(static_cast<double>(online.sum * Exp(online.max - max)), sum_scratch);

  const double gradient_scale = factor == nullptr ? scale : scale * static_cast<double>(*factor);
  float target_gradient = 0;
  if (threadIdx.x == 0) {
    // log1p and expm1 keep their digits if the target is nearly certain.
    const float log_probability = target_logit - max - log1pf(static_cast<float>(sum - 1));
    target_gradient = static_cast<float>(static_cast<double>(expm1f(log_probability)) * gradient_scale);
    losses[row] = -log_probability;
  }
  const auto each = static_cast<float>(gradient_scale / sum);
  const auto replace = [&](auto x, T* at) {
    for (T& value : x.of) value = FromFloat<T>(Exp(ToFloat(value) - max) * each);
    StoreVec(at, x);
  };
  for (int v = (parts.count - 1) / kLossBatch * kLossBatch; v >= 0; v -= kLossBatch) {
    Vector batch[kLossBatch];
    for (int b = 0; b < kLossBatch; ++b) {
      if (v + b >= parts.count) continue;
      batch[b] = v + b < held ? mine[(v + b) * kLossThreads] : LoadVec<T, RowParts<T>::kVec>(parts.At(v + b));
    }
    for (int b = 0; b < kLossBatch; ++b) {
      if (v + b < parts.count) replace(batch[b], parts.At(v + b));
    }
  }
  if (parts.single != nullptr) replace(LoadVec<T, 1>(parts.single), parts.single);
  __syncthreads();  // the target's gradient replaces what was just written
  if (threadIdx.x == 0) data[target] = FromFloat<T>(target_gradient);
}

// One block per row: what one part of the vocabulary contributes (ops/loss.h).
template <typename T>
__global__ void __launch_bounds__(kLossThreads, 1)
    StatisticsOfRow(const T* logits, const int32_t* targets, int64_t cols, int64_t row_stride, int64_t first,
                    float* statistics) {
  using Vector = typename RowParts<const T>::Vector;
  __shared__ float max_scratch[kWarp];
  __shared__ double sum_scratch[kWarp];
  const int64_t row = blockIdx.x;
  const int64_t rows = gridDim.x;
  const T* data = logits + row * row_stride;
  const RowParts<const T> parts(data, cols);
  OnlineSum online;
  for (int v = 0; v < parts.count; v += kLossBatch) {
    Vector batch[kLossBatch];
    for (int b = 0; b < kLossBatch; ++b) {
      if (v + b < parts.count) {
        batch[b] = LoadVec<T, RowParts<const T>::kVec>(parts.At(v + b));
      } else {
        for (T& value : batch[b].of) value = FromFloat<T>(kNothing);
      }
    }
    online.Add(batch);
  }
  if (parts.single != nullptr) online.Add({LoadVec<T, 1>(parts.single)});
  const float max = BlockMax(online.max, max_scratch);
  const double sum = BlockSum(static_cast<double>(online.sum * Exp(online.max - max)), sum_scratch);
  if (threadIdx.x != 0) return;
  const int64_t target = targets[row] - first;
  statistics[row] = max;
  statistics[rows + row] = static_cast<float>(sum - 1);
  statistics[2 * rows + row] = target >= 0 && target < cols ? ToFloat(data[target]) : 0;
}

// One block per row. losses[row] = its loss; the logits of this part become (softmax - onehot) * scale.
template <typename T>
__global__ void __launch_bounds__(kLossThreads)
    CrossEntropyRowOfPart(T* logits, const int32_t* targets, const float* statistics, int64_t vocabulary_parts,
                          const float* factor, int64_t cols, int64_t row_stride, int64_t first, double scale,
                          float* losses) {
  const int64_t row = blockIdx.x;
  const int64_t rows = gridDim.x;
  T* data = logits + row * row_stride;
  const auto of_part = [&](int64_t part, int64_t number) {
    return statistics[(part * kNumbersOfLoss + number) * rows + row];
  };
  float max = kLowest;
  float target_logit = 0;  // the sum of one logit and zeros
  for (int64_t part = 0; part < vocabulary_parts; ++part) {
    max = fmaxf(max, of_part(part, 0));
    target_logit += of_part(part, 2);
  }
  double sum = 0;
  for (int64_t part = 0; part < vocabulary_parts; ++part) {
    sum += (1 + static_cast<double>(of_part(part, 1))) * static_cast<double>(Exp(of_part(part, 0) - max));
  }
  const double gradient_scale = factor == nullptr ? scale : scale * static_cast<double>(*factor);
  const auto each = static_cast<float>(gradient_scale / sum);
  const auto replace = [&](auto x, T* at) {
    for (T& value : x.of) value = FromFloat<T>(Exp(ToFloat(value) - max) * each);
    StoreVec(at, x);
  };
  const RowParts<T> parts(data, cols);
  for (int v = 0; v < parts.count; ++v) replace(LoadVec<T, RowParts<T>::kVec>(parts.At(v)), parts.At(v));
  if (parts.single != nullptr) replace(LoadVec<T, 1>(parts.single), parts.single);
  __syncthreads();  // the target's gradient replaces what was just written
  if (threadIdx.x != 0) return;
  // log1p and expm1 keep their digits if the target is nearly certain.
  const float log_probability = target_logit - max - log1pf(static_cast<float>(sum - 1));
  losses[row] = -log_probability;
  const int64_t target = targets[row] - first;
  if (target < 0 || target >= cols) return;
  data[target] = FromFloat<T>(static_cast<float>(static_cast<double>(expm1f(log_probability)) * gradient_scale));
}

// Reads the logits. Nobody has timed it.
void LossStatisticsCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const LossStatisticsOperands on = call.operands(kLossStatistics);
  const Tensor& logits = on.reads.logits;
  WithCudaType(logits.dtype, [&](auto t) {
    using T = decltype(t);
    Launch(run.stream, {{static_cast<unsigned>(logits.rows)}, {kLossThreads}}, StatisticsOfRow<T>,
           static_cast<const T*>(run.Data<T>(logits)), run.Data<int32_t>(on.reads.targets), logits.cols,
           logits.row_stride, call.attrs(kLossStatistics).first, run.Data<float>(on.writes.statistics));
  });
}

// Reads the logits and writes them. Nobody has timed it.
void CrossEntropyOfPartCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const CrossEntropyOfPartOperands on = call.operands(kCrossEntropyOfPart);
  const Tensor& logits = on.writes.logits;
  const Tensor& factor = on.reads.factor;
  const auto& [scale, first] = call.attrs(kCrossEntropyOfPart);
  auto* losses = run.Data<float>(on.scratch.row_losses);
  const int64_t parts = on.reads.statistics.cols / (kNumbersOfLoss * logits.rows);
  WithCudaType(logits.dtype, [&, scale = scale, first = first](auto t) {
    using T = decltype(t);
    Launch(run.stream, {{static_cast<unsigned>(logits.rows)}, {kLossThreads}}, CrossEntropyRowOfPart<T>,
           run.Data<T>(logits), run.Data<int32_t>(on.reads.targets), run.Data<float>(on.reads.statistics), parts,
           factor.defined() ? run.Data<float>(factor) : nullptr, logits.cols, logits.row_stride, first, scale, losses);
  });
  AddSumCuda(run, losses, logits.rows, scale, run.Data<float>(on.writes.loss));
}

// Reads the logits and writes them. (1024, 128256) bf16: 525 MB, 124 us on an H200. Its multiprocessors approximate two
// exponentials per element in 71 us, and issue about 16 instructions, of the 28 of that time. With expf's two (24
// instructions), and with the row read again from L2, it took 230 us.
void CrossEntropyCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const CrossEntropyOperands on = call.operands(kCrossEntropy);
  const Tensor& logits = on.writes.logits;
  const Tensor& factor = on.reads.factor;
  const double scale = call.attrs(kCrossEntropy).scale;
  auto* losses = run.Data<float>(on.scratch.row_losses);
  constexpr int64_t kHeldBytes = int64_t{16} * kLossThreads;  // the bytes of one vector of each thread
  const int64_t held = std::max<int64_t>(0, run.shared_bytes - kUnderWayBytes) / kHeldBytes;
  WithCudaType(logits.dtype, [&](auto t) {
    using T = decltype(t);
    Launch(run.stream, {{static_cast<unsigned>(logits.rows)}, {kLossThreads}, static_cast<size_t>(held * kHeldBytes)},
           CrossEntropyRow<T>, run.Data<T>(logits), run.Data<int32_t>(on.reads.targets),
           factor.defined() ? run.Data<float>(factor) : nullptr, logits.cols, logits.row_stride, scale, held, losses);
  });
  AddSumCuda(run, losses, logits.rows, scale, run.Data<float>(on.writes.loss));
}

void SumLossCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const SumLossOperands on = call.operands(kSumLoss);
  AddElementsCuda(run, on.reads.x, on.scratch.parts, false, call.attrs(kSumLoss).scale,
                  run.Data<float>(on.writes.loss));
}

}  // namespace

void AddLossCuda(CudaKernelTable& table) {
  table[&kCrossEntropy].run = &CrossEntropyCuda;
  table[&kLossStatistics].run = &LossStatisticsCuda;
  table[&kCrossEntropyOfPart].run = &CrossEntropyOfPartCuda;
  table[&kSumLoss].run = &SumLossCuda;
}

}  // namespace ridgeline::engine
