// Blocks of queries against blocks of keys (FlashAttention-2). oneDNN computes the products of blocks, each on one
// thread; attention_rows.cc does the rest. A task's result does not depend on the thread that runs it, nor on the
// number of threads.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "engine/device/kernel_state.h"
#include "engine/ops/attention.h"
#include "engine/ops/cpu/attention_rows.h"
#include "engine/ops/cpu/gemm_onednn.h"
#include "engine/ops/cpu/gemm_panels.h"
#include "engine/ops/cpu/gemm_rows.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/cpu/scratch.h"
#include "engine/ops/cpu/simd_targets.h"

namespace ridgeline::engine {
namespace {

// Measured best on cores with 1 MiB of second-level cache (bench/ops_bench.cc).
constexpr int64_t kBlockRows = 128;
// Queries of a forward task: more than a block, so that a block of keys, once packed, serves more of them.
constexpr int64_t kTaskRows = 4 * kBlockRows;
constexpr float kLog2E = std::numbers::log2e_v<float>;

int64_t Blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

// A head's columns of a (tokens, heads * head_dim) tensor, for one batch element's rows.
struct HeadView {
  std::byte* data;
  int64_t row_bytes;
  DType dtype;

  HeadView(const CpuRun& run, const Tensor& t, const AttentionShape& shape, int64_t batch, int64_t head)
      : row_bytes(t.row_stride * SizeOf(t.dtype)), dtype(t.dtype) {
    Tensor bytes = t;
    bytes.offset = (t.offset + head * shape.head_dim) * SizeOf(t.dtype);
    data = run.Data<std::byte>(bytes) + batch * shape.seq * row_bytes;
  }
  std::byte* Row(int64_t row) const { return data + row * row_bytes; }
};

// Carves parts from a thread's buffer, one after another. Without a buffer, it only counts bytes.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <typename T>
  T* Take(int64_t count) {
    auto* part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return part;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

// One buffer per thread of OpenMP, for all attention calls.
struct Scratch {
  std::vector<AlignedBuffer> threads;
  std::byte* Reserve(size_t thread, int64_t bytes) {
    if (threads.size() <= thread) threads.resize(thread + 1);
    return threads[thread].Reserve(bytes);
  }
};

// A process may have a rank on each of several threads, as tests do. So each of these has its own.
SharedCache<int, Scratch>& Scratches() {
  thread_local SharedCache<int, Scratch> scratches;
  return scratches;
}
std::shared_ptr<Scratch> SharedScratch() {
  return Scratches().Get(0, [] { return std::make_shared<Scratch>(); });
}

// Queries [query, query + queries) against keys [key, key + keys).
struct BlockPair {
  int64_t query = 0, queries = 0;
  int64_t key = 0, keys = 0;
};

// Calls fn for the parts of a pair of equal blocks on the diagonal that are not wholly above it: two triangles with a
// square between them. One triangle is joined with the square.
template <typename Fn>
void ForDiagonal(int64_t first, int64_t rows, bool by_query, const Fn& fn) {
  constexpr int64_t kHalf = kBlockRows / 2;
  if (rows <= kHalf) {
    fn(BlockPair{first, rows, first, rows});
  } else if (by_query) {
    fn(BlockPair{first, kHalf, first, kHalf});
    fn(BlockPair{first + kHalf, rows - kHalf, first, rows});
  } else {
    fn(BlockPair{first, rows, first, kHalf});
    fn(BlockPair{first + kHalf, rows - kHalf, first + kHalf, rows - kHalf});
  }
}

// A product for every pair of block sizes in a sequence.
class BlockProduct {
 public:
  // make(queries, keys) returns the shape.
  template <typename Make>
  BlockProduct(int64_t seq, bool by_query, const Make& make) {
    const auto add = [&](const BlockPair& pair) {
      if (Find(pair) != nullptr) return;
      MatmulShape s = make(pair.queries, pair.keys);
      s.lda = s.trans_a ? s.m : s.k;
      s.ldb = s.trans_b ? s.k : s.n;
      s.ldc = s.n;
      sizes_.push_back({pair.queries, pair.keys, Matmul(s)});
      scratch_bytes_ = std::max(scratch_bytes_, sizes_.back().matmul.scratch_bytes());
    };
    const int64_t tail = (seq - 1) % kBlockRows + 1;
    for (const int64_t rows : {std::min(seq, kBlockRows), tail}) {
      ForDiagonal(0, rows, by_query, add);
      if (seq > kBlockRows) add({0, rows, 0, kBlockRows});
    }
  }
  Matmul& For(const BlockPair& pair) { return *Find(pair); }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Size {
    int64_t queries, keys;
    Matmul matmul;
  };
  Matmul* Find(const BlockPair& pair) {
    for (Size& size : sizes_) {
      if (size.queries == pair.queries && size.keys == pair.keys) return &size.matmul;
    }
    return nullptr;
  }
  std::vector<Size> sizes_;
  int64_t scratch_bytes_ = 0;
};

// Returns the dtype in which the blocks of a call are multiplied.
DType ComputeType(DType dtype) { return dtype == DType::kBF16 && CpuMultipliesBf16() ? DType::kBF16 : DType::kF32; }

MatmulShape Product(DType dtype, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool accumulate) {
  MatmulShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.trans_a = trans_a;
  s.trans_b = trans_b;
  s.in = dtype;
  s.accumulate = accumulate;
  return s;
}

// Copies rows of a head, dense and in the dtype of the products.
void Pack(const HeadView& from, int64_t row, int64_t rows, int64_t head_dim, DType to_dtype, std::byte* to) {
  const int64_t to_bytes = head_dim * SizeOf(to_dtype);
  for (int64_t r = 0; r < rows; ++r) {
    if (from.dtype == to_dtype) {
      std::memcpy(to + r * to_bytes, from.Row(row + r), static_cast<size_t>(to_bytes));
    } else {
      WidenRow(from.Row(row + r), from.dtype, reinterpret_cast<float*>(to + r * to_bytes), head_dim);
    }
  }
}

void Unpack(const float* from, const HeadView& to, int64_t row, int64_t rows, int64_t head_dim) {
  for (int64_t r = 0; r < rows; ++r) {
    FinishRow(from + r * head_dim, 1, nullptr, to.Row(row + r), to.dtype, false, head_dim);
  }
}

// Calls fn(thread, task) for every task, starting the first ones first.
template <typename Fn>
void ForTasks(int64_t tasks, size_t most_threads, const Fn& fn) {
  const auto threads = static_cast<int>(
      std::min({tasks, static_cast<int64_t>(most_threads), static_cast<int64_t>(omp_get_max_threads())}));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t task = 0; task < tasks; ++task) fn(static_cast<size_t>(omp_get_thread_num()), task);
}

float PlainScale(const AttentionShape& shape) { return 1 / std::sqrt(static_cast<float>(shape.head_dim)); }

class ForwardState : public KernelState {
 public:
  static constexpr const auto& kOp = kAttentionForward;

  ForwardState(const AttentionShape& shape, DType dtype)
      : shape_(shape), compute_(ComputeType(dtype)), scratch_(SharedScratch()) {
    const int64_t d = shape.head_dim;
    for (int thread = 0; thread < omp_get_max_threads(); ++thread) {
      threads_.push_back({
          BlockProduct(shape.seq, true,
                       [&](int64_t q, int64_t k) { return Product(compute_, q, k, d, false, true, false); }),
          BlockProduct(shape.seq, true,
                       [&](int64_t q, int64_t k) { return Product(compute_, q, d, k, false, false, true); }),
      });
      scratch_->Reserve(threads_.size() - 1, Buffers(nullptr, *this, threads_.back()).bytes);
    }
  }

  void Run(const OpCall& call, const CpuRun& run) {
    const AttentionForwardOperands on = call.operands(kAttentionForward);
    const int64_t parts = Blocks(shape_.seq, kTaskRows);
    const int64_t heads = shape_.batch * shape_.heads;
    // The last queries see the most keys. Starting with them balances the threads.
    ForTasks(heads * parts, threads_.size(), [&](size_t thread, int64_t task) {
      RunPart(on, run, thread, task % heads, (parts - 1 - task / heads) * kTaskRows);
    });
  }

 private:
  struct Thread {
    BlockProduct scores;  // q k^T
    BlockProduct output;  // += p v
  };
  struct Buffers {
    Buffers(std::byte* base, const ForwardState& state, const Thread& thread) {
      const int64_t size = SizeOf(state.compute_);
      const int64_t d = state.shape_.head_dim;
      Carver carver(base);
      scores = carver.Take<float>(kBlockRows * kBlockRows);
      out = carver.Take<float>(kTaskRows * d);
      row_max = carver.Take<float>(kTaskRows);
      row_sum = carver.Take<float>(kTaskRows);
      p = carver.Take<std::byte>(kBlockRows * kBlockRows * size);
      q = carver.Take<std::byte>(kTaskRows * d * size);
      k = carver.Take<std::byte>(kBlockRows * d * size);
      v = carver.Take<std::byte>(kBlockRows * d * size);
      onednn = carver.Take<std::byte>(std::max(thread.scores.scratch_bytes(), thread.output.scratch_bytes()));
      bytes = carver.used();
    }
    float *scores, *out, *row_max, *row_sum;
    std::byte *p, *q, *k, *v, *onednn;
    int64_t bytes;
  };

  // Computes kTaskRows queries of one head from `first` on, against all keys that they see.
  void RunPart(const AttentionForwardOperands& on, const CpuRun& run, size_t thread, int64_t batch_head,
               int64_t first) {
    const int64_t batch = batch_head / shape_.heads;
    const int64_t head = batch_head % shape_.heads;
    const int64_t kv_head = head / (shape_.heads / shape_.kv_heads);
    const int64_t d = shape_.head_dim;
    const HeadView q(run, on.reads.q, shape_, batch, head);
    const HeadView k(run, on.reads.k, shape_, batch, kv_head);
    const HeadView v(run, on.reads.v, shape_, batch, kv_head);
    const HeadView o(run, on.writes.o, shape_, batch, head);
    Thread& products = threads_[thread];
    const Buffers buffers(scratch_->threads[thread].data(), *this, products);

    const int64_t rows = std::min(kTaskRows, shape_.seq - first);
    Pack(q, first, rows, d, compute_, buffers.q);
    std::fill_n(buffers.out, rows * d, 0.0F);
    std::fill_n(buffers.row_max, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(buffers.row_sum, rows, 0.0F);
    const int64_t row_bytes = d * SizeOf(compute_);
    const auto add = [&](const BlockPair& pair) {
      const int64_t row = pair.query - first;
      float* out = buffers.out + row * d;
      products.scores.For(pair).Run(buffers.q + row * row_bytes, buffers.k, buffers.scores, nullptr, buffers.onednn);
      AddSoftmaxBlock({buffers.scores, pair.queries, pair.keys, pair.query - pair.key + 1, PlainScale(shape_) * kLog2E,
                       buffers.row_max + row, buffers.row_sum + row, out, d},
                      buffers.p, compute_);
      products.output.For(pair).Run(buffers.p, buffers.v, out, nullptr, buffers.onednn);
    };
    for (int64_t key = 0; key < first + rows; key += kBlockRows) {
      const int64_t keys = std::min(kBlockRows, shape_.seq - key);
      Pack(k, key, keys, d, compute_, buffers.k);
      Pack(v, key, keys, d, compute_, buffers.v);
      for (int64_t query = std::max(first, key); query < first + rows; query += kBlockRows) {
        if (key < query) {
          add({query, std::min(kBlockRows, shape_.seq - query), key, keys});
        } else {
          ForDiagonal(query, keys, true, add);
        }
      }
    }
    float* lse = run.Data<float>(on.writes.lse) + batch_head * shape_.seq + first;
    for (int64_t row = 0; row < rows; ++row) {
      ScaleRow(buffers.out + row * d, 1 / buffers.row_sum[row], d);
      lse[row] = (buffers.row_max[row] + std::log2(buffers.row_sum[row])) / kLog2E;
    }
    Unpack(buffers.out, o, first, rows, d);
  }

  AttentionShape shape_;
  DType compute_;
  std::shared_ptr<Scratch> scratch_;
  std::vector<Thread> threads_;
};

class BackwardState : public KernelState {
 public:
  static constexpr const auto& kOp = kAttentionBackward;

  BackwardState(const AttentionShape& shape, DType dtype)
      : shape_(shape), compute_(ComputeType(dtype)), scratch_(SharedScratch()) {
    const int64_t d = shape.head_dim;
    for (int thread = 0; thread < omp_get_max_threads(); ++thread) {
      threads_.push_back({
          BlockProduct(shape.seq, false,
                       [&](int64_t q, int64_t k) { return Product(compute_, k, q, d, false, true, false); }),
          BlockProduct(shape.seq, false,
                       [&](int64_t q, int64_t k) { return Product(compute_, k, d, q, false, false, true); }),
          BlockProduct(shape.seq, false,
                       [&](int64_t q, int64_t k) { return Product(compute_, q, d, k, true, false, true); }),
      });
      scratch_->Reserve(threads_.size() - 1, Buffers(nullptr, *this, threads_.back()).bytes);
    }
  }

  void Run(const OpCall& call, const CpuRun& run) {
    const AttentionBackwardOperands on = call.operands(kAttentionBackward);
    ForTasks(shape_.batch * shape_.kv_heads, threads_.size(),
             [&](size_t thread, int64_t task) { RunHead(on, run, thread, task); });
  }

 private:
  struct Thread {
    BlockProduct scores;      // k q^T, and v d_o^T
    BlockProduct key_side;    // dv += p^T d_o, and dk += ds^T q
    BlockProduct query_side;  // dq += ds k
  };
  struct Buffers {
    Buffers(std::byte* base, const BackwardState& state, const Thread& thread) {
      const int64_t size = SizeOf(state.compute_);
      const int64_t d = state.shape_.head_dim;
      Carver carver(base);
      scores = carver.Take<float>(kBlockRows * kBlockRows);
      dp = carver.Take<float>(kBlockRows * kBlockRows);
      dk = carver.Take<float>(kBlockRows * d);
      dv = carver.Take<float>(kBlockRows * d);
      lse = carver.Take<float>(kBlockRows);
      p = carver.Take<std::byte>(kBlockRows * kBlockRows * size);
      ds = carver.Take<std::byte>(kBlockRows * kBlockRows * size);
      q = carver.Take<std::byte>(kBlockRows * d * size);
      d_o = carver.Take<std::byte>(kBlockRows * d * size);
      k = carver.Take<std::byte>(kBlockRows * d * size);
      v = carver.Take<std::byte>(kBlockRows * d * size);
      onednn = carver.Take<std::byte>(std::max(
          {thread.scores.scratch_bytes(), thread.key_side.scratch_bytes(), thread.query_side.scratch_bytes()}));
      bytes = carver.used();
    }
    float *scores, *dp, *dk, *dv, *lse;
    std::byte *p, *ds, *q, *d_o, *k, *v, *onednn;
    int64_t bytes;
  };

  // Computes a key-value head of one batch element with the query heads that read it.
  void RunHead(const AttentionBackwardOperands& on, const CpuRun& run, size_t thread, int64_t batch_head) {
    const int64_t batch = batch_head / shape_.kv_heads;
    const int64_t kv_head = batch_head % shape_.kv_heads;
    const int64_t group = shape_.heads / shape_.kv_heads;
    const int64_t d = shape_.head_dim;
    const int64_t seq = shape_.seq;
    const HeadView k(run, on.reads.k, shape_, batch, kv_head);
    const HeadView v(run, on.reads.v, shape_, batch, kv_head);
    const HeadView dk(run, on.writes.dk, shape_, batch, kv_head);
    const HeadView dv(run, on.writes.dv, shape_, batch, kv_head);
    Thread& products = threads_[thread];
    const Buffers buffers(scratch_->threads[thread].data(), *this, products);

    const int64_t first_head = batch * shape_.heads + kv_head * group;      // over all batch elements
    float* delta = run.Data<float>(on.scratch.delta) + first_head * seq;    // (group, seq)
    float* dq = run.Data<float>(on.scratch.dq_sum) + first_head * seq * d;  // (group, seq, head_dim)
    const float* lse = run.Data<float>(on.reads.lse) + first_head * seq;
    for (int64_t member = 0; member < group; ++member) {
      const HeadView d_o(run, on.reads.d_o, shape_, batch, kv_head * group + member);
      const HeadView o(run, on.reads.o, shape_, batch, kv_head * group + member);
      for (int64_t row = 0; row < seq; ++row) {
        delta[member * seq + row] = DotRow(d_o.Row(row), o.Row(row), d_o.dtype, d);
      }
    }
    std::fill_n(dq, group * seq * d, 0.0F);

    for (int64_t key = 0; key < seq; key += kBlockRows) {
      const int64_t keys = std::min(kBlockRows, seq - key);
      Pack(k, key, keys, d, compute_, buffers.k);
      Pack(v, key, keys, d, compute_, buffers.v);
      std::fill_n(buffers.dk, keys * d, 0.0F);
      std::fill_n(buffers.dv, keys * d, 0.0F);
      for (int64_t member = 0; member < group; ++member) {
        const HeadView q(run, on.reads.q, shape_, batch, kv_head * group + member);
        const HeadView d_o(run, on.reads.d_o, shape_, batch, kv_head * group + member);
        for (int64_t query = key; query < seq; query += kBlockRows) {
          const int64_t queries = std::min(kBlockRows, seq - query);
          Pack(q, query, queries, d, compute_, buffers.q);
          Pack(d_o, query, queries, d, compute_, buffers.d_o);
          const int64_t at = member * seq + query;
          for (int64_t i = 0; i < queries; ++i) buffers.lse[i] = lse[at + i] * kLog2E;
          const auto add = [&](const BlockPair& pair) {
            AddPair(products, buffers, pair, pair.query - query, pair.key - key, delta + member * seq + pair.query,
                    dq + (member * seq + pair.query) * d);
          };
          if (query > key) {
            add({query, queries, key, keys});
          } else {
            ForDiagonal(key, keys, false, add);
          }
        }
      }
      Unpack(buffers.dk, dk, key, keys, d);
      Unpack(buffers.dv, dv, key, keys, d);
    }
    for (int64_t member = 0; member < group; ++member) {
      const HeadView to(run, on.writes.dq, shape_, batch, kv_head * group + member);
      Unpack(dq + member * seq * d, to, 0, seq, d);
    }
  }

  // Adds a pair of blocks' contributions to dk, dv and dq (its rows of it). `query` and `key`: where the pair begins in
  // the packed blocks.
  void AddPair(Thread& products, const Buffers& buffers, const BlockPair& pair, int64_t query, int64_t key,
               const float* delta, float* dq) const {
    const int64_t d = shape_.head_dim;
    const int64_t row_bytes = d * SizeOf(compute_);
    const std::byte* q = buffers.q + query * row_bytes;
    const std::byte* d_o = buffers.d_o + query * row_bytes;
    const std::byte* k = buffers.k + key * row_bytes;
    const std::byte* v = buffers.v + key * row_bytes;
    Matmul& scores = products.scores.For(pair);
    scores.Run(k, q, buffers.scores, nullptr, buffers.onednn);
    scores.Run(v, d_o, buffers.dp, nullptr, buffers.onednn);
    ScoreGradients({buffers.scores, buffers.dp, pair.keys, pair.queries, pair.key - pair.query,
                    PlainScale(shape_) * kLog2E, PlainScale(shape_), buffers.lse + query, delta},
                   buffers.p, buffers.ds, compute_);
    // A sequence's first query sees one key, with probability 1 whatever its score, so the score's gradient is zero. To
    // Adam, which divides by the gradient's size, the rounding errors of dp - delta would be as large as any gradient.
    if (pair.key == 0 && pair.query == 0) std::memset(buffers.ds, 0, static_cast<size_t>(SizeOf(compute_)));
    Matmul& key_side = products.key_side.For(pair);
    key_side.Run(buffers.p, d_o, buffers.dv + key * d, nullptr, buffers.onednn);
    key_side.Run(buffers.ds, q, buffers.dk + key * d, nullptr, buffers.onednn);
    products.query_side.For(pair).Run(buffers.ds, k, dq, nullptr, buffers.onednn);
  }

  AttentionShape shape_;
  DType compute_;
  std::shared_ptr<Scratch> scratch_;
  std::vector<Thread> threads_;
};

template <typename State>
std::shared_ptr<KernelState> Prepare(const OpCall& call) {
  thread_local SharedCache<std::array<int64_t, 7>, State> states;  // they have the thread's scratch
  const AttentionShape& s = call.attrs(State::kOp);
  const DType dtype = call.operands(State::kOp).reads.q.dtype;
  return states.Get(
      {s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, static_cast<int64_t>(dtype), omp_get_max_threads()},
      [&] { return std::make_shared<State>(s, dtype); });
}

template <typename State>
void Run(const OpCall& call, const CpuRun& run, KernelState* state) {
  static_cast<State*>(state)->Run(call, run);
}

}  // namespace

int64_t AttentionScratchBytes() {
  int64_t bytes = 0;
  for (const AlignedBuffer& buffer : SharedScratch()->threads) bytes += buffer.bytes();
  return bytes;
}

void AddAttentionCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kAttentionForward] = {Run<ForwardState>, Prepare<ForwardState>};
  table[&kAttentionBackward] = {Run<BackwardState>, Prepare<BackwardState>};
}

}  // namespace ridgeline::engine
