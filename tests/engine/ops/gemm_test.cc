#include "engine/ops/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/ops/quantize.h"
#include "engine/precision/reference.h"
#include "engine/precision/tf32.h"
#include "tests/engine/ops/every_target.h"
#include "tests/engine/ops/op_runner.h"
#include "tests/engine/ops/product_error.h"

namespace ridgeline::engine {
namespace {

CpuKernelTable GemmTable() {
  CpuKernelTable table;
  AddGemmCpu(table);
  return table;
}

class GemmOnDevice : public EveryTarget {
 protected:
  OpKernels kernels_ = Kernels({RIDGELINE_FAMILY(Gemm)});
};
RIDGELINE_ON_EVERY_DEVICE(GemmOnDevice);

struct GemmCase {
  int64_t m = 1, n = 1, k = 1;
  bool trans_a = false, trans_b = false;
  DType in = DType::kF32, out = DType::kF32;
  bool accumulate = false;
  bool bias = false;
  int64_t pad = 0;  // columns after every operand in its storage
  bool tf32 = false;

  std::string Name() const {
    return "m " + std::to_string(m) + " n " + std::to_string(n) + " k " + std::to_string(k) + " trans " +
           std::to_string(trans_a) + std::to_string(trans_b) + " " + std::string(DTypeName(in)) + " to " +
           std::string(DTypeName(out)) + (accumulate ? " accumulate" : "") + (bias ? " bias" : "") + " pad " +
           std::to_string(pad) + (tf32 ? " tf32" : "");
  }
};

// A product that was recorded and run, with its operands.
struct Product {
  OpRunner runner;
  Tensor a, b, c, bias, c_storage;
  std::vector<float> a_values, b_values, c_before, bias_values;

  explicit Product(const GemmCase& t) {
    const auto matrix = [&](DType dtype, int64_t rows, int64_t cols, uint32_t seed, Tensor& view) {
      const int64_t width = cols + t.pad;
      std::vector<float> all = NormalFloats(rows * width, seed);
      for (float& value : all) value = Rounded(value, dtype);
      const Tensor storage = runner.Make(dtype, rows, width, all);
      view = storage.Cols(t.pad / 2, cols);
      std::vector<float> values;
      for (int64_t row = 0; row < rows; ++row) {
        const auto begin = all.begin() + row * width + t.pad / 2;
        values.insert(values.end(), begin, begin + cols);
      }
      c_storage = storage;
      return values;
    };
    a_values = matrix(t.in, t.trans_a ? t.k : t.m, t.trans_a ? t.m : t.k, 1, a);
    b_values = matrix(t.in, t.trans_b ? t.n : t.k, t.trans_b ? t.k : t.n, 2, b);
    if (t.bias) {
      bias_values = NormalFloats(t.n, 3);
      for (float& value : bias_values) value = Rounded(value, t.out);
      bias = runner.Make(t.out, 1, t.n, bias_values);
    }
    c_before = matrix(t.out, t.m, t.n, 4, c);
    Gemm(runner.trace, a, t.trans_a ? Trans::kYes : Trans::kNo, b, t.trans_b ? Trans::kYes : Trans::kNo, c,
         t.accumulate, bias, t.tf32);
    for (std::vector<float>* values : {&a_values, &b_values}) {
      for (float& value : *values) value = t.tf32 ? RoundToTf32(value) : value;
    }
  }
};

// Compares elements of c (at most a few thousand, chosen at random) with double precision. An fp32 sum of k products
// may be off by rounding in every addition. A bf16 result may be off by one rounding, or by two if a bf16 c is added.
// With TF32 the operands are the rounded ones.
void Check(const OpKernels& kernels, const GemmCase& t) {
  SCOPED_TRACE(t.Name());
  Product p(t);
  p.runner.Run(kernels);
  const std::vector<float> c = p.runner.Read(p.c);
  std::mt19937 random(5);
  const int64_t total = t.m * t.n;
  const int64_t samples = std::min<int64_t>(total, 4000);
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t at = samples == total ? s : static_cast<int64_t>(random()) % total;
    const int64_t row = at / t.n;
    const int64_t col = at % t.n;
    const double before = t.accumulate ? p.c_before[static_cast<size_t>(at)] : 0.0;
    const double bias = t.bias ? p.bias_values[static_cast<size_t>(col)] : 0.0;
    double product = 0;
    double size = std::abs(before);
    for (int64_t i = 0; i < t.k; ++i) {
      const double term =
          static_cast<double>(p.a_values[static_cast<size_t>(t.trans_a ? i * t.m + row : row * t.k + i)]) *
          p.b_values[static_cast<size_t>(t.trans_b ? col * t.k + i : i * t.n + col)];
      product += term;
      size += std::abs(term);
    }
    const double bound =
        RoundingError(t.out, 1, product, before, bias) + 2e-6 * size + 1e-6 + (t.tf32 ? kTf32Error * size : 0);
    ASSERT_NEAR(c[static_cast<size_t>(at)], product + before + bias, bound) << "row " << row << " col " << col;
  }
  if (t.pad > 0) {  // the elements beside c are unchanged
    const std::vector<float> all = p.runner.Read(p.c_storage);
    const std::vector<float> before = NormalFloats(t.m * (t.n + t.pad), 4);
    for (int64_t row = 0; row < t.m; ++row) {
      for (const int64_t col : {t.pad / 2 - 1, t.pad / 2 + t.n}) {
        const auto at = static_cast<size_t>(row * (t.n + t.pad) + col);
        ASSERT_EQ(all[at], Rounded(before[at], t.out)) << "row " << row << " col " << col;
      }
    }
  }
}

void CheckForms(const OpKernels& kernels, GemmCase t) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        for (const bool bias : {false, true}) {
          t.trans_a = trans_a;
          t.trans_b = trans_b;
          t.accumulate = accumulate;
          t.bias = bias;
          Check(kernels, t);
        }
      }
    }
  }
}

struct Types {
  DType in, out;
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32},  {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16},
                            {DType::kF32, DType::kBF16}, {DType::kF16, DType::kF16},  {DType::kF16, DType::kF32}};

void CheckSmallShapes(const OpKernels& kernels) {
  for (const auto& [in, out] : kTypes) {
    for (const int64_t pad : {0, 6}) {
      Check(kernels, {.m = 1, .n = 1, .k = 1, .in = in, .out = out, .pad = pad});
      Check(kernels, {.m = 1, .n = 37, .k = 5, .trans_b = true, .in = in, .out = out, .accumulate = true, .pad = pad});
      Check(kernels, {.m = 67, .n = 1, .k = 33, .trans_a = true, .in = in, .out = out, .bias = true, .pad = pad});
      CheckForms(kernels, {.m = 33, .n = 65, .k = 129, .in = in, .out = out, .pad = pad});
    }
  }
}

TEST_P(GemmOnDevice, MatchesDoublePrecisionInEveryForm) { CheckSmallShapes(kernels_); }

TEST_P(GemmOnDevice, MultipliesWhatTf32LeavesOfFp32InEveryForm) {
  for (const DType out : {DType::kF32, DType::kBF16}) {
    Check(kernels_, {.m = 1, .n = 1, .k = 1, .out = out, .tf32 = true});
    CheckForms(kernels_, {.m = 33, .n = 65, .k = 129, .out = out, .pad = 6, .tf32 = true});
    CheckForms(kernels_, {.m = 16, .n = 32, .k = 48, .out = out, .tf32 = true});
  }
}

// A product with one term of two TF32 numbers is exact in fp32, so it shows their rounding to the bit.
TEST_P(GemmOnDevice, RoundsToTf32AsItIsDefined) {
  const auto multiply = [&](const GemmCase& t) {
    Product p(t);
    p.runner.Run(kernels_);
    return std::pair(p.runner.Read(p.c), std::move(p));
  };
  const GemmCase outer = {.m = 19, .n = 23, .k = 1, .tf32 = true};
  const auto [c, p] = multiply(outer);
  for (int64_t row = 0; row < outer.m; ++row) {
    for (int64_t col = 0; col < outer.n; ++col) {
      const float exact = p.a_values[static_cast<size_t>(row)] * p.b_values[static_cast<size_t>(col)];
      const float got = c[static_cast<size_t>(row * outer.n + col)];
      ASSERT_NEAR(got, exact, kTf32Error * std::abs(exact)) << row << " " << col;
    }
  }
  GemmCase unrounded = outer;
  unrounded.tf32 = false;
  if (kTf32Error == 0) {
    EXPECT_NE(multiply(unrounded).first, c);
  }
}

TEST_P(GemmOnDevice, MatchesDoublePrecisionInRandomShapes) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const Types types = kTypes[random() % 4];
    GemmCase t;
    t.m = 1 + random() % 300;
    t.n = 1 + random() % 300;
    t.k = 1 + random() % 300;
    t.in = types.in;
    t.out = types.out;
    t.trans_a = random() % 2 == 0;
    t.trans_b = random() % 2 == 0;
    t.accumulate = random() % 2 == 0;
    t.bias = random() % 2 == 0;
    t.pad = random() % 2 == 0 ? 0 : 2 + static_cast<int64_t>(random() % 20);
    Check(kernels_, t);
  }
}

// Large enough that c is cut into tiles, with last tiles of other sizes.
TEST(Gemm, MatchesDoublePrecisionInTiles) {
  for (const auto& [in, out] : kTypes) {
    Check(GemmTable(), {.m = 40, .n = 1100, .k = 1030, .in = in, .out = out});
    Check(GemmTable(), {.m = 40, .n = 1100, .k = 4100, .in = in, .out = out, .bias = true});
    Check(GemmTable(), {.m = 40, .n = 1100, .k = 1030, .trans_a = true, .in = in, .out = out, .accumulate = true});
    Check(GemmTable(), {.m = 40, .n = 1100, .k = 1030, .trans_a = true, .in = in, .out = out, .bias = true});
    Check(GemmTable(),
          {.m = 40, .n = 1100, .k = 1030, .trans_b = true, .in = in, .out = out, .accumulate = true, .bias = true});
    Check(GemmTable(), {.m = 2100, .n = 1024, .k = 1024, .trans_a = true, .in = in, .out = out, .accumulate = true});
    Check(GemmTable(), {.m = 2100, .n = 70, .k = 40, .in = in, .out = out, .bias = true, .pad = 2});
  }
}

// A gradient of weights, summed over micro-batches, has the same bits at every run.
TEST(Gemm, IsTheSameAtEveryRun) {
  const OpKernels kernels = GemmTable();
  for (const auto& [in, out] : kTypes) {
    for (const int64_t n : {200, 1100}) {
      Product p({.m = 260, .n = n, .k = 1500, .trans_a = true, .in = in, .out = out, .accumulate = true});
      p.runner.Run(kernels);
      const auto first = p.runner.Bytes(p.c);
      for (int run = 0; run < 3; ++run) {
        p.runner.Run(kernels);
        ASSERT_EQ(p.runner.Bytes(p.c), first);
      }
    }
  }
}

// Biases and rounding are our own vectorised code.
TEST(Gemm, MatchesOnEveryInstructionSet) {
  for (const int64_t target : CompiledTargets()) {
    hwy::GetChosenTarget().Update(target);
    CheckForms(GemmTable(), {.m = 33, .n = 65, .k = 20, .in = DType::kBF16, .out = DType::kBF16, .pad = 6});
    CheckForms(GemmTable(), {.m = 33, .n = 65, .k = 20, .in = DType::kF32, .out = DType::kBF16});
    CheckForms(GemmTable(), {.m = 33, .n = 65, .k = 20});
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Gemm, MatchesWithOneThread) {
  const Threads one(1);
  for (const auto& [in, out] : kTypes) {
    Check(GemmTable(), {.m = 90, .n = 1100, .k = 1030, .trans_a = true, .in = in, .out = out, .bias = true});
    Check(GemmTable(), {.m = 90, .n = 110, .k = 103, .trans_b = true, .in = in, .out = out, .bias = true});
  }
}

// Especially long sums of few elements, which threads could share.
TEST(Gemm, GivesTheSameBitsForAnyThreadCount) {
  for (const auto& [in, out] : kTypes) {
    for (GemmCase t : {GemmCase{.m = 1, .n = 64, .k = 4000}, GemmCase{.m = 33, .n = 65, .k = 5000},
                       GemmCase{.m = 128, .n = 128, .k = 64}, GemmCase{.m = 260, .n = 1100, .k = 1500},
                       GemmCase{.m = 700, .n = 1600, .k = 300}}) {
      for (const bool trans : {false, true}) {
        t.trans_a = t.accumulate = trans;
        t.trans_b = t.bias = !trans;
        t.in = in;
        t.out = out;
        SCOPED_TRACE(t.Name());
        std::vector<std::byte> first;
        for (const int count : {1, 2, 3, 4}) {
          const Threads threads(count);
          Product p(t);
          p.runner.Run(GemmTable());
          if (first.empty()) first = p.runner.Bytes(p.c);
          ASSERT_EQ(p.runner.Bytes(p.c), first) << count << " threads";
        }
      }
    }
  }
}

// A call may run with more or fewer threads than when it was prepared.
TEST(Gemm, RunsWithAnotherThreadCountThanPrepared) {
  Product p({.m = 500, .n = 1100, .k = 1500, .in = DType::kBF16});
  const CpuKernelTable table = GemmTable();
  {
    const Threads two(2);
    p.runner.Run(table);
  }
  const auto first = p.runner.Bytes(p.c);
  for (const int count : {1, 4}) {
    const Threads threads(count);
    p.runner.Continue(table);
    EXPECT_EQ(p.runner.Bytes(p.c), first) << count << " threads";
  }
}

TEST(Gemm, CountsItsCost) {
  Trace trace;
  const Tensor x = trace.Temporary(DType::kBF16, 6, 10, Category::kActivations);
  const Tensor w = trace.Temporary(DType::kBF16, 4, 10, Category::kParameters);
  const Tensor y = trace.Temporary(DType::kF32, 6, 4, Category::kActivations);
  Gemm(trace, x, Trans::kNo, w, Trans::kYes, y);
  Gemm(trace, x, Trans::kNo, w, Trans::kYes, y, true);
  ASSERT_EQ(trace.calls().size(), 2U);
  EXPECT_EQ(trace.calls()[0].cost.flops, 2.0 * 6 * 10 * 4);
  EXPECT_EQ(trace.calls()[0].cost.format, MathFormat::kBF16);
  EXPECT_EQ(trace.calls()[0].bytes(), 2.0 * 60 + 2.0 * 40 + 4.0 * 24);
  EXPECT_EQ(trace.calls()[1].bytes(), 2.0 * 60 + 2.0 * 40 + 4.0 * 24 + 4.0 * 24);
}

TEST(Gemm, RefusesShapesThatDoNotFit) {
  Trace trace;
  const auto tensor = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const auto message = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias = {}) {
    try {
      Gemm(trace, a, Trans::kNo, b, Trans::kYes, c, false, bias);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
      return error.message();
    }
    return std::string("accepted");
  };
  const Tensor a = tensor(DType::kF32, 3, 5);
  const Tensor b = tensor(DType::kF32, 7, 5);
  const Tensor c = tensor(DType::kF32, 3, 7);
  EXPECT_EQ(message(a, b, c), "accepted");
  const Tensor narrow = tensor(DType::kBF16, 7, 7);
  EXPECT_THROW(Gemm(trace, narrow, Trans::kNo, narrow, Trans::kYes, narrow, false, {}, true), Error) << "TF32 of bf16";
  EXPECT_THAT(message(a, tensor(DType::kF32, 7, 6), c), testing::HasSubstr("b fp32 (7, 6)"));
  EXPECT_THAT(message(a, b, tensor(DType::kF32, 7, 3)), testing::HasSubstr("c fp32 (7, 3)"));
  EXPECT_THAT(message(a, tensor(DType::kBF16, 7, 5), c), testing::HasSubstr("b bf16 (7, 5)"));
  EXPECT_THAT(message(a, b, tensor(DType::kI32, 3, 7)), testing::HasSubstr("c int32"));
  EXPECT_THAT(message(a, b, c, tensor(DType::kF32, 1, 3)), testing::HasSubstr("bias fp32 (1, 3)"));
  EXPECT_THAT(message(a, {}, c), testing::HasSubstr("b undefined"));
}

TEST(Gemm, KeepsBoundedScratchAndGivesItBack) {
  {
    Product p({.m = 70, .n = 1100, .k = 1030, .trans_a = true, .in = DType::kBF16, .out = DType::kBF16, .bias = true});
    p.runner.Run(GemmTable());
    EXPECT_GT(GemmScratchBytes(), 0);
    EXPECT_LE(GemmScratchBytes(), (int64_t{8} << 20) + (int64_t{4} << 20) * omp_get_max_threads());
  }
  EXPECT_EQ(GemmScratchBytes(), 0);
}

struct Formats {
  const char* name;
  Quantizer a, b;
};
constexpr Formats kFormats[] = {
    {"e4m3 e5m2", {Format::kE4M3, Scaling::kCurrent}, {Format::kE5M2, Scaling::kCurrent}},
    {"mxfp8", {Format::kE4M3, Scaling::kBlock32}, {Format::kE4M3, Scaling::kBlock32}},
    {"nvfp4", {Format::kE2M1, Scaling::kBlock16}, {Format::kE2M1, Scaling::kBlock16x16}},
};

// A product of quantized operands is the product of the dequantized operands.
void CheckQuantized(const OpKernels& kernels, const Formats& formats, int64_t m, int64_t n, int64_t k, DType out,
                    bool accumulate, bool bias) {
  SCOPED_TRACE(std::string(formats.name) + " m " + std::to_string(m) + " n " + std::to_string(n) + " k " +
               std::to_string(k));
  OpRunner runner;
  const std::vector<float> a_values = NormalFloats(m * k, 1);
  const std::vector<float> b_values = NormalFloats(n * k, 2, 0.02F);
  const std::vector<float> c_values = NormalFloats(m * n, 3);
  const Tensor a = runner.Make(DType::kF32, m, k, a_values);
  const Tensor b = runner.Make(DType::kF32, n, k, b_values);
  const Tensor c = runner.Make(out, m, n, c_values);
  const Tensor bias_row = bias ? runner.Normal(out, 1, n, 4) : Tensor{};
  const QuantizedTensor qa = NewQuantized(runner.trace, formats.a, m, k, Category::kActivations);
  const QuantizedTensor qb = NewQuantized(runner.trace, formats.b, n, k, Category::kActivations);
  Quantize(runner.trace, a, &qa, nullptr, {}, {});
  Quantize(runner.trace, b, &qb, nullptr, {}, {});
  Gemm(runner.trace, qa, qb, c, accumulate, bias_row);
  runner.Run(kernels);

  const std::vector<float> got = runner.Read(c);
  const std::vector<float> bias_values = bias ? runner.Read(bias_row) : std::vector<float>(static_cast<size_t>(n));
  const std::vector<float> da = DequantizeReference(QuantizeReference(formats.a, a_values, m, k));
  const std::vector<float> db = DequantizeReference(QuantizeReference(formats.b, b_values, n, k));
  const int64_t terms = formats.a.PaddedInner(k);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < n; ++col) {
      const auto at = static_cast<size_t>(row * n + col);
      const double bias_value = bias_values[static_cast<size_t>(col)];
      const double before = accumulate ? static_cast<double>(Rounded(c_values[at], out)) : 0.0;
      double product = 0;
      double size = std::abs(bias_value + before);
      for (int64_t i = 0; i < terms; ++i) {
        const double term = static_cast<double>(da[static_cast<size_t>(row * terms + i)]) *
                            static_cast<double>(db[static_cast<size_t>(col * terms + i)]);
        product += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(got[at], product + before + bias_value,
                  RoundingError(out, 2, product, before, bias_value) + kCodesSumError * size + 1e-9);
    }
  }
}

class QuantizedGemm : public EveryTarget {
 protected:
  OpKernels kernels_ = Kernels({RIDGELINE_FAMILY(Gemm), RIDGELINE_FAMILY(Quantize)});
};
RIDGELINE_ON_EVERY_DEVICE(QuantizedGemm);

TEST_P(QuantizedGemm, IsTheProductOfWhatItsOperandsStandFor) {
  for (const Formats& formats : kFormats) {
    CheckQuantized(kernels_, formats, 7, 5, 3, DType::kF32, false, false);
    CheckQuantized(kernels_, formats, 64, 96, 128, DType::kF32, true, false);
    CheckQuantized(kernels_, formats, 33, 50, 450, DType::kBF16, false, true);
    CheckQuantized(kernels_, formats, 101, 49, 385, DType::kBF16, true, true);
  }
}

TEST(QuantizedGemmRecord, RefusesOperandsOfDifferentLengths) {
  Trace trace;
  const QuantizedTensor a = NewQuantized(trace, kFormats[1].a, 4, 64, Category::kActivations);
  const QuantizedTensor b = NewQuantized(trace, kFormats[1].b, 6, 96, Category::kActivations);
  const Tensor c = trace.Temporary(DType::kBF16, 4, 6, Category::kActivations);
  EXPECT_THROW(Gemm(trace, a, b, c), Error);
}

}  // namespace
}  // namespace ridgeline::engine
