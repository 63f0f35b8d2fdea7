#include "engine/ops/norm.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

constexpr double kNormEps = 1e-5;

class Norm : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Elementwise), RIDGELINE_FAMILY(Norm)});
};
RIDGELINE_ON_EVERY_TARGET(Norm);

struct Row {
  std::vector<double> y;
  double mean = 0;
  double rstd = 0;
};
Row NormRow(const std::vector<double>& x, const std::vector<double>& weight, const std::vector<double>& bias,
            bool center) {
  Row row;
  const auto n = static_cast<double>(x.size());
  if (center) {
    for (const double v : x) row.mean += v / n;
  }
  double squares = 0;
  for (const double v : x) squares += (v - row.mean) * (v - row.mean) / n;
  row.rstd = 1 / std::sqrt(squares + kNormEps);
  for (size_t i = 0; i < x.size(); ++i) {
    row.y.push_back((x[i] - row.mean) * row.rstd * weight[i] + (center ? bias[i] : 0));
  }
  return row;
}

struct NormCase {
  int64_t rows, cols;
};
constexpr NormCase kCases[] = {{1, 2}, {3, 5}, {2, 16}, {33, 31}, {5, 64}, {70, 33}, {4, 257}};

std::vector<double> RowOf(const std::vector<float>& m, int64_t row, int64_t cols) {
  return {m.begin() + row * cols, m.begin() + (row + 1) * cols};
}

void CheckForward(const OpKernels& table, bool center) {
  for (const DType dtype : kFloats) {
    for (const auto [rows, cols] : kCases) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      std::vector<float> x = RepresentableNormal(dtype, rows * cols, 1, 3);
      for (float& v : x) v = Rounded(v + 2, dtype);
      const auto weight = RepresentableNormal(dtype, cols, 2);
      const auto bias = RepresentableNormal(dtype, cols, 3);
      OpRunner runner;
      const Tensor tx = runner.Make(dtype, rows, cols, x);
      const Tensor tw = runner.Make(dtype, 1, cols, weight);
      const Tensor tb = runner.Make(dtype, 1, cols, bias);
      const Tensor y = runner.Empty(dtype, rows, cols);
      const Tensor mean = runner.Empty(DType::kF32, 1, rows);
      const Tensor rstd = runner.Empty(DType::kF32, 1, rows);
      if (center) {
        LayerNorm(runner.trace, tx, tw, tb, y, mean, rstd, kNormEps);
      } else {
        RmsNorm(runner.trace, tx, tw, y, rstd, kNormEps);
      }
      runner.Run(table);
      std::vector<double> expected, means, rstds;
      for (int64_t r = 0; r < rows; ++r) {
        const Row row = NormRow(RowOf(x, r, cols), Doubles(weight), Doubles(bias), center);
        expected.insert(expected.end(), row.y.begin(), row.y.end());
        means.push_back(row.mean);
        rstds.push_back(row.rstd);
      }
      ExpectClose(runner.Read(y), expected, dtype, 2e-6);
      ExpectClose(runner.Read(rstd), rstds, DType::kF32, 0, 2e-6);
      if (center) ExpectClose(runner.Read(mean), means, DType::kF32, 1e-6);
    }
  }
}

TEST_P(Norm, RmsNormIsItsFormula) { CheckForward(table_, false); }
TEST_P(Norm, LayerNormIsItsFormula) { CheckForward(table_, true); }

TEST_P(Norm, LayerNormKeepsItsDigitsFarFromZero) {
  OpRunner runner;
  std::vector<float> x(200);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 4096.0F + static_cast<float>(i % 2);
  const Tensor tx = runner.Make(DType::kF32, 1, 200, x);
  const Tensor one = runner.Make(DType::kF32, 1, 200, std::vector<float>(200, 1));
  const Tensor zero = runner.Make(DType::kF32, 1, 200, std::vector<float>(200, 0));
  const Tensor y = runner.Empty(DType::kF32, 1, 200);
  const Tensor mean = runner.Empty(DType::kF32, 1, 1);
  const Tensor rstd = runner.Empty(DType::kF32, 1, 1);
  LayerNorm(runner.trace, tx, one, zero, y, mean, rstd, 0);
  runner.Run(table_);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(runner.Read(y)[i], i % 2 == 0 ? -1 : 1, 1e-3);
}

// Compares with the slopes of the formula in double: L = sum of dy * y.
void CheckBackward(const OpKernels& table, bool center, DType dtype, DType gradient, bool overwrite_dx,
                   bool accumulate) {
  for (const NormCase& shape : kCases) {
    const int64_t rows = shape.rows;
    const int64_t cols = shape.cols;
    SCOPED_TRACE(testing::Message() << rows << " x " << cols << " " << DTypeName(dtype) << " " << DTypeName(gradient)
                                    << (overwrite_dx ? " overwrite" : "") << (accumulate ? " accumulate" : ""));
    const auto x = RepresentableNormal(dtype, rows * cols, 1, 2);
    const auto dy = RepresentableNormal(dtype, rows * cols, 2);
    const auto weight = RepresentableNormal(dtype, cols, 3);
    const auto old_dx = RepresentableNormal(dtype, rows * cols, 4);
    const auto old_dweight = RepresentableNormal(gradient, cols, 5);
    const auto old_dbias = RepresentableNormal(gradient, cols, 6);
    std::vector<double> dx = Doubles(old_dx), dweight = Doubles(old_dweight), dbias = Doubles(old_dbias);
    if (overwrite_dx) dx.assign(dx.size(), 0);
    if (!accumulate) {
      dweight.assign(dweight.size(), 0);
      dbias.assign(dbias.size(), 0);
    }
    const std::vector<double> weights = Doubles(weight);
    std::vector<float> means, rstds;
    const std::vector<double> zeros(static_cast<size_t>(cols), 0.0);
    const std::vector<double> ones(static_cast<size_t>(cols), 1.0);
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> row = RowOf(x, r, cols);
      const Row at = NormRow(row, ones, zeros, center);
      means.push_back(static_cast<float>(at.mean));
      rstds.push_back(static_cast<float>(at.rstd));
      for (int64_t c = 0; c < cols; ++c) {
        const double dyc = dy[static_cast<size_t>(r * cols + c)];
        dweight[static_cast<size_t>(c)] += dyc * at.y[static_cast<size_t>(c)];
        dbias[static_cast<size_t>(c)] += dyc;
        const double old = row[static_cast<size_t>(c)];
        dx[static_cast<size_t>(r * cols + c)] += Slope(
            [&](double v) {
              row[static_cast<size_t>(c)] = v;
              const Row moved = NormRow(row, weights, zeros, center);
              double loss = 0;
              for (int64_t k = 0; k < cols; ++k) {
                loss += moved.y[static_cast<size_t>(k)] * dy[static_cast<size_t>(r * cols + k)];
              }
              return loss;
            },
            old);
        row[static_cast<size_t>(c)] = old;
      }
    }
    OpRunner runner;
    const Tensor tdy = runner.Make(dtype, rows, cols, dy);
    const Tensor tx = runner.Make(dtype, rows, cols, x);
    const Tensor tw = runner.Make(dtype, 1, cols, weight);
    const Tensor mean = runner.Make(DType::kF32, 1, rows, means);
    const Tensor rstd = runner.Make(DType::kF32, 1, rows, rstds);
    const Tensor tdx = overwrite_dx ? runner.Empty(dtype, rows, cols) : runner.Make(dtype, rows, cols, old_dx);
    const Tensor tdw = accumulate ? runner.Make(gradient, 1, cols, old_dweight) : runner.Empty(gradient, 1, cols);
    const Tensor tdb = accumulate ? runner.Make(gradient, 1, cols, old_dbias) : runner.Empty(gradient, 1, cols);
    if (center) {
      LayerNormBackward(runner.trace, tdy, tx, tw, mean, rstd, tdx, overwrite_dx, tdw, tdb, accumulate);
    } else {
      RmsNormBackward(runner.trace, tdy, tx, tw, rstd, tdx, overwrite_dx, tdw, accumulate);
    }
    runner.Run(table);
    // Rows of only two elements are normalised almost to constants: their slopes are small differences.
    ExpectClose(runner.Read(tdx), dx, dtype, 1e-5);
    ExpectClose(runner.Read(tdw), dweight, gradient, 1e-5);
    if (center) ExpectClose(runner.Read(tdb), dbias, gradient, 1e-5);
  }
}

void CheckBackwards(const OpKernels& table, bool center) {
  for (const DType dtype : kFloats) {
    for (const DType gradient : kFloats) {
      CheckBackward(table, center, dtype, gradient, false, false);
      CheckBackward(table, center, dtype, gradient, true, true);
    }
  }
}
TEST_P(Norm, RmsNormBackwardIsTheSlope) { CheckBackwards(table_, false); }
TEST_P(Norm, LayerNormBackwardIsTheSlope) { CheckBackwards(table_, true); }

// Rows longer than a GPU block holds, and rows that begin where no vector does.
struct LongCase {
  int64_t rows, cols, begin;
};
constexpr LongCase kLongCases[] = {{3, 4099, 0}, {2, 4104, 0}, {2, 33024, 0}, {100, 72, 0}, {100, 72, 1}};
// So many rows that a GPU block has several, and not all blocks as many.
constexpr LongCase kManyRows = {2200, 24, 0};

void CheckLong(const OpKernels& table, bool center, DType dtype, const LongCase& shape) {
  const int64_t rows = shape.rows;
  const int64_t cols = shape.cols;
  SCOPED_TRACE(testing::Message() << rows << " x " << cols << " from " << shape.begin << " " << DTypeName(dtype));
  const auto x = RepresentableNormal(dtype, rows * cols, 1, 2);
  const auto dy = RepresentableNormal(dtype, rows * cols, 2);
  const auto weight = RepresentableNormal(dtype, cols, 3);
  const auto bias = RepresentableNormal(dtype, cols, 4);
  const auto old_dx = RepresentableNormal(dtype, rows * cols, 5);
  const auto n = static_cast<double>(cols);
  std::vector<double> y, dx, dweight(weight.size()), dbias(weight.size());
  for (int64_t r = 0; r < rows; ++r) {
    const Row row = NormRow(RowOf(x, r, cols), Doubles(weight), Doubles(bias), center);
    y.insert(y.end(), row.y.begin(), row.y.end());
    const auto at = [&](const std::vector<float>& m, size_t c) {
      return static_cast<double>(m[static_cast<size_t>(r * cols) + c]);
    };
    double g_mean = 0, gn_mean = 0;
    for (size_t c = 0; c < weight.size(); ++c) {
      const double normal = (at(x, c) - row.mean) * row.rstd;
      const double g = at(dy, c) * weight[c];
      if (center) g_mean += g / n;
      gn_mean += g * normal / n;
      dweight[c] += at(dy, c) * normal;
      dbias[c] += at(dy, c);
    }
    for (size_t c = 0; c < weight.size(); ++c) {
      const double normal = (at(x, c) - row.mean) * row.rstd;
      dx.push_back(at(old_dx, c) + row.rstd * (at(dy, c) * weight[c] - g_mean - normal * gn_mean));
    }
  }

  OpRunner runner;
  const auto view = [&](const std::vector<float>& values, int64_t view_rows) {
    std::vector<float> whole(static_cast<size_t>(shape.begin));
    whole.insert(whole.end(), values.begin(), values.end());
    const auto count = static_cast<int64_t>(values.size());
    return runner.Make(dtype, 1, shape.begin + count, whole)
        .Cols(shape.begin, count)
        .Reshape(view_rows, count / view_rows);
  };
  const Tensor tx = view(x, rows), tdy = view(dy, rows), tdx = view(old_dx, rows);
  const Tensor tw = view(weight, 1), tb = view(bias, 1);
  const Tensor ty = view(std::vector<float>(x.size()), rows);
  const Tensor mean = runner.Empty(DType::kF32, 1, rows);
  const Tensor rstd = runner.Empty(DType::kF32, 1, rows);
  const Tensor tdw = runner.Empty(DType::kF32, 1, cols);
  const Tensor tdb = runner.Empty(DType::kF32, 1, cols);
  if (center) {
    LayerNorm(runner.trace, tx, tw, tb, ty, mean, rstd, kNormEps);
    LayerNormBackward(runner.trace, tdy, tx, tw, mean, rstd, tdx, false, tdw, tdb, false);
  } else {
    RmsNorm(runner.trace, tx, tw, ty, rstd, kNormEps);
    RmsNormBackward(runner.trace, tdy, tx, tw, rstd, tdx, false, tdw, false);
  }
  runner.Run(table);
  ExpectClose(runner.Read(ty), y, dtype, 3e-6, 1e-5);  // sums of that many numbers
  ExpectClose(runner.Read(tdx), dx, dtype, 1e-5, 1e-5);
  ExpectClose(runner.Read(tdw), dweight, DType::kF32, 1e-4);
  if (center) ExpectClose(runner.Read(tdb), dbias, DType::kF32, 1e-4);
}
TEST_P(Norm, RowsOfAnyLengthAndAddress) {
  for (const DType dtype : kFloats) {
    for (const LongCase& shape : kLongCases) {
      CheckLong(table_, false, dtype, shape);
      CheckLong(table_, true, dtype, shape);
    }
  }
}
TEST_P(Norm, ManyRows) {
  for (const bool center : {false, true}) CheckLong(table_, center, DType::kBF16, kManyRows);
}

// One pass over a residual's sum gives the same bits as the sum and then the norm, wherever the sum is stored.
enum class SumGoes : uint8_t { kElsewhere, kOverTheBranch, kOverTheResidual };

void CheckSum(const OpKernels& table, bool center, DType dtype, const LongCase& shape, double p, SumGoes where) {
  const int64_t rows = shape.rows;
  const int64_t cols = shape.cols;
  const int64_t begin = shape.begin;
  SCOPED_TRACE(testing::Message() << rows << " x " << cols << " from " << begin << " " << DTypeName(dtype)
                                  << (center ? " layer norm" : " rms norm") << ", dropout " << p << ", way "
                                  << static_cast<int>(where));
  std::vector<std::vector<std::byte>> of[2];
  for (const bool one_pass : {false, true}) {
    OpRunner runner;
    const auto make = [&](int64_t of_rows, uint32_t seed) {
      return runner.Normal(dtype, 1, begin + of_rows * cols, seed, 2)
          .Cols(begin, of_rows * cols)
          .Reshape(of_rows, cols);
    };
    const Tensor branch = make(rows, 1);
    const Tensor residual = make(rows, 2);
    const Tensor weight = make(1, 3);
    const Tensor bias = make(1, 4);
    Tensor x = where == SumGoes::kOverTheBranch ? branch : residual;
    if (where == SumGoes::kElsewhere) x = make(rows, 5);
    const Tensor y = make(rows, 6);
    const Tensor mean = runner.Empty(DType::kF32, 1, rows);
    const Tensor rstd = runner.Empty(DType::kF32, 1, rows);
    const RandomStream stream = {7, 4 * (cols % 2) + cols % 3};
    const ResidualSum sum = one_pass ? ResidualSum{branch, residual, p, stream} : ResidualSum{};
    if (!one_pass) DropoutAdd(runner.trace, branch, residual, x, p, stream);
    if (center) {
      LayerNorm(runner.trace, x, weight, bias, y, mean, rstd, kNormEps, sum);
    } else {
      RmsNorm(runner.trace, x, weight, y, rstd, kNormEps, sum);
    }
    EXPECT_EQ(runner.trace.calls().size(), one_pass ? 1U : 2U);
    runner.Run(table, {.step = 3, .learning_rate = 0, .seed = 11});
    for (const Tensor& result : {x, y, rstd}) of[one_pass].push_back(runner.Bytes(result));
    if (center) of[one_pass].push_back(runner.Bytes(mean));
  }
  EXPECT_EQ(of[0], of[1]);
}
TEST_P(Norm, ANormThatMakesItsSumHasTheBitsOfASumMadeBefore) {
  for (const bool center : {false, true}) {
    CheckSum(table_, center, DType::kBF16, kManyRows, 0.3, SumGoes::kOverTheBranch);
    for (const DType dtype : kFloats) {
      for (const LongCase& shape : kLongCases) CheckSum(table_, center, dtype, shape, 0, SumGoes::kOverTheBranch);
      for (const LongCase& shape : {LongCase{1, 2, 0}, {3, 5, 0}, {33, 31, 0}, {5, 64, 0}, {5, 64, 8}, {7, 104, 1}}) {
        for (const double p : {0.0, 0.3}) {
          for (const SumGoes where : {SumGoes::kElsewhere, SumGoes::kOverTheBranch, SumGoes::kOverTheResidual}) {
            CheckSum(table_, center, dtype, shape, p, where);
          }
        }
      }
    }
  }
}

TEST_P(Norm, ThreadsChangeNothing) {
  ExpectSameForAnyThreads(table_, [](OpRunner& runner) -> std::vector<Tensor> {
    constexpr int64_t kRows = 233, kCols = 517;
    const DType dtype = DType::kBF16;
    const Tensor x = runner.Normal(dtype, kRows, kCols, 1);
    const Tensor dy = runner.Normal(dtype, kRows, kCols, 2);
    const Tensor weight = runner.Normal(dtype, 1, kCols, 3);
    const Tensor bias = runner.Normal(dtype, 1, kCols, 4);
    const Tensor y = runner.Empty(dtype, kRows, kCols);
    const Tensor mean = runner.Empty(DType::kF32, 1, kRows);
    const Tensor rstd = runner.Empty(DType::kF32, 1, kRows);
    const Tensor dx = runner.Empty(dtype, kRows, kCols);
    const Tensor dweight = runner.Empty(DType::kF32, 1, kCols);
    const Tensor dbias = runner.Empty(DType::kF32, 1, kCols);
    LayerNorm(runner.trace, x, weight, bias, y, mean, rstd, kNormEps);
    LayerNormBackward(runner.trace, dy, x, weight, mean, rstd, dx, true, dweight, dbias, false);
    const Tensor y2 = runner.Empty(dtype, kRows, kCols);
    const Tensor rstd2 = runner.Empty(DType::kF32, 1, kRows);
    const Tensor dweight2 = runner.Empty(DType::kF32, 1, kCols);
    RmsNorm(runner.trace, x, weight, y2, rstd2, kNormEps);
    RmsNormBackward(runner.trace, dy, x, weight, rstd2, dx, false, dweight2, false);
    const Tensor y3 = runner.Empty(dtype, kRows, kCols);
    const Tensor x3 = runner.Empty(dtype, kRows, kCols);
    const Tensor rstd3 = runner.Empty(DType::kF32, 1, kRows);
    RmsNorm(runner.trace, x3, weight, y3, rstd3, kNormEps, {x, dy, 0.2, {9}});
    return {y, mean, rstd, dx, dweight, dbias, y2, rstd2, dweight2, x3, y3, rstd3};
  });
}

// Large outputs bypass the caches.
TEST_P(Norm, LargeIsAsSmall) {
  constexpr int64_t kRows = 2080, kCols = 2048;
  OpRunner runner;
  const Tensor x = runner.Normal(DType::kBF16, kRows, kCols, 1);
  const Tensor weight = runner.Normal(DType::kBF16, 1, kCols, 2);
  const Tensor large = runner.Empty(DType::kBF16, kRows, kCols);
  const Tensor small = runner.Empty(DType::kBF16, kRows, kCols);
  const Tensor rstd = runner.Empty(DType::kF32, 1, kRows);
  RmsNorm(runner.trace, x, weight, large, rstd, kNormEps);
  for (int64_t row = 0; row < kRows; row += kRows / 2) {
    RmsNorm(runner.trace, x.Rows(row, kRows / 2), weight, small.Rows(row, kRows / 2), rstd.Cols(row, kRows / 2),
            kNormEps);
  }
  runner.Run(table_);
  EXPECT_EQ(runner.Bytes(large), runner.Bytes(small));
}

TEST(NormRecord, RefusesOtherShapes) {
  Trace trace;
  const auto make = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const Tensor x = make(DType::kBF16, 4, 8);
  const Tensor w = make(DType::kBF16, 1, 8);
  const Tensor rstd = make(DType::kF32, 1, 4);
  RmsNorm(trace, x, w, x, rstd, kNormEps);  // fits
  EXPECT_THROW(RmsNorm(trace, x, make(DType::kBF16, 1, 7), x, rstd, kNormEps), Error);
  EXPECT_THROW(RmsNorm(trace, x, make(DType::kF32, 1, 8), x, rstd, kNormEps), Error);
  EXPECT_THROW(RmsNorm(trace, x, w, make(DType::kBF16, 4, 7), rstd, kNormEps), Error);
  EXPECT_THROW(RmsNorm(trace, x, w, x, make(DType::kBF16, 1, 4), kNormEps), Error);
  EXPECT_THROW(RmsNorm(trace, x, Tensor{}, x, rstd, kNormEps), Error);
  EXPECT_THROW(LayerNorm(trace, x, w, make(DType::kBF16, 1, 9), x, rstd, rstd, kNormEps), Error);
  EXPECT_THROW(RmsNormBackward(trace, x, x, w, rstd, x, false, make(DType::kI32, 1, 8), false), Error);
  RmsNorm(trace, x, w, x, rstd, kNormEps, {x, x, 0.5});  // fits
  EXPECT_THROW(RmsNorm(trace, x, w, x, rstd, kNormEps, {x, make(DType::kBF16, 4, 7)}), Error);
  EXPECT_THROW(RmsNorm(trace, x, w, x, rstd, kNormEps, {make(DType::kF32, 4, 8), x}), Error);
  EXPECT_THROW(LayerNorm(trace, x, w, w, x, rstd, rstd, kNormEps, {{}, x}), Error);
  EXPECT_THROW(LayerNorm(trace, x, w, w, x, rstd, rstd, kNormEps, {x, x, 1.0}), Error);
  try {
    RmsNorm(trace, x, make(DType::kF32, 1, 7), x, rstd, kNormEps);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_NE(error.message().find("rms_norm: "), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("x bf16 (4, 8), weight fp32 (1, 7)"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace ridgeline::engine
