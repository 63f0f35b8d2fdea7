#include "engine/ops/optimizer.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

constexpr int kSteps = 20;

class Optimizer : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Optimizer)});
};
RIDGELINE_ON_EVERY_TARGET(Optimizer);

// torch.optim.Adam and AdamW, in double.
struct AdamReference {
  AdamAttrs attrs;
  std::vector<double> weight, m, v;

  AdamReference(const AdamAttrs& a, std::vector<double> w)
      : attrs(a), weight(std::move(w)), m(weight.size()), v(weight.size()) {}

  void Step(const std::vector<float>& gradient, double scale, double rate, int step) {
    for (size_t i = 0; i < weight.size(); ++i) {
      double g = gradient[i] * scale;
      if (attrs.decoupled) {
        weight[i] *= 1 - rate * attrs.weight_decay;
      } else {
        g += attrs.weight_decay * weight[i];
      }
      m[i] = attrs.beta1 * m[i] + (1 - attrs.beta1) * g;
      v[i] = attrs.beta2 * v[i] + (1 - attrs.beta2) * g * g;
      const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(attrs.beta2, step)) + attrs.epsilon;
      weight[i] -= rate / (1 - std::pow(attrs.beta1, step)) * m[i] / denominator;
    }
  }
};

constexpr double kRate = 3e-3;
constexpr AdamAttrs kVariants[] = {
    {}, {.weight_decay = 0.1}, {.beta1 = 0.8, .beta2 = 0.999, .weight_decay = 0.05, .decoupled = false}};

// 20 steps on a constant gradient; the step is all that changes between them.
void CheckAdam(const OpKernels& table, DType work_dtype, bool split, DType gradient_dtype, double scale,
               const AdamAttrs& attrs, int64_t n) {
  SCOPED_TRACE(testing::Message() << DTypeName(work_dtype) << (split ? " split" : "") << " decay " << attrs.weight_decay
                                  << " n " << n);
  const auto gradient = RepresentableNormal(gradient_dtype, n, 2, 0.1F);
  const auto weights = NormalFloats(n, 1);
  OpRunner runner;
  std::vector<float> work, low;
  for (const float w : weights) {
    if (!split) {
      work.push_back(w);
      continue;
    }
    uint16_t high;
    int16_t rest;
    SplitMaster(w, high, rest);
    work.push_back(Bf16Value(high));
    low.push_back(rest);
  }
  const Tensor twork = runner.Make(work_dtype, 1, n, work);
  const Tensor tlow = split ? runner.Make(DType::kI16, 1, n, low) : Tensor{};
  const std::vector<float> zeros(static_cast<size_t>(n));
  const Tensor m = runner.Make(DType::kF32, 1, n, zeros);
  const Tensor v = runner.Make(DType::kF32, 1, n, zeros);
  const Tensor g = runner.Make(gradient_dtype, 1, n, gradient);
  const Tensor tscale = scale == 1 ? Tensor{} : runner.Make(DType::kF32, 1, 1, {static_cast<float>(scale)});
  Adam(runner.trace, twork, tlow, m, v, g, tscale, attrs);
  AdamReference reference(attrs, Doubles(weights));
  for (int step = 1; step <= kSteps; ++step) {
    const double rate = kRate / step;
    if (step == 1) {
      runner.Run(table, {.step = step, .learning_rate = rate});
    } else {
      runner.Continue(table, {.step = step, .learning_rate = rate});
    }
    reference.Step(gradient, scale, rate, step);
  }
  std::vector<float> result = runner.Read(twork);
  if (split) {
    const std::vector<float> rest = runner.Read(tlow);
    for (size_t i = 0; i < result.size(); ++i) {
      const float master = JoinMaster(Bf16Bits(result[i]), static_cast<int16_t>(rest[i]));
      ASSERT_NEAR(master, result[i], std::abs(master) / 256);  // the multiplied weight is the nearest bf16
      result[i] = master;
    }
  }
  ExpectClose(result, reference.weight, DType::kF32, 2e-6, 1e-6);
  ExpectClose(runner.Read(m), reference.m, DType::kF32, 2e-8, 2e-6);
  ExpectClose(runner.Read(v), reference.v, DType::kF32, 1e-12, 5e-6);
  EXPECT_EQ(runner.Read(g), gradient);
}

TEST_P(Optimizer, AdamIsPyTorchs) {
  for (const AdamAttrs& attrs : kVariants) {
    for (const DType gradient : {DType::kF32, DType::kBF16}) {
      CheckAdam(table_, DType::kF32, false, gradient, 1, attrs, 1030);
      CheckAdam(table_, DType::kF32, false, gradient, 0.3, attrs, 37);
      CheckAdam(table_, DType::kBF16, true, gradient, 1, attrs, 1030);
      CheckAdam(table_, DType::kBF16, true, gradient, 0.3, attrs, 37);
    }
  }
}

// All-bf16 state: every step is computed in fp32 and rounded once.
TEST_P(Optimizer, AdamWithBf16StateRoundsOnce) {
  constexpr int64_t kCount = 1031;
  const AdamAttrs attrs = {.weight_decay = 0.1};
  const auto weight = RepresentableNormal(DType::kBF16, kCount, 1);
  const auto gradient = RepresentableNormal(DType::kBF16, kCount, 2);
  const auto m = RepresentableNormal(DType::kBF16, kCount, 3);
  auto v = RepresentableNormal(DType::kBF16, kCount, 4);
  for (float& value : v) value = std::abs(value) + 0.5F;
  for (float& value : v) value = Rounded(value, DType::kBF16);
  OpRunner runner;
  const Tensor tw = runner.Make(DType::kBF16, 1, kCount, weight);
  const Tensor tm = runner.Make(DType::kBF16, 1, kCount, m);
  const Tensor tv = runner.Make(DType::kBF16, 1, kCount, v);
  const Tensor tg = runner.Make(DType::kBF16, 1, kCount, gradient);
  Adam(runner.trace, tw, {}, tm, tv, tg, {}, attrs);
  runner.Run(table_, {.step = 5, .learning_rate = 0.05});
  AdamReference reference(attrs, Doubles(weight));
  reference.m = Doubles(m);
  reference.v = Doubles(v);
  reference.Step(gradient, 1, 0.05, 5);
  ExpectClose(runner.Read(tw), reference.weight, DType::kBF16, 1e-6);
  ExpectClose(runner.Read(tm), reference.m, DType::kBF16, 1e-6);
  ExpectClose(runner.Read(tv), reference.v, DType::kBF16, 1e-6);
}

// Every pair of dtypes that a recipe may keep, in tensors that begin anywhere.
TEST_P(Optimizer, AdamTakesEveryKindOfState) {
  constexpr int64_t kCount = 517;
  constexpr DType kStates[] = {DType::kF32, DType::kBF16};
  struct Kind {
    DType work;
    DType master;  // kU8: none
  };
  constexpr Kind kKinds[] = {{DType::kF32, DType::kU8},   {DType::kBF16, DType::kU8},  {DType::kF16, DType::kU8},
                             {DType::kBF16, DType::kI16}, {DType::kBF16, DType::kF32}, {DType::kF16, DType::kF32}};
  for (const Kind& kind : kKinds) {
    for (const DType moments : kStates) {
      for (const DType gradients : kStates) {
        for (const int64_t first : {0, 1}) {
          SCOPED_TRACE(testing::Message() << DTypeName(kind.work) << " " << DTypeName(kind.master) << " "
                                          << DTypeName(moments) << " " << DTypeName(gradients) << " " << first);
          OpRunner runner;
          const auto view = [&](DType dtype, const std::vector<float>& values) {
            return runner.Make(dtype, 1, kCount, values).Cols(first, kCount - first);
          };
          const auto weight = RepresentableNormal(kind.work, kCount, 1);
          const auto gradient = RepresentableNormal(gradients, kCount, 2);
          const auto m = RepresentableNormal(moments, kCount, 3);
          auto v = RepresentableNormal(moments, kCount, 4);
          for (float& value : v) value = Rounded(std::abs(value) + 0.5F, moments);
          const Tensor work = view(kind.work, weight);
          Tensor master;
          if (kind.master == DType::kI16) master = view(DType::kI16, std::vector<float>(kCount));
          if (kind.master == DType::kF32) master = view(DType::kF32, weight);
          const Tensor tm = view(moments, m);
          const Tensor tv = view(moments, v);
          Adam(runner.trace, work, master, tm, tv, view(gradients, gradient), {}, {.weight_decay = 0.1});
          runner.Run(table_, {.step = 3, .learning_rate = 0.05});
          AdamReference reference({.weight_decay = 0.1}, Doubles(weight));
          reference.m = Doubles(m);
          reference.v = Doubles(v);
          reference.Step(gradient, 1, 0.05, 3);
          const auto expect = [&](const Tensor& t, std::vector<double> expected) {
            expected.erase(expected.begin(), expected.begin() + first);
            ExpectClose(runner.Read(t), expected, t.dtype, 1e-6);
          };
          expect(work, reference.weight);
          if (kind.master == DType::kF32) expect(master, reference.weight);
          expect(tm, reference.m);
          expect(tv, reference.v);
        }
      }
    }
  }
}

TEST_P(Optimizer, AdamsVectorsSplitAsSplitMaster) {
  // Without gradient and decay, weights stay as they are, bit for bit, and every NaN stays NaN.
  std::vector<float> low, work;
  std::vector<uint32_t> bits;
  std::mt19937 engine(5);
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (const uint32_t rest : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, 0x7f8000U, 0x7fffffU,
                                static_cast<uint32_t>(engine() & 0x7fffffU)}) {
      bits.push_back(exponent << 23 | rest);
    }
  }
  OpRunner runner;
  for (const uint32_t b : bits) {
    uint16_t high;
    int16_t rest;
    SplitMaster(std::bit_cast<float>(b), high, rest);
    work.push_back(Bf16Value(high));
    low.push_back(rest);
  }
  const auto n = static_cast<int64_t>(bits.size());
  const Tensor tw = runner.Make(DType::kBF16, 1, n, work);
  const Tensor tl = runner.Make(DType::kI16, 1, n, low);
  const std::vector<float> zeros(bits.size());
  const Tensor m = runner.Make(DType::kF32, 1, n, zeros);
  const Tensor v = runner.Make(DType::kF32, 1, n, zeros);
  const Tensor g = runner.Make(DType::kF32, 1, n, zeros);
  Adam(runner.trace, tw, tl, m, v, g, {}, {});
  std::vector<float> whole;
  for (const uint32_t b : bits) whole.push_back(std::bit_cast<float>(b));
  const Tensor rounded = runner.Empty(DType::kBF16, 1, n);
  Adam(runner.trace, rounded, runner.Make(DType::kF32, 1, n, whole), m, v, g, {}, {});
  runner.Run(table_, {.step = 1, .learning_rate = 0.1});
  EXPECT_EQ(runner.Bytes(rounded), runner.Bytes(tw)) << "a master in one piece is rounded likewise";
  const auto new_work = runner.Read(tw);
  const auto new_low = runner.Read(tl);
  for (size_t i = 0; i < bits.size(); ++i) {
    const auto before = std::bit_cast<float>(bits[i]);
    const float after = JoinMaster(Bf16Bits(new_work[i]), static_cast<int16_t>(new_low[i]));
    // An infinite weight times a decay of zero is NaN.
    if (!std::isfinite(before)) {
      EXPECT_FALSE(std::isfinite(after)) << std::hex << bits[i];
    } else if ((bits[i] & 0x7fffffff) != 0) {
      EXPECT_EQ(std::bit_cast<uint32_t>(after), bits[i]) << std::hex << bits[i];
    }
  }
}

TEST(Master, SplitsAndJoinsEveryExponent) {
  std::mt19937 engine(1);
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {  // and sign
    for (int i = 0; i < 300; ++i) {
      uint32_t mantissa = static_cast<uint32_t>(engine()) & 0x7fffff;
      if (i < 5) mantissa = (mantissa & 0x7f0000) | (0x7ffe + static_cast<uint32_t>(i));  // around a tie
      if (i == 5) mantissa = 0;
      if (i == 6) mantissa = 0x7fffff;
      const uint32_t bits = exponent << 23 | mantissa;
      const auto master = std::bit_cast<float>(bits);
      uint16_t work;
      int16_t low;
      SplitMaster(master, work, low);
      const float joined = JoinMaster(work, low);
      if (std::isnan(master)) {
        ASSERT_TRUE(std::isnan(joined)) << std::hex << bits;
        ASSERT_TRUE(std::isnan(Bf16Value(work))) << std::hex << bits;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(joined), bits) << std::hex << bits;
      // The nearest is at most half a step away, that is 2^15 units of the master's last place.
      ASSERT_LE(std::abs(static_cast<int>(low)), 0x8000);
      if ((bits & 0xffff) != 0x8000) {
        ASSERT_EQ(work, Bf16Bits(master)) << std::hex << bits;
      }
    }
  }
}

TEST_P(Optimizer, SquaredSumAdds) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1, 33, 5000, 200001}) {
      const auto x = RepresentableNormal(dtype, n, 1, 2);
      double sum = 3;
      for (const float v : x) sum += static_cast<double>(v) * v;
      OpRunner runner;
      const Tensor tx = runner.Make(dtype, 1, n, x);
      const Tensor total = runner.Make(DType::kF32, 1, 1, {3});
      const Tensor without_first = runner.Make(DType::kF32, 1, 1, {0});
      SquaredSum(runner.trace, tx, total);
      if (n > 1) SquaredSum(runner.trace, tx.Cols(1, n - 1), without_first);
      runner.Run(table_);
      EXPECT_NEAR(runner.Read(total)[0], sum, 5e-7 * sum);
      const double without = n > 1 ? sum - 3 - static_cast<double>(x[0]) * x[0] : 0;
      EXPECT_NEAR(runner.Read(without_first)[0], without, 5e-7 * sum);
    }
  }
}

TEST_P(Optimizer, ClipScaleIsPyTorchs) {
  const auto clip = [&](float sum, double limit) {
    OpRunner runner;
    const Tensor s = runner.Make(DType::kF32, 1, 1, {sum});
    const Tensor norm = runner.Empty(DType::kF32, 1, 1);
    const Tensor scale = runner.Empty(DType::kF32, 1, 1);
    ClipScale(runner.trace, s, norm, scale, limit);
    runner.Run(table_);
    return std::pair{runner.Read(norm)[0], runner.Read(scale)[0]};
  };
  EXPECT_EQ(clip(0.25F, 1), std::pair(0.5F, 1.0F));
  EXPECT_EQ(clip(0, 1), std::pair(0.0F, 1.0F));
  EXPECT_EQ(clip(16, 1).first, 4);
  EXPECT_NEAR(clip(16, 1).second, 1 / (4 + 1e-6), 1e-7);
  EXPECT_EQ(clip(std::numeric_limits<float>::infinity(), 1).second, 0);
  EXPECT_TRUE(std::isnan(clip(std::nanf(""), 1).second));
}

TEST_P(Optimizer, ThreadsChangeNothing) {
  ExpectSameForAnyThreads(table_, [](OpRunner& runner) -> std::vector<Tensor> {
    constexpr int64_t kCount = 200003;
    const Tensor work = runner.Normal(DType::kBF16, 1, kCount, 1);
    const Tensor low = runner.Make(DType::kI16, 1, kCount, std::vector<float>(kCount, 9));
    const Tensor m = runner.Normal(DType::kF32, 1, kCount, 2);
    const Tensor v = runner.Make(DType::kF32, 1, kCount, std::vector<float>(kCount, 0.5F));
    const Tensor g = runner.Normal(DType::kF32, 1, kCount, 3);
    const Tensor sum = runner.Make(DType::kF32, 1, 1, {0});
    const Tensor norm = runner.Empty(DType::kF32, 1, 1);
    const Tensor scale = runner.Empty(DType::kF32, 1, 1);
    SquaredSum(runner.trace, g, sum);
    ClipScale(runner.trace, sum, norm, scale, 1);
    Adam(runner.trace, work, low, m, v, g, scale, {.weight_decay = 0.1});
    return {work, low, m, v, sum, norm, scale};
  });
}

TEST(OptimizerRecord, RefusesOtherShapes) {
  Trace trace;
  const auto make = [&](DType dtype, int64_t cols) { return trace.Temporary(dtype, 1, cols, Category::kOptimizer); };
  const Tensor w = make(DType::kBF16, 8);
  const Tensor m = make(DType::kF32, 8);
  const Tensor low = make(DType::kI16, 8);
  const Tensor scalar = make(DType::kF32, 1);
  EXPECT_THROW(Adam(trace, w, make(DType::kI16, 7), m, m, w, {}, {}), Error);
  EXPECT_THROW(Adam(trace, m, low, m, m, w, {}, {}), Error);
  EXPECT_THROW(Adam(trace, w, low, m, w, w, {}, {}), Error);
  EXPECT_THROW(Adam(trace, w, low, m, m, low, {}, {}), Error);
  EXPECT_THROW(Adam(trace, w, low, m, m, w, m, {}), Error);
  EXPECT_THROW(SquaredSum(trace, w, w), Error);
  EXPECT_THROW(ClipScale(trace, scalar, scalar, scalar, 0), Error);
  EXPECT_TRUE(trace.calls().empty());
}

// fp16's loop on a small scale. When the norm overflows, the factor is halved and that step changes nothing. The factor
// doubles after kLossScaleWindow good steps.
TEST_P(Optimizer, LossScalingSkipsHalvesAndDoubles) {
  OpRunner runner;
  const Tensor sum = runner.Make(DType::kF32, 1, 1, {0});
  const Tensor state = runner.Make(DType::kF32, 1, kLossScaleState, {kFirstLossScale, 0, 4});
  const Tensor norm = runner.Empty(DType::kF32, 1, 1);
  const Tensor scale = runner.Empty(DType::kF32, 1, 1);
  const Tensor gradient = runner.Make(DType::kF32, 1, 2, {3 * kFirstLossScale, -4 * kFirstLossScale});
  const Tensor work = runner.Make(DType::kF16, 1, 2, {1, -2});
  const Tensor master = runner.Make(DType::kF32, 1, 2, {1, -2});
  const Tensor m = runner.Make(DType::kF32, 1, 2, {0, 0});
  const Tensor v = runner.Make(DType::kF32, 1, 2, {0, 0});
  SquaredSum(runner.trace, gradient, sum);
  LossScale(runner.trace, sum, state, norm, scale, 1);
  Adam(runner.trace, work, master, m, v, gradient, scale, {.beta1 = 0.5, .beta2 = 0.5}, state);
  runner.Run(table_, {.step = 5, .learning_rate = 0.25});
  EXPECT_FLOAT_EQ(runner.Read(norm)[0], 5);
  EXPECT_FLOAT_EQ(runner.Read(scale)[0], 1 / (5 * kFirstLossScale));  // clipped to 1, and the factor is divided out
  EXPECT_EQ(runner.Read(state), (std::vector<float>{kFirstLossScale, 1, 4}));
  EXPECT_NEAR(runner.Read(master)[0], 0.75, 1e-6);  // after four skipped steps, Adam's first step is the learning rate
  EXPECT_NEAR(runner.Read(work)[1], -1.75, 1e-3);

  OpRunner overflow;
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor bad_sum = overflow.Make(DType::kF32, 1, 1, {inf});
  const Tensor bad_state = overflow.Make(DType::kF32, 1, kLossScaleState, {kFirstLossScale, 7, 2});
  const Tensor bad_norm = overflow.Empty(DType::kF32, 1, 1);
  const Tensor bad_scale = overflow.Empty(DType::kF32, 1, 1);
  const Tensor weight = overflow.Make(DType::kF16, 1, 1, {1});
  const Tensor kept = overflow.Make(DType::kF32, 1, 1, {1});
  const Tensor first = overflow.Make(DType::kF32, 1, 1, {0.5});
  const Tensor second = overflow.Make(DType::kF32, 1, 1, {0.25});
  const Tensor infinite = overflow.Make(DType::kF32, 1, 1, {inf});
  LossScale(overflow.trace, bad_sum, bad_state, bad_norm, bad_scale, 0);
  Adam(overflow.trace, weight, kept, first, second, infinite, bad_scale, {});
  overflow.Run(table_, {.step = 1, .learning_rate = 0.25});
  EXPECT_EQ(overflow.Read(bad_state), (std::vector<float>{kFirstLossScale / 2, 0, 3}));
  EXPECT_EQ(overflow.Read(bad_scale)[0], -1);
  for (const auto& [tensor, value] : {std::pair{weight, 1.0F}, {kept, 1.0F}, {first, 0.5F}, {second, 0.25F}}) {
    EXPECT_EQ(overflow.Read(tensor)[0], value);
  }

  OpRunner good;
  const Tensor good_state = good.Make(DType::kF32, 1, kLossScaleState, {1024, kLossScaleWindow - 1, 3});
  const Tensor good_norm = good.Empty(DType::kF32, 1, 1);
  LossScale(good.trace, good.Make(DType::kF32, 1, 1, {4}), good_state, good_norm, good.Empty(DType::kF32, 1, 1), 0);
  good.Run(table_);
  EXPECT_EQ(good.Read(good_state), (std::vector<float>{2048, 0, 3}));
}

}  // namespace
}  // namespace ridgeline::engine
