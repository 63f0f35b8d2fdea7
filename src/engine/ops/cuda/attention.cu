// Multiplies tiles of queries with tiles of keys (FlashAttention-2), in fp32 for any operand type. Handles every shape
// that the op takes; cuDNN handles some of them. A block computes the results' rows of one tile and kCols of their
// columns. A head with more columns has more blocks, and each computes the scores again. Every sum has a fixed order,
// so results repeat to the bit.
//
// It moves each operand once for every tile that needs it, mostly from the L2 cache, and is bound by fp32 arithmetic
// outside of tensor cores (67 TFLOP/s at most on an H200). One sequence of 8192 with 32 heads of 128 takes 0.55 TFLOP
// forward, 8.2 ms at that rate, and 1.9 TFLOP backward (7 products, two of them again for dq), 29 ms. The bytes of the
// operands, 168 MB and 336 MB in bf16, would take 39 and 78 us. A third of the rate is expected; no GPU has run it.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/registers.cuh"
#include "engine/device/cuda/types.h"
#include "engine/ops/attention.h"
#include "engine/ops/cuda/attention_cudnn.h"
#include "engine/ops/cuda/kernels.h"

namespace ridgeline::engine {
namespace {

constexpr int kAttentionTile = 64;  // queries per tile, and keys per tile
constexpr int kDepth = 32;          // columns or rows of an operand in shared memory at a time
constexpr int kGroup = 4;           // numbers loaded and stored at once
constexpr int kAcross = 16;         // threads across a tile and down it, each with a group of groups
constexpr int kAttentionThreads = kAcross * kAcross;
constexpr float kLog2E = std::numbers::log2e_v<float>;
static_assert(kAttentionTile == kAcross * kGroup);

using Group = Vec<float, kGroup>;
using Scores = float[kGroup][kGroup];  // a thread's scores: its rows, its columns

__device__ int Across() { return static_cast<int>(threadIdx.x) % kAcross; }
__device__ int Down() { return static_cast<int>(threadIdx.x) / kAcross; }

// A head of one batch element: rows of a (tokens, heads * head_dim) tensor. Elements outside of it read as 0 and are
// not written.
template <typename T>
struct Head {
  T* data;
  int64_t row_stride;
  int64_t rows;
  int cols;
  bool whole_groups;  // groups are aligned to their size, and none ends beyond the head

  __device__ Group Load(int64_t row, int col) const {
    Group x{};
    if (row >= rows || col >= cols) return x;
    const T* from = data + row * row_stride + col;
    if (whole_groups) {
      const Vec<T, kGroup> group = LoadVec<T, kGroup>(from);
      for (int i = 0; i < kGroup; ++i) x.of[i] = ToFloat(group.of[i]);
    } else {
      for (int i = 0; i < kGroup && col + i < cols; ++i) x.of[i] = ToFloat(from[i]);
    }
    return x;
  }
  __device__ void Store(int64_t row, int col, const float (&x)[kGroup], float factor) const {
    if (row >= rows || col >= cols) return;
    T* to = data + row * row_stride + col;
    if (whole_groups) {
      Vec<T, kGroup> group;
      for (int i = 0; i < kGroup; ++i) group.of[i] = FromFloat<T>(x[i] * factor);
      StoreVec(to, group);
    } else {
      for (int i = 0; i < kGroup && col + i < cols; ++i) to[i] = FromFloat<T>(x[i] * factor);
    }
  }
};

// The op's inputs of a kernel.
template <typename T>
struct Call {
  AttentionShape shape;
  bool whole_groups;
  struct Heads {
    T* data;
    int64_t row_stride;
  } q, k, v, o, d_o, dq, dk, dv;
  float* lse;
  float* delta;

  __device__ Head<T> Of(const Heads& heads, int64_t batch, int64_t head) const {
    return {heads.data + batch * shape.seq * heads.row_stride + head * shape.head_dim, heads.row_stride, shape.seq,
            static_cast<int>(shape.head_dim), whole_groups};
  }
  __device__ int64_t KvHead(int64_t head) const { return head / (shape.heads / shape.kv_heads); }
  __device__ float Scale() const { return 1 / sqrtf(static_cast<float>(shape.head_dim)); }
};

// kRows rows of kAttentionTile numbers in shared memory. The order of groups changes every four rows. So neither
// writers, which go down the rows, nor readers, which go along one, have bank conflicts.
template <int kRows>
struct Tile {
  Group groups[kRows][kAcross];

  __device__ Group& At(int row, int group) { return groups[row][group ^ (row / 4 % 8)]; }

  // Loads a head's columns from `col` on as rows, and the head's rows from `first` on as columns.
  template <typename T>
  __device__ void LoadTurned(const Head<T>& head, int64_t first, int col) {
    constexpr int kGroups = kRows / kGroup;
    for (int i = static_cast<int>(threadIdx.x); i < kAttentionTile * kGroups; i += kAttentionThreads) {
      const int row = i / kGroups;
      const int at = i % kGroups * kGroup;
      const Group x = head.Load(first + row, col + at);
      for (int j = 0; j < kGroup; ++j) At(at + j, row / kGroup).of[row % kGroup] = x.of[j];
    }
  }
  // Stores each thread's part of a tile, with its columns as rows.
  __device__ void StoreTurned(const Scores& scores) {
    for (int j = 0; j < kGroup; ++j) {
      At(Across() * kGroup + j, Down()) = {{scores[0][j], scores[1][j], scores[2][j], scores[3][j]}};
    }
  }
};

// kDepth rows of kCols numbers.
template <int kCols>
struct Rows {
  Group groups[kDepth][kCols / kGroup];

  template <typename T>
  __device__ void Load(const Head<T>& head, int64_t first, int col) {
    constexpr int kGroups = kCols / kGroup;
    for (int i = static_cast<int>(threadIdx.x); i < kDepth * kGroups; i += kAttentionThreads) {
      groups[i / kGroups][i % kGroups] = head.Load(first + i / kGroups, col + i % kGroups * kGroup);
    }
  }
};

// The shared memory for products of two heads' rows, and for products of a tile with a head's rows.
template <int kCols>
union Operands {
  struct {
    Tile<kDepth> a, b;
  } turned;
  Rows<kCols> rows;
};

// Multiplies a's rows from `row` on, over the threads down the tile, with b's from `col` on, over the threads across.
template <typename T, int kCols>
__device__ void Multiply(const Head<T>& a, int64_t row, const Head<T>& b, int64_t col, Operands<kCols>& operands,
                         Scores& scores) {
  for (auto& line : scores) {
    for (float& x : line) x = 0;
  }
  Tile<kDepth>& as = operands.turned.a;
  Tile<kDepth>& bs = operands.turned.b;
  for (int depth = 0; depth < a.cols; depth += kDepth) {
    __syncthreads();  // the previous contents have been read
    as.LoadTurned(a, row, depth);
    bs.LoadTurned(b, col, depth);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      const Group x = as.At(k, Down());
      const Group y = bs.At(k, Across());
      for (int i = 0; i < kGroup; ++i) {
        for (int j = 0; j < kGroup; ++j) scores[i][j] = fmaf(x.of[i], y.of[j], scores[i][j]);
      }
    }
  }
}

// A thread's part of kAttentionTile rows of results: groups of columns, at distances of kAcross groups.
template <int kCols>
struct Results {
  static constexpr int kGroups = kCols / kAttentionTile;
  float of[kGroup][kGroups][kGroup] = {};

  // += tile^T times the head's rows from `first` on and its columns from `col` on. The tile must have been stored since
  // the block's last barrier.
  template <typename T>
  __device__ void Add(Tile<kAttentionTile>& tile, const Head<T>& head, int64_t first, int col,
                      Operands<kCols>& operands) {
    for (int part = 0; part < kAttentionTile; part += kDepth) {
      __syncthreads();
      operands.rows.Load(head, first + part, col);
      __syncthreads();
      for (int k = 0; k < kDepth; ++k) {
        const Group x = tile.At(part + k, Down());
        for (int g = 0; g < kGroups; ++g) {
          const Group y = operands.rows.groups[k][Across() + g * kAcross];
          for (int i = 0; i < kGroup; ++i) {
            for (int j = 0; j < kGroup; ++j) of[i][g][j] = fmaf(x.of[i], y.of[j], of[i][g][j]);
          }
        }
      }
    }
  }
  template <typename T>
  __device__ void Store(const Head<T>& head, int64_t first, int col, const float (&factors)[kGroup]) const {
    for (int i = 0; i < kGroup; ++i) {
      for (int g = 0; g < kGroups; ++g) {
        head.Store(first + Down() * kGroup + i, col + (Across() + g * kAcross) * kGroup, of[i][g], factors[i]);
      }
    }
  }
};

// Reduces over the threads across a tile; all of them get the result.
__device__ float AcrossMax(float x) {
  for (int lanes = kAcross / 2; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lanes));
  return x;
}
__device__ float AcrossSum(float x) {
  for (int lanes = kAcross / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}

// The tile, head and columns of a block.
struct Task {
  int64_t batch, head, first;  // the tile's first row
  int col;
};
// Blocks in numerical order: all heads' columns of one tile, then those of the next.
template <int kCols>
__device__ Task TaskOf(const AttentionShape& shape, int64_t heads, bool last_first) {
  const int64_t parts = (shape.head_dim + kCols - 1) / kCols;
  const int64_t tiles = (shape.seq + kAttentionTile - 1) / kAttentionTile;
  int64_t block = blockIdx.x;
  const auto col = static_cast<int>(block % parts * kCols);
  block /= parts;
  const int64_t batch_head = block % (shape.batch * heads);
  const int64_t tile = block / (shape.batch * heads);
  return {batch_head / heads, batch_head % heads, (last_first ? tiles - 1 - tile : tile) * kAttentionTile, col};
}
template <int kCols>
dim3 Grid(const AttentionShape& shape, int64_t heads) {
  return {BlocksFor(shape.head_dim, kCols) * BlocksFor(shape.seq, kAttentionTile) * BlocksFor(shape.batch * heads, 1)};
}

template <int kCols>
struct ForwardShared {
  Operands<kCols> operands;
  Tile<kAttentionTile> p;  // one row per key
};

// Computes a tile of queries against all keys that it sees.
template <typename T, int kCols>
__global__ void __launch_bounds__(kAttentionThreads) Forward(Call<T> call) {
  auto& shared = *DynamicShared<ForwardShared<kCols>>();
  const AttentionShape& shape = call.shape;
  const Task task = TaskOf<kCols>(shape, shape.heads, true);  // the last queries see the most keys
  const Head<T> q = call.Of(call.q, task.batch, task.head);
  const Head<T> k = call.Of(call.k, task.batch, call.KvHead(task.head));
  const Head<T> v = call.Of(call.v, task.batch, call.KvHead(task.head));
  const float scale = call.Scale() * kLog2E;
  const int64_t query = task.first + Down() * kGroup;  // the thread's first query

  Results<kCols> out;
  float row_max[kGroup];
  float row_sum[kGroup] = {};  // over the thread's own columns
  for (float& x : row_max) x = -INFINITY;
  for (int64_t first = 0; first <= task.first; first += kAttentionTile) {
    Scores scores;
    Multiply(q, task.first, k, first, shared.operands, scores);
    const int64_t key = first + Across() * kGroup;
    for (int i = 0; i < kGroup; ++i) {
      float largest = row_max[i];
      for (int j = 0; j < kGroup; ++j) {
        scores[i][j] = key + j <= query + i ? scores[i][j] * scale : -INFINITY;
        largest = fmaxf(largest, scores[i][j]);
      }
      // Finite, because every query of a tile sees the first key, even beyond the sequence.
      largest = AcrossMax(largest);
      const float fading = exp2f(row_max[i] - largest);
      row_max[i] = largest;
      row_sum[i] *= fading;
      for (int j = 0; j < kGroup; ++j) row_sum[i] += scores[i][j] = exp2f(scores[i][j] - largest);
      for (auto& group : out.of[i]) {
        for (float& x : group) x *= fading;
      }
    }
    shared.p.StoreTurned(scores);
    out.Add(shared.p, v, first, task.col, shared.operands);
  }

  float factors[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    const float sum = AcrossSum(row_sum[i]);
    factors[i] = 1 / sum;
    if (Across() == 0 && task.col == 0 && query + i < shape.seq) {
      call.lse[(task.batch * shape.heads + task.head) * shape.seq + query + i] = (row_max[i] + log2f(sum)) / kLog2E;
    }
  }
  out.Store(call.Of(call.o, task.batch, task.head), task.first, task.col, factors);
}

// delta = the sums of o * d_o over a head, one warp each.
template <typename T>
__global__ void __launch_bounds__(kAttentionThreads) Delta(Call<T> call) {
  const AttentionShape& shape = call.shape;
  const int64_t at = int64_t{blockIdx.x} * (kAttentionThreads / kWarp) + threadIdx.x / kWarp;
  if (at >= shape.batch * shape.heads * shape.seq) return;
  const int64_t row = at % shape.seq;
  const int64_t batch_head = at / shape.seq;
  const Head<T> o = call.Of(call.o, batch_head / shape.heads, batch_head % shape.heads);
  const Head<T> d_o = call.Of(call.d_o, batch_head / shape.heads, batch_head % shape.heads);
  float sum = 0;
  for (int col = static_cast<int>(threadIdx.x) % kWarp * kGroup; col < o.cols; col += kWarp * kGroup) {
    const Group x = o.Load(row, col);
    const Group y = d_o.Load(row, col);
    for (int i = 0; i < kGroup; ++i) sum += x.of[i] * y.of[i];
  }
  sum = WarpSum(sum);
  if (threadIdx.x % kWarp == 0) call.delta[at] = sum;
}

// One score's probability and its gradient (without the scale), from q k^T and d_o v^T.
struct ScoreGradient {
  float p = 0;
  float ds = 0;

  // lse and delta belong to the query; a query beyond the sequence sees nothing.
  __device__ ScoreGradient(float product, float dp, float scale, float lse, float delta, int64_t query, int64_t key,
                           int64_t seq) {
    if (key > query || query >= seq) return;
    p = exp2f(product * scale - lse * kLog2E);
    // A sequence's first query sees one key, with probability 1 for any score, so the score's gradient is zero. The
    // rounding error left in dp - delta would otherwise look like a gradient to Adam, which divides by its size.
    if (query != 0) ds = p * (dp - delta);
  }
};

template <int kCols>
struct KeySideShared {
  Operands<kCols> operands;
  Tile<kAttentionTile> p, ds;  // one row per query
};

// Computes dk and dv of a tile of keys, from all queries of all heads that see it.
template <typename T, int kCols>
__global__ void __launch_bounds__(kAttentionThreads, kBlocksAtLeast) KeySide(Call<T> call) {
  auto& shared = *DynamicShared<KeySideShared<kCols>>();
  const AttentionShape& shape = call.shape;
  const Task task = TaskOf<kCols>(shape, shape.kv_heads, false);  // the first keys are seen by the most queries
  const Head<T> k = call.Of(call.k, task.batch, task.head);
  const Head<T> v = call.Of(call.v, task.batch, task.head);
  const float scale = call.Scale();
  const int64_t key = task.first + Down() * kGroup;

  Results<kCols> dk;
  Results<kCols> dv;
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t head = task.head * group; head < (task.head + 1) * group; ++head) {
    const Head<T> q = call.Of(call.q, task.batch, head);
    const Head<T> d_o = call.Of(call.d_o, task.batch, head);
    const int64_t sums = (task.batch * shape.heads + head) * shape.seq;
    for (int64_t first = task.first; first < shape.seq; first += kAttentionTile) {
      Scores p;
      Scores ds;
      Multiply(k, task.first, q, first, shared.operands, p);
      Multiply(v, task.first, d_o, first, shared.operands, ds);
      for (int j = 0; j < kGroup; ++j) {
        const int64_t query = first + Across() * kGroup + j;
        const bool there = query < shape.seq;
        const float lse = there ? call.lse[sums + query] : 0;
        const float delta = there ? call.delta[sums + query] : 0;
        for (int i = 0; i < kGroup; ++i) {
          const ScoreGradient score(p[i][j], ds[i][j], scale * kLog2E, lse, delta, query, key + i, shape.seq);
          p[i][j] = score.p;
          ds[i][j] = score.ds;
        }
      }
      shared.p.StoreTurned(p);
      shared.ds.StoreTurned(ds);
      dv.Add(shared.p, d_o, first, task.col, shared.operands);
      dk.Add(shared.ds, q, first, task.col, shared.operands);
    }
  }
  dv.Store(call.Of(call.dv, task.batch, task.head), task.first, task.col, {1, 1, 1, 1});
  dk.Store(call.Of(call.dk, task.batch, task.head), task.first, task.col, {scale, scale, scale, scale});
}

template <int kCols>
struct QuerySideShared {
  Operands<kCols> operands;
  Tile<kAttentionTile> ds;  // one row per key
};

// Computes dq of a tile of queries, from all keys that it sees.
template <typename T, int kCols>
__global__ void __launch_bounds__(kAttentionThreads) QuerySide(Call<T> call) {
  auto& shared = *DynamicShared<QuerySideShared<kCols>>();
  const AttentionShape& shape = call.shape;
  const Task task = TaskOf<kCols>(shape, shape.heads, true);
  const Head<T> q = call.Of(call.q, task.batch, task.head);
  const Head<T> d_o = call.Of(call.d_o, task.batch, task.head);
  const Head<T> k = call.Of(call.k, task.batch, call.KvHead(task.head));
  const Head<T> v = call.Of(call.v, task.batch, call.KvHead(task.head));
  const float scale = call.Scale();
  const int64_t query = task.first + Down() * kGroup;
  const int64_t sums = (task.batch * shape.heads + task.head) * shape.seq + query;
  float lse[kGroup] = {};
  float delta[kGroup] = {};
  for (int i = 0; i < kGroup && query + i < shape.seq; ++i) {
    lse[i] = call.lse[sums + i];
    delta[i] = call.delta[sums + i];
  }

  Results<kCols> dq;
  for (int64_t first = 0; first <= task.first; first += kAttentionTile) {
    Scores products;
    Scores ds;
    Multiply(q, task.first, k, first, shared.operands, products);
    Multiply(d_o, task.first, v, first, shared.operands, ds);
    const int64_t key = first + Across() * kGroup;
    for (int i = 0; i < kGroup; ++i) {
      for (int j = 0; j < kGroup; ++j) {
        ds[i][j] =
            ScoreGradient(products[i][j], ds[i][j], scale * kLog2E, lse[i], delta[i], query + i, key + j, shape.seq).ds;
      }
    }
    shared.ds.StoreTurned(ds);
    dq.Add(shared.ds, k, first, task.col, shared.operands);
  }
  dq.Store(call.Of(call.dq, task.batch, task.head), task.first, task.col, {scale, scale, scale, scale});
}

template <typename T>
typename Call<T>::Heads Operand(const Tensor& t, const CudaRun& run, bool& whole_groups) {
  auto* data = run.Data<T>(t);
  whole_groups =
      whole_groups && t.row_stride % kGroup == 0 && reinterpret_cast<uintptr_t>(data) % (kGroup * sizeof(T)) == 0;
  return {data, t.row_stride};
}

// Calls fn with the number of columns of a block's results: those of a head, up to two tiles of them.
template <typename Fn>
void WithColumns(int64_t head_dim, const Fn& fn) {
  if (head_dim <= kAttentionTile) return fn(std::integral_constant<int, kAttentionTile>());
  fn(std::integral_constant<int, 2 * kAttentionTile>());
}

void AttentionForwardCuda(const OpCall& op_call, const CudaRun& run, KernelState* state) {
  if (AttentionForwardCudnn(op_call, run, state)) return;
  const auto on = op_call.operands(kAttentionForward);
  WithCudaType(on.reads.q.dtype, [&](auto type) {
    using T = decltype(type);
    Call<T> call{};
    call.shape = op_call.attrs(kAttentionForward);
    call.whole_groups = call.shape.head_dim % kGroup == 0;
    call.q = Operand<T>(on.reads.q, run, call.whole_groups);
    call.k = Operand<T>(on.reads.k, run, call.whole_groups);
    call.v = Operand<T>(on.reads.v, run, call.whole_groups);
    call.o = Operand<T>(on.writes.o, run, call.whole_groups);
    call.lse = run.Data<float>(on.writes.lse);
    WithColumns(call.shape.head_dim, [&](auto cols) {
      Launch(run.stream, {Grid<cols>(call.shape, call.shape.heads), kAttentionThreads, sizeof(ForwardShared<cols>)},
             Forward<T, cols>, call);
    });
  });
}

// dq is summed in registers, so only delta of the scratch is used.
void AttentionBackwardCuda(const OpCall& op_call, const CudaRun& run, KernelState* state) {
  if (AttentionBackwardCudnn(op_call, run, state)) return;
  const auto on = op_call.operands(kAttentionBackward);
  WithCudaType(on.reads.q.dtype, [&](auto type) {
    using T = decltype(type);
    Call<T> call{};
    call.shape = op_call.attrs(kAttentionBackward);
    call.whole_groups = call.shape.head_dim % kGroup == 0;
    call.d_o = Operand<T>(on.reads.d_o, run, call.whole_groups);
    call.q = Operand<T>(on.reads.q, run, call.whole_groups);
    call.k = Operand<T>(on.reads.k, run, call.whole_groups);
    call.v = Operand<T>(on.reads.v, run, call.whole_groups);
    call.o = Operand<T>(on.reads.o, run, call.whole_groups);
    call.dq = Operand<T>(on.writes.dq, run, call.whole_groups);
    call.dk = Operand<T>(on.writes.dk, run, call.whole_groups);
    call.dv = Operand<T>(on.writes.dv, run, call.whole_groups);
    call.lse = run.Data<float>(on.reads.lse);
    call.delta = run.Data<float>(on.scratch.delta);
    const AttentionShape& s = call.shape;
    Launch(run.stream, {{BlocksFor(s.batch * s.heads * s.seq, kAttentionThreads / kWarp)}, kAttentionThreads}, Delta<T>,
           call);
    WithColumns(s.head_dim, [&](auto cols) {
      Launch(run.stream, {Grid<cols>(s, s.kv_heads), kAttentionThreads, sizeof(KeySideShared<cols>)}, KeySide<T, cols>,
             call);
      Launch(run.stream, {Grid<cols>(s, s.heads), kAttentionThreads, sizeof(QuerySideShared<cols>)}, QuerySide<T, cols>,
             call);
    });
  });
}

}  // namespace

void AddAttentionCuda(CudaKernelTable& table) {
  table[&kAttentionForward] = {AttentionForwardCuda, PrepareAttentionForwardCudnn};
  table[&kAttentionBackward] = {AttentionBackwardCuda, PrepareAttentionBackwardCudnn};
}

}  // namespace ridgeline::engine
