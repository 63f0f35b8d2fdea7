#include "engine/ops/embedding.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/registers.cuh"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/kernels.h"

namespace ridgeline::engine {
namespace {

constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / kWarp;

// Calls fn with the number of elements of `bytes` that a kernel handles at once: 16 bytes of the widest type, or one
// element if a row does not begin at a multiple of that.
template <int kBytes, typename Fn>
void WithVectors(bool aligned, Fn&& fn) {
  if (aligned) {
    fn(std::integral_constant<int, 16 / kBytes>{});
  } else {
    fn(std::integral_constant<int, 1>{});
  }
}

template <typename T>
bool Aligned(const T* data, int64_t cols, int vector) {
  return cols % vector == 0 && reinterpret_cast<uintptr_t>(data) % (sizeof(T) * static_cast<size_t>(vector)) == 0;
}

// One warp per row. wte has the rows of ids [first, first + vocab).
template <typename T, int kVec>
__global__ void __launch_bounds__(kRowThreads)
    Lookup(const int32_t* ids, const T* wte, const T* wpe, T* x, int64_t rows, int64_t cols, int64_t seq, int32_t first,
           int32_t vocab) {
  const int64_t row = int64_t{blockIdx.x} * kRowWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int32_t own = ids[row] - first;
  T* out = x + row * cols;
  if (own < 0 || own >= vocab) {
    Vec<T, kVec> zeros;
    for (int i = 0; i < kVec; ++i) zeros.of[i] = FromFloat<T>(0);
    for (int64_t c = int64_t{threadIdx.x % kWarp} * kVec; c < cols; c += kWarp * kVec) StoreVec(out + c, zeros);
    return;
  }
  const T* token = wte + int64_t{own} * cols;
  const T* position = wpe == nullptr ? nullptr : wpe + row % seq * cols;
  for (int64_t c = int64_t{threadIdx.x % kWarp} * kVec; c < cols; c += kWarp * kVec) {
    Vec<T, kVec> values = LoadVec<T, kVec>(token + c);
    if (position != nullptr) {
      const Vec<T, kVec> added = LoadVec<T, kVec>(position + c);
      for (int i = 0; i < kVec; ++i) values.of[i] = FromFloat<T>(ToFloat(values.of[i]) + ToFloat(added.of[i]));
    }
    StoreVec(out + c, values);
  }
}

// Reads a row of wte, and of wpe, and writes x. (8192, 4096) bf16: 134 MB, 31 us on an H200.
void EmbeddingCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const EmbeddingOperands on = call.operands(kEmbedding);
  const Tensor& x = on.writes.x;
  WithCudaType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const T* wte = run.Data<T>(on.reads.wte);
    const T* wpe = on.reads.wpe.defined() ? run.Data<T>(on.reads.wpe) : nullptr;
    T* out = run.Data<T>(x);
    constexpr int kVector = 16 / sizeof(T);
    const bool aligned =
        Aligned(wte, x.cols, kVector) && Aligned(wpe, x.cols, kVector) && Aligned(out, x.cols, kVector);
    WithVectors<sizeof(T)>(aligned, [&](auto vec) {
      Launch(run.stream, {{BlocksFor(x.rows, kRowWarps)}, {kRowThreads}}, Lookup<T, vec>,
             run.Data<int32_t>(on.reads.ids), wte, wpe, out, x.rows, x.cols, call.attrs(kEmbedding).seq,
             static_cast<int32_t>(call.attrs(kEmbedding).first), static_cast<int32_t>(on.reads.wte.rows));
    });
  });
}

// Sorts tokens by their ids: first tiles in shared memory, then by merging sorted runs. For any range of ids, this
// needs no memory but the two rows of `order`.
constexpr int kSortTile = 2048;
constexpr int kSortThreads = kSortTile / 2;

// order[tile) = the tile's tokens by id, with equal ids in their original order (a bitonic sort: Batcher, 1968).
__global__ void __launch_bounds__(kSortThreads) SortTiles(const int32_t* ids, int64_t tokens, int32_t* order) {
  __shared__ uint64_t keys[kSortTile];  // id, then token, so no two are equal
  const int64_t first = int64_t{blockIdx.x} * kSortTile;
  const auto count = static_cast<int>(min(tokens - first, int64_t{kSortTile}));
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSortTile; i += kSortThreads) {
    keys[i] = i < count ? static_cast<uint64_t>(static_cast<uint32_t>(ids[first + i])) << 32 | static_cast<uint32_t>(i)
                        : ~uint64_t{0};
  }
  for (int size = 2; size <= kSortTile; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const int low = thread / distance * 2 * distance + thread % distance;
      const int high = low + distance;
      const uint64_t a = keys[low];
      const uint64_t b = keys[high];
      if ((a > b) == ((low & size) == 0)) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  }
  __syncthreads();
  for (int i = thread; i < count; i += kSortThreads)
    order[first + i] = static_cast<int32_t>(first + (keys[i] & 0xffffffff));
}

// Merges sorted runs of `width` tokens, the second of each pair into the first. Each token finds how many tokens of the
// other run precede it. Among equal ids, those of the first run come first.
__global__ void __launch_bounds__(kRowThreads)
    MergeRuns(const int32_t* ids, const int32_t* from, int32_t* to, int64_t tokens, int64_t width) {
  const int64_t at = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (at >= tokens) return;
  const int64_t run = at / width;
  const bool is_first = run % 2 == 0;
  const int64_t other = min((run ^ 1) * width, tokens);
  const int32_t token = from[at];
  const int32_t id = ids[token];
  int64_t before = 0;
  for (int64_t left = min(tokens - other, width); left > 0;) {
    const int64_t half = left / 2;
    const int32_t their = ids[from[other + before + half]];
    const bool stands_before = is_first ? their < id : their <= id;
    before += stands_before ? half + 1 : 0;
    left = stands_before ? left - half - 1 : half;
  }
  to[run / 2 * 2 * width + at % width + before] = token;
}

// A pointer to the tokens in the order of their ids, in one of the two halves of `order` (2, tokens). The data are a
// few MB in L2, so the time is latency: for 8192 tokens, 3 launches of about 4 us.
const int32_t* SortTokens(const CudaRun& run, const int32_t* ids, int64_t tokens, int32_t* order) {
  int32_t* from = order;
  int32_t* to = order + tokens;
  Launch(run.stream, {{BlocksFor(tokens, kSortTile)}, {kSortThreads}}, SortTiles, ids, tokens, from);
  for (int64_t width = kSortTile; width < tokens; width *= 2) {
    Launch(run.stream, {{BlocksFor(tokens, kRowThreads)}, {kRowThreads}}, MergeRuns, ids, from, to, tokens, width);
    std::swap(from, to);
  }
  return from;
}

// Sums of kVec columns of rows of dx, in fp32, one row after another.
template <typename T, int kVec>
struct RowSum {
  float of[kVec];

  __device__ explicit RowSum(const T* row) {
    const Vec<T, kVec> values = LoadVec<T, kVec>(row);
    for (int i = 0; i < kVec; ++i) of[i] = ToFloat(values.of[i]);
  }
  // Adds row_at(0), row_at(1), …, `count` in all. Loads several from memory at a time.
  template <typename RowAt>
  __device__ void Add(int64_t count, const RowAt& row_at) {
    constexpr int kBatch = 8;
    for (int64_t first = 0; first < count; first += kBatch) {
      Vec<T, kVec> rows[kBatch];
      for (int r = 0; r < kBatch; ++r) rows[r] = LoadVec<T, kVec>(row_at(min(first + r, count - 1)));
      for (int r = 0; r < kBatch; ++r) {
        if (first + r >= count) break;
        for (int i = 0; i < kVec; ++i) of[i] += ToFloat(rows[r].of[i]);
      }
    }
  }
  template <typename G>
  __device__ void AddTo(G* to) const {
    Vec<G, kVec> values = LoadVec<G, kVec>(to);
    for (int i = 0; i < kVec; ++i) values.of[i] = FromFloat<G>(ToFloat(values.of[i]) + of[i]);
    StoreVec(to, values);
  }
};

// A warp has kWarp * kVec columns of one place of the sorted tokens, and works where an id begins. It adds up the rows
// of that id, if d_wte, which has those of ids [first_id, first_id + vocab), has its row. Its lanes look up these
// tokens together, kWarp at a time.
template <typename T, typename G, int kVec>
__global__ void __launch_bounds__(kRowThreads, kBlocksAtLeast)
    ScatterTokens(const T* dx, const int32_t* ids, const int32_t* order, int64_t tokens, int64_t cols, G* d_wte,
                  int32_t first_id, int32_t vocab) {
  const int64_t place = int64_t{blockIdx.x} * kRowWarps + threadIdx.x / kWarp;
  if (place >= tokens) return;
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const int32_t id = ids[order[place]];
  if (place > 0 && ids[order[place - 1]] == id) return;
  if (id < first_id || id - first_id >= vocab) return;
  const int64_t c = (int64_t{blockIdx.y} * kWarp + lane) * kVec;
  const T* from = dx + (c < cols ? c : 0);  // lanes beyond the row add values that they do not store
  RowSum<T, kVec> sum(from + order[place] * cols);
  bool more = true;
  for (int64_t first = place + 1; more; first += kWarp) {
    const int32_t token = first + lane < tokens ? order[first + lane] : 0;
    const unsigned others = __ballot_sync(kAllLanes, first + lane >= tokens || ids[token] != id);
    more = others == 0;
    sum.Add(more ? kWarp : __ffs(static_cast<int>(others)) - 1,
            [&](int64_t i) { return from + __shfl_sync(kAllLanes, token, static_cast<int>(i)) * cols; });
  }
  if (c < cols) sum.AddTo(d_wte + int64_t{id - first_id} * cols + c);
}

// A warp has kWarp * kVec columns of one position.
template <typename T, typename G, int kVec>
__global__ void __launch_bounds__(kRowThreads)
    SumPositions(const T* dx, int64_t seq, int64_t sequences, int64_t cols, G* d_wpe) {
  const int64_t position = int64_t{blockIdx.x} * kRowWarps + threadIdx.x / kWarp;
  const int64_t c = (int64_t{blockIdx.y} * kWarp + threadIdx.x % kWarp) * kVec;
  if (position >= seq || c >= cols) return;
  const T* from = dx + position * cols + c;
  RowSum<T, kVec> sum(from);
  sum.Add(sequences - 1, [&](int64_t i) { return from + (i + 1) * seq * cols; });
  sum.AddTo(d_wpe + position * cols + c);
}

// Reads dx, and reads and writes the tokens' rows of d_wte, and those of d_wpe. (8192, 4096) bf16, all tokens
// different, fp32 gradient: 336 MB, 78 us on an H200, and 15 us for sorting. A frequent token is added row by row, by
// one warp for each 128 or 256 columns: 8 rows per memory latency. So one in twenty of 8192 takes 30 us beside the
// others.
void EmbeddingBackwardCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const EmbeddingBackwardOperands on = call.operands(kEmbeddingBackward);
  const Tensor& dx = on.reads.dx;
  const Tensor& d_wte = on.writes.d_wte;
  const Tensor& d_wpe = on.writes.d_wpe;
  const int64_t seq = call.attrs(kEmbeddingBackward).seq;
  const auto* ids = run.Data<int32_t>(on.reads.ids);
  const int32_t* order = SortTokens(run, ids, dx.rows, run.Data<int32_t>(on.scratch.order));
  WithCudaType(dx.dtype, [&](auto t) {
    WithCudaType(d_wte.dtype, [&](auto g) {
      using T = decltype(t);
      using G = decltype(g);
      const T* from = run.Data<T>(dx);
      G* tokens = run.Data<G>(d_wte);
      G* positions = d_wpe.defined() ? run.Data<G>(d_wpe) : nullptr;
      constexpr int kWidest = std::max(sizeof(T), sizeof(G));
      constexpr int kVector = 16 / kWidest;
      const bool aligned =
          Aligned(from, dx.cols, kVector) && Aligned(tokens, dx.cols, kVector) && Aligned(positions, dx.cols, kVector);
      WithVectors<kWidest>(aligned, [&](auto vec) {
        const unsigned columns = BlocksFor(dx.cols, kWarp * vec);
        Launch(run.stream, {{BlocksFor(dx.rows, kRowWarps), columns}, {kRowThreads}}, ScatterTokens<T, G, vec>, from,
               ids, order, dx.rows, dx.cols, tokens, static_cast<int32_t>(call.attrs(kEmbeddingBackward).first),
               static_cast<int32_t>(d_wte.rows));
        if (positions == nullptr) return;
        Launch(run.stream, {{BlocksFor(seq, kRowWarps), columns}, {kRowThreads}}, SumPositions<T, G, vec>, from, seq,
               dx.rows / seq, dx.cols, positions);
      });
    });
  });
}

}  // namespace

void AddEmbeddingCuda(CudaKernelTable& table) {
  table[&kEmbedding].run = &EmbeddingCuda;
  table[&kEmbeddingBackward].run = &EmbeddingBackwardCuda;
}

}  // namespace ridgeline::engine
