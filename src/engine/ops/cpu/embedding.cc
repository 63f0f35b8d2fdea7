#include "engine/ops/embedding.h"
#include "engine/ops/cpu/kernels.h"

#include <algorithm>
#include <cstring>

#include "engine/ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/embedding.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

template <typename T>
HWY_NOINLINE void AddRows(const T* a, const T* b, T* out, int64_t cols) {
  constexpr bool kSplit = kAnySplit<T>;
  ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
    Store<kSplit>(Plus(Load<kSplit>(a + i, count), Load<kSplit>(b + i, count)), out + i, count);
  });
}

void EmbeddingCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const EmbeddingOperands on = call.operands(kEmbedding);
  const Tensor& wte = on.reads.wte;
  const Tensor& wpe = on.reads.wpe;
  const Tensor& x = on.writes.x;
  const int64_t seq = call.attrs(kEmbedding).seq;
  const int64_t first = call.attrs(kEmbedding).first;
  const auto* ids = run.Data<int32_t>(on.reads.ids);
  WithType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const T* tokens = run.Data<T>(wte);
    const T* positions = wpe.defined() ? run.Data<T>(wpe) : nullptr;
    T* out = run.Data<T>(x);
    ParallelRows(x.rows, x.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t own = ids[row] - first;
        const T* token = tokens + own * x.cols;
        if (own < 0 || own >= wte.rows) {
          std::memset(out + row * x.cols, 0, static_cast<size_t>(x.cols) * sizeof(T));
        } else if (positions != nullptr) {
          AddRows(token, positions + row % seq * x.cols, out + row * x.cols, x.cols);
        } else {
          std::memcpy(out + row * x.cols, token, static_cast<size_t>(x.cols) * sizeof(T));
        }
      }
    });
  });
}

// order = the indices of ids, sorted by id; equal ids keep their order. A radix sort, because counting would need
// memory for the ids' range.
void SortTokens(const int32_t* ids, int64_t count, int64_t vocab, int32_t* order, int32_t* scratch) {
  constexpr int kBits = 11;
  constexpr int32_t kBuckets = 1 << kBits;
  for (int64_t i = 0; i < count; ++i) order[i] = static_cast<int32_t>(i);
  for (int shift = 0; (vocab - 1) >> shift > 0; shift += kBits) {
    int32_t first[kBuckets + 1] = {};
    const auto bucket = [&](int32_t token) { return (ids[token] >> shift) & (kBuckets - 1); };
    for (int64_t i = 0; i < count; ++i) ++first[bucket(order[i]) + 1];
    for (int32_t b = 0; b < kBuckets; ++b) first[b + 1] += first[b];
    for (int64_t i = 0; i < count; ++i) scratch[first[bucket(order[i])]++] = order[i];
    std::memcpy(order, scratch, static_cast<size_t>(count) * sizeof(int32_t));
  }
}

// to[begin, end) += the sum of these columns of dx's rows rows[0], …, in order, summed in fp32.
template <typename T, typename G>
HWY_NOINLINE void AddRowsOf(const T* dx, int64_t cols, const int32_t* rows, int64_t count, G* to, int64_t begin,
                            int64_t end) {
  constexpr bool kSplit = kAnySplit<T, G>;
  ForBlocks(end - begin, [&](int64_t at, auto size) HWY_ATTR {
    const int64_t i = begin + at;
    Pair sum = Load<kSplit>(dx + rows[0] * cols + i, size);
    for (int64_t r = 1; r < count; ++r) sum = Plus(sum, Load<kSplit>(dx + rows[r] * cols + i, size));
    Store<kSplit>(Plus(Load<kSplit>(to + i, size), sum), to + i, size);
  });
}
// The same for rows 0, stride, 2 stride, … of dx.
template <typename T, typename G>
HWY_NOINLINE void AddEveryRow(const T* dx, int64_t cols, int64_t stride, int64_t count, G* to) {
  constexpr bool kSplit = kAnySplit<T, G>;
  ForBlocks(cols, [&](int64_t i, auto size) HWY_ATTR {
    Pair sum = Load<kSplit>(dx + i, size);
    for (int64_t r = 1; r < count; ++r) sum = Plus(sum, Load<kSplit>(dx + r * stride * cols + i, size));
    Store<kSplit>(Plus(Load<kSplit>(to + i, size), sum), to + i, size);
  });
}

// Each thread has a range of columns, so that all threads share a frequent token. d_wte has the rows of ids [first_id,
// first_id + vocab).
template <typename T, typename G>
void ScatterTokens(const T* dx, int64_t cols, const int32_t* ids, const int32_t* order, int64_t tokens, G* d_wte,
                   int64_t first_id, int64_t vocab) {
  constexpr int64_t kUnit = 64;  // columns: whole blocks, whole cache lines
  ParallelFor((cols + kUnit - 1) / kUnit, 1, [&](int64_t begin, int64_t end) {
    for (int64_t first = 0; first < tokens;) {
      const int32_t id = ids[order[first]];
      int64_t last = first + 1;
      while (last < tokens && ids[order[last]] == id) ++last;
      if (const int64_t own = id - first_id; own >= 0 && own < vocab) {
        AddRowsOf(dx, cols, order + first, last - first, d_wte + own * cols, begin * kUnit,
                  std::min(cols, end * kUnit));
      }
      first = last;
    }
  });
}

void EmbeddingBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const EmbeddingBackwardOperands on = call.operands(kEmbeddingBackward);
  const Tensor& dx = on.reads.dx;
  const Tensor& d_wte = on.writes.d_wte;
  const Tensor& d_wpe = on.writes.d_wpe;
  const int64_t seq = call.attrs(kEmbeddingBackward).seq;
  const int64_t first = call.attrs(kEmbeddingBackward).first;
  const int64_t tokens = dx.rows;
  const int64_t cols = dx.cols;
  const auto* ids = run.Data<int32_t>(on.reads.ids);
  auto* order = run.Data<int32_t>(on.scratch.order);
  SortTokens(ids, tokens, *std::max_element(ids, ids + tokens) + int64_t{1}, order, order + tokens);
  WithType(dx.dtype, [&](auto t) {
    WithType(d_wte.dtype, [&](auto g) {
      using T = decltype(t);
      using G = decltype(g);
      const T* from = run.Data<T>(dx);
      ScatterTokens(from, cols, ids, order, tokens, run.Data<G>(d_wte), first, d_wte.rows);
      if (!d_wpe.defined()) return;
      G* positions = run.Data<G>(d_wpe);
      ParallelRows(seq, cols * (tokens / seq), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          AddEveryRow(from + p * cols, cols, seq, tokens / seq, positions + p * cols);
        }
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
HWY_EXPORT(EmbeddingCpu);
HWY_EXPORT(EmbeddingBackwardCpu);

void AddEmbeddingCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kEmbedding].run = HWY_DYNAMIC_DISPATCH(EmbeddingCpu);
  table[&kEmbeddingBackward].run = HWY_DYNAMIC_DISPATCH(EmbeddingBackwardCpu);
}

}  // namespace ridgeline::engine
#endif
