#include "engine/ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::engine {
namespace {

CpuKernelTable AttentionTable() {
  CpuKernelTable table;
  AddAttentionCpu(table);
  return table;
}

class AttentionOnDevice : public EveryTarget {
 protected:
  OpKernels kernels_ = Kernels({RIDGELINE_FAMILY(Attention)});
};
RIDGELINE_ON_EVERY_DEVICE(AttentionOnDevice);

using HeadValues = std::vector<double>;  // (tokens, heads * head_dim)

struct Reference {
  HeadValues o, lse, dq, dk, dv;
};

// Attention by its definition, in double precision, with its gradient.
Reference Attend(const AttentionShape& s, const std::vector<float>& q, const std::vector<float>& k,
                 const std::vector<float>& v, const std::vector<float>& d_o) {
  const auto at = [&](int64_t heads, int64_t batch, int64_t row, int64_t head) {
    return static_cast<size_t>(((batch * s.seq + row) * heads + head) * s.head_dim);
  };
  const auto d = static_cast<size_t>(s.head_dim);
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  Reference out{HeadValues(q.size()), HeadValues(static_cast<size_t>(s.batch * s.heads * s.seq)), HeadValues(q.size()),
                HeadValues(k.size()), HeadValues(k.size())};
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const int64_t kv_head = head / (s.heads / s.kv_heads);
      for (int64_t row = 0; row < s.seq; ++row) {
        const size_t query = at(s.heads, batch, row, head);
        std::vector<double> p(static_cast<size_t>(row) + 1);
        std::vector<double> dp(p.size());
        double top = -INFINITY;
        for (size_t j = 0; j < p.size(); ++j) {
          const size_t key = at(s.kv_heads, batch, static_cast<int64_t>(j), kv_head);
          for (size_t i = 0; i < d; ++i) {
            p[j] += scale * q[query + i] * k[key + i];
            dp[j] += static_cast<double>(d_o[query + i]) * v[key + i];
          }
          top = std::max(top, p[j]);
        }
        double sum = 0;
        for (double& x : p) sum += x = std::exp(x - top);
        out.lse[static_cast<size_t>((batch * s.heads + head) * s.seq + row)] = top + std::log(sum);
        double delta = 0;
        for (size_t j = 0; j < p.size(); ++j) {
          p[j] /= sum;
          delta += p[j] * dp[j];
        }
        for (size_t j = 0; j < p.size(); ++j) {
          const size_t key = at(s.kv_heads, batch, static_cast<int64_t>(j), kv_head);
          const double ds = p[j] * (dp[j] - delta) * scale;
          for (size_t i = 0; i < d; ++i) {
            out.o[query + i] += p[j] * v[key + i];
            out.dq[query + i] += ds * k[key + i];
            out.dk[key + i] += ds * q[query + i];
            out.dv[key + i] += p[j] * d_o[query + i];
          }
        }
      }
    }
  }
  return out;
}

struct AttentionCase {
  AttentionShape shape;
  DType dtype = DType::kF32;
  bool fused = false;  // q, k and v are columns of one matrix, and so are their gradients
  float scale = 1;     // of q and k
  int64_t before = 0;  // columns of that matrix before q

  std::string Name() const {
    return "batch " + std::to_string(shape.batch) + " seq " + std::to_string(shape.seq) + " heads " +
           std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + " head_dim " +
           std::to_string(shape.head_dim) + " " + std::string(DTypeName(dtype)) + (fused ? " fused" : "") +
           (before > 0 ? " behind " + std::to_string(before) : "");
  }
};

// Records forward and backward.
struct Attention {
  OpRunner runner;
  Tensor d_o, q, k, v, o, lse, dq, dk, dv;

  explicit Attention(const AttentionCase& c) {
    const AttentionShape& s = c.shape;
    const int64_t tokens = s.batch * s.seq;
    const int64_t wide = s.heads * s.head_dim;
    const int64_t narrow = s.kv_heads * s.head_dim;
    if (c.fused) {
      const int64_t cols = c.before + wide + 2 * narrow;
      const Tensor qkv = runner.Normal(c.dtype, tokens, cols, 1, c.scale).Cols(c.before, cols - c.before);
      const Tensor grad = runner.Empty(c.dtype, tokens, cols).Cols(c.before, cols - c.before);
      q = qkv.Cols(0, wide);
      k = qkv.Cols(wide, narrow);
      v = qkv.Cols(wide + narrow, narrow);
      dq = grad.Cols(0, wide);
      dk = grad.Cols(wide, narrow);
      dv = grad.Cols(wide + narrow, narrow);
    } else {
      q = runner.Normal(c.dtype, tokens, wide, 1, c.scale);
      k = runner.Normal(c.dtype, tokens, narrow, 2, c.scale);
      v = runner.Normal(c.dtype, tokens, narrow, 3);
      dq = runner.Empty(c.dtype, tokens, wide);
      dk = runner.Empty(c.dtype, tokens, narrow);
      dv = runner.Empty(c.dtype, tokens, narrow);
    }
    d_o = runner.Normal(c.dtype, tokens, wide, 4);
    o = runner.Empty(c.dtype, tokens, wide);
    lse = runner.Empty(DType::kF32, s.batch * s.heads, s.seq);
    AttentionForward(runner.trace, q, k, v, o, lse, s);
    AttentionBackward(runner.trace, d_o, q, k, v, o, lse, dq, dk, dv, s);
  }
  // The bits of every output.
  std::vector<std::vector<std::byte>> Bits() {
    std::vector<std::vector<std::byte>> bits;
    for (const Tensor& t : {o, lse, dq, dk, dv}) bits.push_back(runner.Bytes(t));
    return bits;
  }
};

// |got - want| / |want|, in the Euclidean norm.
double Distance(const std::vector<float>& got, const HeadValues& want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0;
  double size = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// Checks that outputs and gradients are within 1e-5 of their norms in fp32. In bf16, p, ds and the results are rounded
// to 8 bits: within 5e-3, and gradients through the softmax within 1e-2.
void Check(const OpKernels& kernels, const AttentionCase& c) {
  SCOPED_TRACE(c.Name());
  Attention a(c);
  a.runner.Run(kernels);
  const Reference want =
      Attend(c.shape, a.runner.Read(a.q), a.runner.Read(a.k), a.runner.Read(a.v), a.runner.Read(a.d_o));
  const bool low = c.dtype != DType::kF32;
  EXPECT_LT(Distance(a.runner.Read(a.lse), want.lse), 1e-6);
  EXPECT_LT(Distance(a.runner.Read(a.o), want.o), low ? 5e-3 : 1e-5);
  EXPECT_LT(Distance(a.runner.Read(a.dv), want.dv), low ? 5e-3 : 1e-5);
  if (c.shape.seq == 1) return;  // one key: the softmax is constant, and its gradient 0
  EXPECT_LT(Distance(a.runner.Read(a.dq), want.dq), low ? 1e-2 : 1e-5);
  EXPECT_LT(Distance(a.runner.Read(a.dk), want.dk), low ? 1e-2 : 1e-5);
}

void CheckShapes(const OpKernels& kernels, DType dtype) {
  Check(kernels, {.shape = {1, 1, 1, 1, 1}, .dtype = dtype});
  Check(kernels, {.shape = {2, 1, 3, 3, 5}, .dtype = dtype});
  Check(kernels, {.shape = {1, 7, 2, 1, 64}, .dtype = dtype});
  Check(kernels, {.shape = {2, 33, 4, 2, 17}, .dtype = dtype, .fused = true});
  Check(kernels, {.shape = {1, 128, 3, 3, 48}, .dtype = dtype, .fused = true});
  Check(kernels, {.shape = {1, 256, 2, 2, 32}, .dtype = dtype});
  Check(kernels, {.shape = {1, 257, 8, 1, 16}, .dtype = dtype, .fused = true});
  Check(kernels, {.shape = {2, 300, 2, 1, 80}, .dtype = dtype});
  Check(kernels, {.shape = {1, 70, 4, 2, 20}, .dtype = dtype, .fused = true, .before = 4});
  Check(kernels, {.shape = {1, 70, 2, 1, 64}, .dtype = dtype, .fused = true, .before = 3});
  Check(kernels, {.shape = {1, 600, 2, 2, 64}, .dtype = dtype, .fused = true});
  Check(kernels, {.shape = {1, 1030, 1, 1, 8}, .dtype = dtype});
}

TEST_P(AttentionOnDevice, MatchesDoublePrecision) { CheckShapes(kernels_, DType::kF32); }
TEST_P(AttentionOnDevice, MatchesDoublePrecisionInBf16) { CheckShapes(kernels_, DType::kBF16); }
TEST_P(AttentionOnDevice, MatchesDoublePrecisionInFp16) { CheckShapes(kernels_, DType::kF16); }

TEST_P(AttentionOnDevice, MatchesDoublePrecisionInRandomShapes) {
  std::mt19937 random(11);
  const auto up_to = [&](int64_t most) { return 1 + static_cast<int64_t>(random()) % most; };
  const int shapes = GetParam().cuda ? 6 : 24;  // the emulated machine is slow
  for (int i = 0; i < shapes; ++i) {
    const int64_t kv_heads = up_to(3);
    Check(kernels_, {.shape = {up_to(3), up_to(400), kv_heads * up_to(8), kv_heads, up_to(100)},
                     .dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16,
                     .fused = random() % 2 == 0});
  }
}

TEST_P(AttentionOnDevice, MatchesWithLargeHeads) {
  Check(kernels_, {.shape = {1, 270, 1, 1, 300}});
  Check(kernels_, {.shape = {1, 270, 2, 1, 256}, .dtype = DType::kBF16});
}

// The softmax and its gradient are our own vectorised code.
TEST(Attention, MatchesOnEveryInstructionSet) {
  for (const int64_t target : CompiledTargets()) {
    hwy::GetChosenTarget().Update(target);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Check(AttentionTable(), {.shape = {1, 300, 2, 1, 33}, .dtype = dtype, .fused = true});
      Check(AttentionTable(), {.shape = {2, 77, 4, 2, 64}, .dtype = dtype});
    }
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Attention, GivesTheSameBitsAtEveryRunAndForAnyThreadCount) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<std::vector<std::byte>> first;
    for (const int count : {1, 2, 2, 3}) {
      const Threads threads(count);
      Attention a({.shape = {2, 530, 4, 2, 40}, .dtype = dtype});
      a.runner.Run(AttentionTable());
      if (first.empty()) first = a.Bits();
      EXPECT_EQ(a.Bits(), first) << count << " threads";
      a.runner.Continue(AttentionTable());
      EXPECT_EQ(a.Bits(), first) << "the second time";
    }
  }
}

#ifdef RIDGELINE_CUDA_TESTS
TEST(AttentionOnCuda, GivesTheSameBitsAtEveryRunAndInAnyOrderOfThreads) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<std::vector<std::byte>> first;
    for (const uint64_t seed : {0, 1, 2, 3}) {
      cuda_machine::ResetMachine({.seed = seed});
      CudaKernelTable table;
      AddAttentionCuda(table);
      Attention a({.shape = {1, 150, 2, 1, 40}, .dtype = dtype});
      a.runner.Run(table);
      if (first.empty()) first = a.Bits();
      EXPECT_EQ(a.Bits(), first) << "seed " << seed;
      a.runner.Continue(table);
      EXPECT_EQ(a.Bits(), first) << "the second time";
    }
  }
}
#endif

// A call may run with more or fewer threads than when it was prepared.
TEST(Attention, RunsWithAnotherThreadCountThanPrepared) {
  Attention a({.shape = {1, 530, 3, 1, 40}});
  const CpuKernelTable table = AttentionTable();
  {
    const Threads two(2);
    a.runner.Run(table);
  }
  const auto first = a.Bits();
  for (const int count : {1, 4}) {
    const Threads threads(count);
    a.runner.Continue(table);
    EXPECT_EQ(a.Bits(), first);
  }
}

TEST_P(AttentionOnDevice, StaysFiniteForLargeScores) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Attention a({.shape = {1, 300, 2, 2, 64}, .dtype = dtype, .scale = 100});  // scores in the tens of thousands
    a.runner.Run(kernels_);
    for (const Tensor& t : {a.o, a.lse, a.dq, a.dk, a.dv}) {
      for (const float x : a.runner.Read(t)) ASSERT_TRUE(std::isfinite(x));
    }
  }
}

// Later tokens must not be seen: changing them changes nothing before them.
TEST_P(AttentionOnDevice, IsCausal) {
  const AttentionShape shape{1, 300, 1, 1, 16};
  std::vector<float> before;
  for (const uint32_t seed : {1U, 2U}) {
    OpRunner runner;
    const auto input = [&](uint32_t id) {
      std::vector<float> values = NormalFloats(300 * 16, id);
      const std::vector<float> other = NormalFloats(300 * 16, id + 10 * seed);
      std::copy(other.begin() + 290 * 16, other.end(), values.begin() + 290 * 16);
      return runner.Make(DType::kF32, 300, 16, values);
    };
    const Tensor q = input(1);
    const Tensor k = input(2);
    const Tensor v = input(3);
    const Tensor o = runner.Empty(DType::kF32, 300, 16);
    AttentionForward(runner.trace, q, k, v, o, runner.Empty(DType::kF32, 1, 300), shape);
    runner.Run(kernels_);
    const std::vector<float> head = runner.Read(o.Rows(0, 290));
    if (before.empty()) before = head;
    EXPECT_EQ(head, before);
  }
}

TEST(Attention, CountsItsCostAndWorkspace) {
  Trace trace;
  const auto tensor = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const AttentionShape shape{2, 10, 4, 2, 8};
  const Tensor q = tensor(DType::kBF16, 20, 32);
  const Tensor k = tensor(DType::kBF16, 20, 16);
  const Tensor lse = tensor(DType::kF32, 8, 10);
  AttentionForward(trace, q, k, k, q, lse, shape);
  EXPECT_EQ(trace.calls()[0].cost.flops, 4.0 * 2 * 4 * 8 * 10 * 11 / 2);
  EXPECT_EQ(trace.calls()[0].cost.format, MathFormat::kBF16);
  const size_t before = trace.storages().size();
  AttentionBackward(trace, q, q, k, k, q, lse, q, k, k, shape);
  EXPECT_EQ(trace.calls()[1].cost.flops, 10.0 * 2 * 4 * 8 * 10 * 11 / 2);
  int64_t workspace = 0;
  for (size_t i = before; i < trace.storages().size(); ++i) {
    EXPECT_EQ(trace.storages()[i].category, Category::kWorkspace);
    workspace += trace.storages()[i].bytes;
  }
  EXPECT_EQ(workspace, 4 * 8 * 10 + 4 * 8 * 10 * 8);  // delta, and dq in fp32
}

// cuDNN's workspace, on devices that have cuDNN. attention_plans_test.cc asks cuDNN for its plans' needs.
TEST(Attention, AsksForCudnnsWorkspace) {
  struct Bytes {
    int64_t forward, backward;
    bool operator==(const Bytes&) const = default;
  };
  const auto bytes = [](const DeviceDescription& device, const AttentionShape& s, DType dtype, int64_t before = 0) {
    Trace trace(device);
    const auto tensor = [&](int64_t heads) {
      const int64_t cols = heads * s.head_dim;
      return trace.Temporary(dtype, s.batch * s.seq, before + cols, Category::kActivations).Cols(before, cols);
    };
    const Tensor q = tensor(s.heads);
    const Tensor k = tensor(s.kv_heads);
    const Tensor lse = trace.Temporary(DType::kF32, s.batch * s.heads, s.seq, Category::kActivations);
    AttentionForward(trace, q, k, k, q, lse, s);
    AttentionBackward(trace, q, q, k, k, q, lse, q, k, k, s);
    const auto of = [](const Tensor& t) { return t.defined() ? t.bytes() : 0; };
    return Bytes{of(trace.calls()[0].operands(kAttentionForward).scratch.workspace),
                 of(trace.calls()[1].operands(kAttentionBackward).scratch.workspace)};
  };
  constexpr int64_t kAll = 2 * 4 * 500 * 64;  // numbers of q
  const AttentionShape grouped{2, 500, 4, 2, 64};
  EXPECT_EQ(bytes({}, grouped, DType::kBF16), (Bytes{0, 0}));
  EXPECT_EQ(bytes(CudaDevice(90), grouped, DType::kBF16), (Bytes{256, 256 + 4 * kAll}));
  EXPECT_EQ(bytes(CudaDevice(100), grouped, DType::kF16), (Bytes{256, 256 + 4 * kAll}));
  EXPECT_EQ(bytes(CudaDevice(90), {2, 500, 4, 4, 64}, DType::kBF16), (Bytes{256, 256}));
  EXPECT_EQ(bytes(CudaDevice(100), {1, 100, 1, 1, 64}, DType::kBF16), (Bytes{256, 256 + 4 * 104 * 64}));
  EXPECT_EQ(bytes(CudaDevice(90), grouped, DType::kF32), (Bytes{0, 0}));
  EXPECT_EQ(bytes(CudaDevice(90), grouped, DType::kBF16, 4), (Bytes{0, 0}));
  EXPECT_EQ(bytes(CudaDevice(90), {2, 500, 4, 2, 20}, DType::kBF16), (Bytes{0, 0}));
  EXPECT_EQ(bytes(CudaDevice(100), {1, 500, 1, 1, 256}, DType::kBF16), (Bytes{256, 0}));
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  Trace trace;
  const auto tensor = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const Tensor q = tensor(DType::kF32, 20, 32);
  const Tensor k = tensor(DType::kF32, 20, 16);
  const Tensor lse = tensor(DType::kF32, 8, 10);
  const auto message = [&](const Tensor& query, const Tensor& key, const Tensor& sums, const AttentionShape& shape) {
    try {
      AttentionForward(trace, query, key, key, query, sums, shape);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
      return error.message();
    }
    return std::string("accepted");
  };
  const AttentionShape shape{2, 10, 4, 2, 8};
  EXPECT_EQ(message(q, k, lse, shape), "accepted");
  EXPECT_THAT(message(k, k, lse, shape), testing::HasSubstr("q fp32 (20, 16)"));
  EXPECT_THAT(message(q, q, lse, shape), testing::HasSubstr("k fp32 (20, 32)"));
  EXPECT_THAT(message(q, tensor(DType::kBF16, 20, 16), lse, shape), testing::HasSubstr("k bf16 (20, 16)"));
  EXPECT_THAT(message(q, k, k, shape), testing::HasSubstr("lse fp32 (20, 16)"));
  EXPECT_THAT(message(q, k, lse, {2, 10, 4, 3, 8}), testing::HasSubstr("kv_heads 3"));
  EXPECT_THAT(message(q, k, lse, {2, 11, 4, 2, 8}), testing::HasSubstr("seq 11"));
  EXPECT_THAT(message(q, k, lse, {0, 10, 4, 2, 8}), testing::HasSubstr("batch 0"));
}

// Keeps blocks, not rows of scores: memory outside the slab does not grow with the sequence.
TEST(Attention, KeepsScratchIndependentOfTheSequence) {
  const auto scratch = [](int64_t seq) {
    Attention a({.shape = {1, seq, 1, 1, 128}, .dtype = DType::kBF16});
    a.runner.Run(AttentionTable());
    return AttentionScratchBytes();
  };
  const int64_t bytes = scratch(512);
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, (int64_t{3} << 20) * omp_get_max_threads());
  EXPECT_EQ(scratch(1024), bytes);
  EXPECT_EQ(AttentionScratchBytes(), 0);
}

}  // namespace
}  // namespace ridgeline::engine
