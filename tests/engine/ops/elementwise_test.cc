#include "engine/ops/elementwise.h"

#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <random>

#include "base/error.h"
#include "engine/ops/philox.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kLengths[] = {1, 3, 16, 31, 32, 33, 64, 100, 1023, 2500};

class Elementwise : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Elementwise)});
};
RIDGELINE_ON_EVERY_TARGET(Elementwise);

double GeluReference(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double SiluReference(double x) { return x / (1 + std::exp(-x)); }

// Numbers from the whole range where an activation bends, and from far beyond.
std::vector<float> Ramp(DType dtype, int64_t count, uint32_t seed) {
  std::vector<float> values = RepresentableNormal(dtype, count, seed, 3);
  for (size_t i = 0; i < values.size(); i += 5) values[i] = Rounded(values[i] * 30, dtype);
  return values;
}

TEST_P(Elementwise, GeluIsItsFormula) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : kLengths) {
      const auto x = Ramp(dtype, n, 1);
      std::vector<double> expected;
      for (const float v : x) expected.push_back(GeluReference(v));
      OpRunner runner;
      const Tensor tx = runner.Make(dtype, 1, n, x);
      const Tensor y = runner.Empty(dtype, 1, n);
      Gelu(runner.trace, tx, y);
      Gelu(runner.trace, tx, tx);  // in place
      runner.Run(table_);
      ExpectClose(runner.Read(y), expected, dtype, 1e-7);
      EXPECT_EQ(runner.Bytes(tx), runner.Bytes(y));
    }
  }
}

TEST_P(Elementwise, GeluKeepsNanAndInfinity) {
  OpRunner runner;
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = runner.Make(DType::kF32, 1, 3, {std::nanf(""), infinity, 1e30F});
  Gelu(runner.trace, x, x);
  runner.Run(table_);
  EXPECT_TRUE(std::isnan(runner.Read(x)[0]));
  EXPECT_EQ(runner.Read(x)[1], infinity);
  EXPECT_EQ(runner.Read(x)[2], 1e30F);
}

TEST_P(Elementwise, GeluBackwardIsTheSlope) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : kLengths) {
      const auto x = Ramp(dtype, n, 1);
      const auto dy = RepresentableNormal(dtype, n, 2);
      std::vector<double> expected;
      for (size_t i = 0; i < x.size(); ++i) expected.push_back(dy[i] * Slope(GeluReference, x[i]));
      OpRunner runner;
      const Tensor tx = runner.Make(dtype, 1, n, x);
      const Tensor tx2 = runner.Make(dtype, 1, n, x);
      const Tensor tdy = runner.Make(dtype, 1, n, dy);
      const Tensor dx = runner.Empty(dtype, 1, n);
      GeluBackward(runner.trace, tdy, tx, dx);
      GeluBackward(runner.trace, tdy, tx2, tx2);
      GeluBackward(runner.trace, tdy, tx, tdy);
      runner.Run(table_);
      ExpectClose(runner.Read(dx), expected, dtype, 2e-7);
      EXPECT_EQ(runner.Bytes(tx2), runner.Bytes(dx));
      EXPECT_EQ(runner.Bytes(tdy), runner.Bytes(dx));
    }
  }
}

TEST_P(Elementwise, SwiGluIsItsFormulaAndItsBackwardTheSlope) {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, ffn] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2, 32}, {5, 33}, {40, 500}}) {
      const auto gate_up = Ramp(dtype, rows * 2 * ffn, 1);
      const auto dy = RepresentableNormal(dtype, rows * ffn, 2);
      std::vector<double> y, gradient(gate_up.size());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < ffn; ++c) {
          const auto at = static_cast<size_t>(r * 2 * ffn + c);
          const double gate = gate_up[at];
          const double up = gate_up[at + static_cast<size_t>(ffn)];
          const double d = dy[static_cast<size_t>(r * ffn + c)];
          y.push_back(SiluReference(gate) * up);
          gradient[at] = d * up * Slope(SiluReference, gate);
          gradient[at + static_cast<size_t>(ffn)] = d * SiluReference(gate);
        }
      }
      OpRunner runner;
      const Tensor in = runner.Make(dtype, rows, 2 * ffn, gate_up);
      const Tensor tdy = runner.Make(dtype, rows, ffn, dy);
      const Tensor ty = runner.Empty(dtype, rows, ffn);
      const Tensor out = runner.Empty(dtype, rows, 2 * ffn);
      SwiGlu(runner.trace, in, ty);
      SwiGluBackward(runner.trace, tdy, in, out);
      SwiGluBackward(runner.trace, tdy, in, in);
      runner.Run(table_);
      ExpectClose(runner.Read(ty), y, dtype, 1e-7);
      ExpectClose(runner.Read(out), gradient, dtype, 1e-7 * 90);
      EXPECT_EQ(runner.Bytes(in), runner.Bytes(out));
    }
  }
}

TEST_P(Elementwise, RopeTurnsPairsByTheirPositionsAngle) {
  for (const DType dtype : kFloats) {
    for (const int64_t head_dim : {2, 6, 32, 64, 72, 128}) {
      constexpr int64_t kSeq = 5, kBatch = 3, kHeads = 3, kPad = 8;
      const int64_t cols = kHeads * head_dim;
      const int64_t half = head_dim / 2;
      const double theta = 500;
      std::vector<float> table(static_cast<size_t>(kSeq * head_dim));
      FillRopeTable(table.data(), kSeq, head_dim, theta);
      const auto x = RepresentableNormal(dtype, kBatch * kSeq * (cols + kPad), 1);
      std::vector<double> expected;
      for (int64_t row = 0; row < kBatch * kSeq; ++row) {
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t i = c % head_dim;
          const double angle =
              static_cast<double>(row % kSeq) * std::pow(theta, -2.0 * static_cast<double>(i % half) / head_dim);
          const auto at = [&](int64_t col) {
            return static_cast<double>(x[static_cast<size_t>(row * (cols + kPad) + col)]);
          };
          expected.push_back(i < half ? at(c) * std::cos(angle) - at(c + half) * std::sin(angle)
                                      : at(c) * std::cos(angle) + at(c - half) * std::sin(angle));
        }
      }
      OpRunner runner;
      const Tensor whole = runner.Make(dtype, kBatch * kSeq, cols + kPad, x);
      const Tensor tx = whole.Cols(0, cols);
      const Tensor cos_sin = runner.Make(DType::kF32, kSeq, head_dim, table);
      Rope(runner.trace, tx, cos_sin, kSeq, head_dim, false);
      runner.Run(table_);
      ExpectClose(runner.Read(tx), expected, dtype, 1e-6);
      const std::vector<float> pad = runner.Read(whole.Cols(cols, kPad));
      for (size_t i = 0; i < pad.size(); ++i) {
        EXPECT_EQ(pad[i], x[(i / kPad + 1) * static_cast<size_t>(cols) + i]);
      }

      OpRunner back;
      const Tensor y = back.Make(DType::kF32, kBatch * kSeq, cols, NormalFloats(kBatch * kSeq * cols, 1));
      const Tensor again = back.Make(DType::kF32, kSeq, head_dim, table);
      Rope(back.trace, y, again, kSeq, head_dim, false);
      Rope(back.trace, y, again, kSeq, head_dim, true);
      back.Run(table_);
      ExpectClose(back.Read(y), Doubles(NormalFloats(kBatch * kSeq * cols, 1)), DType::kF32, 1e-6);
    }
  }
}

TEST_P(Elementwise, WithoutDropoutAddsOverEitherOperand) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : kLengths) {
      const auto a = RepresentableNormal(dtype, n, 1);
      const auto b = RepresentableNormal(dtype, n, 2);
      std::vector<float> expected;
      for (size_t i = 0; i < a.size(); ++i) expected.push_back(Rounded(a[i] + b[i], dtype));
      OpRunner runner;
      const Tensor ta = runner.Make(dtype, 1, n, a);
      const Tensor tb = runner.Make(dtype, 1, n, b);
      const Tensor tc = runner.Make(dtype, 1, n, b);
      const Tensor out = runner.Empty(dtype, 1, n);
      DropoutAdd(runner.trace, ta, tb, out, 0, {});
      DropoutAdd(runner.trace, ta, tb, tb, 0, {});
      DropoutAdd(runner.trace, ta, tc, ta, 0, {});
      runner.Run(table_);
      EXPECT_EQ(runner.Read(out), expected);
      EXPECT_EQ(runner.Read(ta), expected);
      EXPECT_EQ(runner.Read(tb), expected);
    }
  }
}

// Ties, both ways, overflow to infinity, subnormals, and NaN of any payload.
TEST_P(Elementwise, RoundsToNearestEven) {
  std::vector<uint32_t> bits = {0x3f808000, 0x3f818000, 0x3f808001, 0x3f817fff, 0x7f7fffff, 0xff7fffff,
                                0x00008000, 0x00018000, 0x7f800000, 0xff800000, 0x80000000, 0};
  std::mt19937 engine(3);
  while (bits.size() < 4000) bits.push_back(static_cast<uint32_t>(engine()));
  std::vector<float> values;
  for (const uint32_t b : bits) {
    float value;
    std::memcpy(&value, &b, sizeof value);
    if (!std::isnan(value)) values.push_back(value);
  }
  // A sum over one row rounds its fp32 operand.
  OpRunner runner;
  const auto n = static_cast<int64_t>(values.size());
  const Tensor x = runner.Make(DType::kF32, 1, n, values);
  const Tensor y = runner.Empty(DType::kBF16, 1, n);
  const Tensor poison = runner.Empty(DType::kF32, 1, n);  // NaN: all bits are one
  const Tensor z = runner.Empty(DType::kBF16, 1, n);
  ColumnSum(runner.trace, x, y, false);
  ColumnSum(runner.trace, poison, z, false);
  runner.Run(table_);
  const std::vector<float> rounded = runner.Read(y);
  const std::vector<float> nan = runner.Read(z);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(rounded[i], Rounded(values[i], DType::kBF16)) << values[i];
    ASSERT_TRUE(std::isnan(nan[i]));
  }
}

TEST_P(Elementwise, DropoutIsPhiloxs) {
  const StepInputs inputs = {.step = 12, .learning_rate = 0, .seed = 0x123456789abcdef0};
  for (const DType dtype : kFloats) {
    for (const double p : {0.0, 0.1, 0.5, 0.9}) {
      for (const int64_t n : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{5001}}) {
        const auto x = RepresentableNormal(dtype, n, 1);
        const auto residual = RepresentableNormal(dtype, n, 2);
        std::vector<double> sum, gradient;
        for (int64_t i = 0; i < n; ++i) {
          const bool keep = p == 0 || RandomBits(inputs.seed, inputs.step, 77, i) >= DropoutThreshold(p);
          gradient.push_back(keep ? x[static_cast<size_t>(i)] / (1 - p) : 0);
          sum.push_back(gradient.back() + residual[static_cast<size_t>(i)]);
        }
        OpRunner runner;
        const Tensor tx = runner.Make(dtype, 1, n, x);
        const Tensor tr = runner.Make(dtype, 1, n, residual);
        const Tensor out = runner.Empty(dtype, 1, n);
        const Tensor dx = runner.Empty(dtype, 1, n);
        const Tensor tx2 = runner.Make(dtype, 1, n, x);
        DropoutAdd(runner.trace, tx, tr, out, p, {77});
        DropoutBackward(runner.trace, tx, dx, p, {77});
        DropoutAdd(runner.trace, tx, tr, tr, p, {77});
        DropoutBackward(runner.trace, tx2, tx2, p, {77});
        runner.Run(table_, inputs);
        ExpectClose(runner.Read(out), sum, dtype, 1e-6);
        ExpectClose(runner.Read(dx), gradient, dtype, 0);
        EXPECT_EQ(runner.Bytes(out), runner.Bytes(tr));
        EXPECT_EQ(runner.Bytes(dx), runner.Bytes(tx2));
      }
    }
  }
}

TEST_P(Elementwise, DropoutDropsItsShare) {
  constexpr int64_t kCount = 200000;
  OpRunner runner;
  const Tensor x = runner.Make(DType::kF32, 1, kCount, std::vector<float>(kCount, 1));
  DropoutBackward(runner.trace, x, x, 0.1, {5});
  runner.Run(table_, {.step = 1, .learning_rate = 0, .seed = 3});
  int64_t dropped = 0;
  for (const float v : runner.Read(x)) dropped += v == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(dropped) / kCount, 0.1, 0.004);  // 6 standard deviations
}

TEST_P(Elementwise, UniformIsPhiloxsBelowOne) {
  const StepInputs inputs = {.step = 2, .learning_rate = 0, .seed = 99};
  for (const DType dtype : kFloats) {
    constexpr int64_t kCount = 40001;
    OpRunner runner;
    const Tensor x = runner.Empty(dtype, 1, kCount);
    FillUniform(runner.trace, x, {4});
    runner.Run(table_, inputs);
    const std::vector<float> values = runner.Read(x);
    double sum = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const uint32_t bits = RandomBits(99, 2, 4, i);
      const double expected = dtype == DType::kF32 ? (bits >> 8) / 16777216.0 : (bits >> 24) / 256.0;
      ASSERT_EQ(values[static_cast<size_t>(i)], expected) << i;
      sum += values[static_cast<size_t>(i)];
    }
    EXPECT_NEAR(sum / kCount, dtype == DType::kF32 ? 0.5 : 0.498, 0.01);
  }
}

// A rank's rows can begin anywhere in the tensor that a single rank would have.
TEST_P(Elementwise, AStreamCanBeginAnywhere) {
  const StepInputs inputs = {.step = 2, .learning_rate = 0, .seed = 99};
  constexpr int64_t kCount = 301;
  constexpr float kP = 0.3F;
  for (const DType dtype : kFloats) {
    for (const int64_t first :
         {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{37 * 48}, (int64_t{5} << 33) + 7}) {
      OpRunner runner;
      const Tensor uniform = runner.Empty(dtype, 1, kCount);
      const Tensor ones = runner.Make(dtype, 1, kCount, std::vector<float>(kCount, 1));
      const Tensor dropped = runner.Empty(dtype, 1, kCount);
      FillUniform(runner.trace, uniform, {4, first});
      DropoutBackward(runner.trace, ones, dropped, kP, {4, first});
      runner.Run(table_, inputs);
      const std::vector<float> values = runner.Read(uniform);
      const std::vector<float> kept = runner.Read(dropped);
      for (int64_t i = 0; i < kCount; ++i) {
        const uint32_t bits = RandomBits(99, 2, 4, first + i);
        const double expected = dtype == DType::kF32 ? (bits >> 8) / 16777216.0 : (bits >> 24) / 256.0;
        ASSERT_EQ(values[static_cast<size_t>(i)], expected) << first << " + " << i;
        ASSERT_EQ(kept[static_cast<size_t>(i)] > 0, bits >= DropoutThreshold(kP)) << first << " + " << i;
      }
    }
  }
}

TEST_P(Elementwise, FillFills) {
  for (const DType dtype : kFloats) {
    OpRunner runner;
    const Tensor x = runner.Empty(dtype, 3, 37);
    Fill(runner.trace, x, 0.1);
    runner.Run(table_);
    EXPECT_EQ(runner.Read(x), std::vector<float>(111, Rounded(0.1F, dtype)));

    OpRunner scaled;
    const Tensor factor = scaled.Make(DType::kF32, 1, 1, {3});
    const Tensor y = scaled.Empty(dtype, 3, 37);
    Fill(scaled.trace, y, 0.25, factor);
    scaled.Run(table_);
    EXPECT_EQ(scaled.Read(y), std::vector<float>(111, 0.75F));
  }
}

// Many elements are loaded at once if their addresses allow it.
TEST_P(Elementwise, AddressesChangeNothing) {
  constexpr int64_t kRows = 6, kCols = 96;
  for (const DType dtype : kFloats) {
    std::vector<std::vector<float>> first;
    for (const int64_t begin : {0, 1, 4}) {
      OpRunner runner;
      const auto view = [&](int64_t cols, uint32_t seed) {
        std::vector<float> values(static_cast<size_t>(begin));
        const auto normal = RepresentableNormal(dtype, kRows * cols, seed);
        values.insert(values.end(), normal.begin(), normal.end());
        return runner.Make(dtype, 1, begin + kRows * cols, values).Cols(begin, kRows * cols).Reshape(kRows, cols);
      };
      const Tensor x = view(kCols, 1), gate_up = view(2 * kCols, 2), d_gate_up = view(2 * kCols, 3);
      const Tensor gelu = view(kCols, 4), d_gelu = view(kCols, 5), gated = view(kCols, 6), added = view(kCols, 7);
      const Tensor dropped = view(kCols, 8), uniform = view(kCols, 9), filled = view(kCols, 10);
      const Tensor turned = view(kCols, 11);
      const Tensor sum = runner.Empty(DType::kF32, 1, kCols);
      const Tensor table = runner.Normal(DType::kF32, 3, 32, 12);
      Gelu(runner.trace, x, gelu);
      GeluBackward(runner.trace, x, gelu, d_gelu);
      SwiGlu(runner.trace, gate_up, gated);
      SwiGluBackward(runner.trace, x, gate_up, d_gate_up);
      DropoutAdd(runner.trace, x, gelu, added, 0.3, {1});
      DropoutBackward(runner.trace, x, dropped, 0.3, {2});
      FillUniform(runner.trace, uniform, {3});
      Fill(runner.trace, filled, 0.5);
      Rope(runner.trace, turned, table, 3, 32, false);
      ColumnSum(runner.trace, x, sum, false);
      runner.Run(table_, {.step = 2, .learning_rate = 0, .seed = 5});
      const Tensor outputs[] = {gelu, d_gelu, gated, d_gate_up, added, dropped, uniform, filled, turned, sum};
      for (size_t i = 0; i < std::size(outputs); ++i) {
        if (begin == 0) {
          first.push_back(runner.Read(outputs[i]));
        } else {
          EXPECT_EQ(runner.Read(outputs[i]), first[i]) << "output " << i << " from " << begin;
        }
      }
    }
  }
}

TEST_P(Elementwise, ColumnSumSums) {
  for (const DType dtype : kFloats) {
    for (const DType sum_dtype : kFloats) {
      for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {7, 33}, {64, 64}, {333, 100}, {3000, 5}}) {
        const auto x = RepresentableNormal(dtype, rows * (cols + 3), 1);
        const auto old = RepresentableNormal(sum_dtype, cols, 2);
        std::vector<double> expected(static_cast<size_t>(cols));
        for (int64_t i = 0; i < rows * cols; ++i) {
          expected[static_cast<size_t>(i % cols)] += x[static_cast<size_t>(i / cols * (cols + 3) + i % cols)];
        }
        OpRunner runner;
        const Tensor tx = runner.Make(dtype, rows, cols + 3, x).Cols(0, cols);
        const Tensor sum = runner.Empty(sum_dtype, 1, cols);
        const Tensor sums = runner.Make(sum_dtype, 1, cols, old);
        ColumnSum(runner.trace, tx, sum, false);
        ColumnSum(runner.trace, tx, sums, true);
        runner.Run(table_);
        ExpectClose(runner.Read(sum), expected, sum_dtype, 1e-4);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += old[i];
        ExpectClose(runner.Read(sums), expected, sum_dtype, 1e-4);
      }
    }
  }
}

TEST_P(Elementwise, ThreadsChangeNothing) {
  ExpectSameForAnyThreads(table_, [](OpRunner& runner) -> std::vector<Tensor> {
    constexpr int64_t kRows = 150, kCols = 462;
    const DType dtype = DType::kBF16;
    const Tensor x = runner.Normal(dtype, kRows, kCols, 1);
    const Tensor r = runner.Normal(dtype, kRows, kCols, 2);
    const Tensor sum = runner.Empty(DType::kF32, 1, kCols);
    const Tensor out = runner.Empty(dtype, kRows, kCols);
    const Tensor half = runner.Empty(dtype, kRows, kCols / 2);
    const Tensor uniform = runner.Empty(DType::kF32, kRows, kCols);
    const Tensor turned = runner.Normal(dtype, kRows, kCols, 3);
    const Tensor cos_sin = runner.Normal(DType::kF32, 10, 22, 3);
    DropoutAdd(runner.trace, x, r, out, 0.3, {1});
    ColumnSum(runner.trace, x, sum, false);
    FillUniform(runner.trace, uniform, {2});
    SwiGlu(runner.trace, x, half);
    Rope(runner.trace, turned, cos_sin, 10, 22, false);
    return {out, sum, uniform, half, turned};
  });
}

// Large outputs bypass the caches.
TEST_P(Elementwise, LargeIsAsSmall) {
  constexpr int64_t kRows = 2080, kCols = 2048, kHalf = kRows / 2;
  OpRunner runner;
  const DType dtype = DType::kBF16;
  const Tensor x = runner.Normal(dtype, kHalf, 2 * kCols, 1).Reshape(kRows, kCols);
  const Tensor gelu = runner.Empty(dtype, kRows, kCols);
  const Tensor gelus = runner.Empty(dtype, kRows, kCols);
  const Tensor gated = runner.Empty(dtype, kRows, kCols);
  const Tensor uniform = runner.Empty(dtype, 2 * kRows, kCols);
  const Tensor gate_up = uniform.Reshape(kRows, 2 * kCols);
  const Tensor gate_up_gradient = runner.Empty(dtype, kRows, 2 * kCols);
  const Tensor gateds = runner.Empty(dtype, kRows, kCols);
  Gelu(runner.trace, x, gelu);
  FillUniform(runner.trace, uniform, {1});
  SwiGlu(runner.trace, gate_up, gated);
  SwiGluBackward(runner.trace, x, gate_up, gate_up_gradient);
  for (int64_t row = 0; row < kRows; row += kHalf) {
    Gelu(runner.trace, x.Rows(row, kHalf), gelus.Rows(row, kHalf));
    SwiGlu(runner.trace, gate_up.Rows(row, kHalf), gateds.Rows(row, kHalf));
  }
  SwiGluBackward(runner.trace, x, gate_up, gate_up);
  runner.Run(table_);
  EXPECT_EQ(runner.Bytes(gelu), runner.Bytes(gelus));
  EXPECT_EQ(runner.Bytes(gated), runner.Bytes(gateds));
  EXPECT_EQ(runner.Bytes(gate_up), runner.Bytes(gate_up_gradient));
}

TEST(ElementwiseRecord, RefusesOtherShapes) {
  Trace trace;
  const auto make = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const Tensor x = make(DType::kBF16, 4, 8);
  const Tensor wide = make(DType::kBF16, 4, 16);
  const Tensor fp32 = make(DType::kF32, 4, 8);
  const Tensor table = make(DType::kF32, 2, 4);
  EXPECT_THROW(Gelu(trace, x, wide), Error);
  EXPECT_THROW(Gelu(trace, x, fp32), Error);
  EXPECT_THROW(Gelu(trace, wide.Cols(0, 8), x), Error);
  EXPECT_THROW(GeluBackward(trace, wide, x, x), Error);
  EXPECT_THROW(SwiGlu(trace, x, x), Error);
  EXPECT_THROW(SwiGluBackward(trace, x, wide, x), Error);
  EXPECT_THROW(DropoutAdd(trace, x, fp32, x, 0, {}), Error);
  EXPECT_THROW(DropoutAdd(trace, x, x, x, 1.0, {}), Error);
  EXPECT_THROW(DropoutBackward(trace, x, x, -0.1, {}), Error);
  EXPECT_THROW(Rope(trace, x, table, 2, 3, false), Error);
  EXPECT_THROW(Rope(trace, x, table, 3, 4, false), Error);
  EXPECT_THROW(Rope(trace, x.Rows(0, 3), table, 2, 4, false), Error);
  EXPECT_THROW(ColumnSum(trace, x, make(DType::kF32, 1, 9), false), Error);
  EXPECT_THROW(Fill(trace, make(DType::kI32, 1, 9), 0), Error);
  EXPECT_TRUE(trace.calls().empty());
}

}  // namespace
}  // namespace ridgeline::engine
