// Products and attention at the shapes of training. Every rate counts the FLOPs that the op reports. The GEMM rates of
// `square` are the machine's best; compare the others with them. scratch_MiB is the memory that our kernels keep
// outside the slab. mallocs and malloc_MiB count what one run takes from the heap (oneDNN does, we do not).
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"
#include "engine/ops/attention.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/gemm.h"

// Replaces malloc for every library, and calls glibc's own.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

struct Heap {
  std::atomic<int64_t> calls{0}, bytes{0};
};
Heap& TheHeap() {
  static constinit Heap heap;
  return heap;
}
void Count(size_t size) {
  TheHeap().calls += 1;
  TheHeap().bytes += static_cast<int64_t>(size);
}

}  // namespace

extern "C" void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}
extern "C" int posix_memalign(void** out, size_t alignment, size_t size) {
  Count(size);
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

namespace ridgeline {
namespace {

// A trace with one storage after another, in huge pages like the executor's slab.
class Program {
 public:
  explicit Program(const engine::Trace& trace) : trace_(trace) {
    engine::AddGemmCpu(table_);
    engine::AddAttentionCpu(table_);
    for (const engine::Storage& storage : trace.storages()) {
      offsets_.push_back(bytes_);
      bytes_ += (storage.bytes + 4095) / 4096 * 4096;
    }
    slab_ = static_cast<std::byte*>(
        ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (slab_ == MAP_FAILED) std::abort();
    ::madvise(slab_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
    // Small bf16 and fp32 numbers. Zeros would not do, because some CPUs multiply them with less power.
    for (int64_t i = 0; i < bytes_ / 2; ++i) {
      reinterpret_cast<uint16_t*>(slab_)[i] = static_cast<uint16_t>(0x3c00 + (i * 40503 >> 4) % 0x100);
    }
    for (const engine::OpCall& call : trace.calls()) states_.push_back(table_.at(call.op).prepare(call));
  }
  ~Program() { ::munmap(slab_, static_cast<size_t>(bytes_)); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Run() {
    const engine::CpuRun run{slab_, offsets_.data()};
    for (size_t i = 0; i < states_.size(); ++i) {
      const engine::OpCall& call = trace_.calls()[i];
      table_.at(call.op).run(call, run, states_[i].get());
    }
  }
  void Time(benchmark::State& state) {
    Run();
    const int64_t calls = TheHeap().calls;
    const int64_t bytes = TheHeap().bytes;
    Run();
    state.counters["mallocs"] = static_cast<double>(TheHeap().calls - calls);
    state.counters["malloc_MiB"] = static_cast<double>(TheHeap().bytes - bytes) / (1 << 20);
    for (auto iteration : state) Run();
    double flops = 0;
    for (const engine::OpCall& call : trace_.calls()) flops += call.cost.flops;
    state.counters["GFLOP/s"] =
        benchmark::Counter(flops * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
    state.counters["scratch_MiB"] =
        static_cast<double>(engine::GemmScratchBytes() + engine::AttentionScratchBytes()) / (1 << 20);
  }

 private:
  const engine::Trace& trace_;
  engine::CpuKernelTable table_;
  std::vector<int64_t> offsets_;
  int64_t bytes_ = 0;
  std::byte* slab_ = nullptr;
  std::vector<std::shared_ptr<engine::KernelState>> states_;
};

enum Form : int64_t { kSquare, kForward, kInputGradient, kWeightGradient };

// A linear layer of `out` x `in` weights over `tokens`: dtype, form, tokens, out, in, dtype of the weights' gradient.
void BM_Gemm(benchmark::State& state) {
  const auto dtype = static_cast<engine::DType>(state.range(0));
  const int64_t tokens = state.range(2);
  const int64_t out = state.range(3);
  const int64_t in = state.range(4);
  const auto gradient = static_cast<engine::DType>(state.range(5));
  engine::Trace trace;
  const auto matrix = [&](engine::DType type, int64_t rows, int64_t cols) {
    return trace.Temporary(type, rows, cols, engine::Category::kData);
  };
  const engine::Tensor x = matrix(dtype, tokens, in);
  const engine::Tensor w = matrix(dtype, out, in);
  const engine::Tensor y = matrix(dtype, tokens, out);
  switch (state.range(1)) {
    case kSquare:
      engine::Gemm(trace, x, engine::Trans::kNo, w, engine::Trans::kNo, y);
      break;
    case kForward:
      engine::Gemm(trace, x, engine::Trans::kNo, w, engine::Trans::kYes, y);
      break;
    case kInputGradient:
      engine::Gemm(trace, y, engine::Trans::kNo, w, engine::Trans::kNo, x);
      break;
    default:
      engine::Gemm(trace, y, engine::Trans::kYes, x, engine::Trans::kNo, matrix(gradient, out, in), true);
      break;
  }
  Program(trace).Time(state);
}

void GemmShapes(benchmark::internal::Benchmark* b) {
  constexpr auto kF32 = static_cast<int64_t>(engine::DType::kF32);
  constexpr auto kBF16 = static_cast<int64_t>(engine::DType::kBF16);
  b->ArgNames({"dtype", "form", "tokens", "out", "in", "grad"});
  for (const int64_t dtype : {kBF16, kF32}) {
    for (const int64_t n : {1024, 2048, 4096}) b->Args({dtype, kSquare, n, n, n, kF32});
    // (tokens, out, in): attention and MLP of 124M, 1B and 7B models, and the LM head by chunks of 512 tokens.
    constexpr int64_t kLinear[][3] = {{4096, 768, 768},    {4096, 2304, 768},  {512, 2048, 2048},  {4096, 2048, 2048},
                                      {2048, 11264, 2048}, {2048, 2048, 5632}, {1024, 4096, 4096}, {8192, 384, 384},
                                      {512, 32000, 2048},  {512, 50304, 768}};
    for (const auto& [tokens, out, in] : kLinear) {
      for (const int64_t form : {kForward, kInputGradient, kWeightGradient}) {
        b->Args({dtype, form, tokens, out, in, kF32});
        if (form == kWeightGradient && dtype == kBF16) b->Args({dtype, form, tokens, out, in, kBF16});
      }
    }
  }
}
BENCHMARK(BM_Gemm)->Apply(GemmShapes)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(0.2);

// dtype, backward?, batch, seq, heads, kv_heads, head_dim; q, k and v are columns of one matrix.
void BM_Attention(benchmark::State& state) {
  const auto dtype = static_cast<engine::DType>(state.range(0));
  const engine::AttentionShape s{state.range(2), state.range(3), state.range(4), state.range(5), state.range(6)};
  engine::Trace trace;
  const auto matrix = [&](engine::DType type, int64_t rows, int64_t cols) {
    return trace.Temporary(type, rows, cols, engine::Category::kData);
  };
  const int64_t tokens = s.batch * s.seq;
  const int64_t wide = s.heads * s.head_dim;
  const int64_t narrow = s.kv_heads * s.head_dim;
  const engine::Tensor qkv = matrix(dtype, tokens, wide + 2 * narrow);
  const engine::Tensor grad = matrix(dtype, tokens, wide + 2 * narrow);
  const engine::Tensor o = matrix(dtype, tokens, wide);
  const engine::Tensor d_o = matrix(dtype, tokens, wide);
  const engine::Tensor lse = matrix(engine::DType::kF32, s.batch * s.heads, s.seq);
  if (state.range(1) == 0) {
    engine::AttentionForward(trace, qkv.Cols(0, wide), qkv.Cols(wide, narrow), qkv.Cols(wide + narrow, narrow), o, lse,
                             s);
  } else {
    engine::AttentionBackward(trace, d_o, qkv.Cols(0, wide), qkv.Cols(wide, narrow), qkv.Cols(wide + narrow, narrow), o,
                              lse, grad.Cols(0, wide), grad.Cols(wide, narrow), grad.Cols(wide + narrow, narrow), s);
  }
  Program(trace).Time(state);
}

void AttentionShapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"dtype", "backward", "batch", "seq", "heads", "kv", "head_dim"});
  for (const engine::DType dtype : {engine::DType::kBF16, engine::DType::kF32}) {
    for (const int64_t head_dim : {64, 128}) {
      for (const int64_t seq : {512, 1024, 2048, 8192}) {
        if (dtype == engine::DType::kF32 && seq > 2048) continue;
        for (const int64_t backward : {0, 1}) {
          b->Args({static_cast<int64_t>(dtype), backward, std::max<int64_t>(1, 1024 / seq), seq, 8, 4, head_dim});
        }
      }
    }
  }
}
BENCHMARK(BM_Attention)->Apply(AttentionShapes)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(0.2);

}  // namespace
}  // namespace ridgeline
