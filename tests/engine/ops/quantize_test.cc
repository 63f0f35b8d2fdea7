// The quantizing kernels, compared bit by bit with precision/reference.h.
#include "engine/ops/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/error.h"
#include "engine/ops/philox.h"
#include "engine/precision/reference.h"
#include "tests/engine/ops/every_target.h"
#include "tests/engine/precision/casts.h"

namespace ridgeline::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr StepInputs kStepInputs = {.step = 3, .learning_rate = 0, .seed = 0x1234567890};
constexpr RandomStream kStream = {5};

constexpr Quantizer kNv = {Format::kE2M1, Scaling::kBlock16};
constexpr Quantizer kNvStochastic = {Format::kE2M1, Scaling::kBlock16, Rounding::kStochastic};
constexpr Quantizer kNvHadamard = {Format::kE2M1, Scaling::kBlock16, Rounding::kNearest, true};
constexpr Quantizer kNvBoth = {Format::kE2M1, Scaling::kBlock16, Rounding::kStochastic, true};
constexpr Quantizer kSquare = {Format::kE2M1, Scaling::kBlock16x16};
constexpr Quantizer kMx = {Format::kE4M3, Scaling::kBlock32};
constexpr Quantizer kMxStochastic = {Format::kE4M3, Scaling::kBlock32, Rounding::kStochastic};
constexpr Quantizer kSquareStochastic = {Format::kE2M1, Scaling::kBlock16x16, Rounding::kStochastic};
constexpr Quantizer kCurrentStochastic = {Format::kE4M3, Scaling::kCurrent, Rounding::kStochastic};
constexpr Quantizer kDelayedStochastic = {Format::kE4M3, Scaling::kDelayed, Rounding::kStochastic};
constexpr Quantizer kMxFloor = {Format::kE4M3, Scaling::kBlock32, Rounding::kNearest, false, ScaleRule::kFloor};

struct Orientations {
  const char* name;
  Quantizer row, col;
  bool rows_alone = false;
};
constexpr Orientations kRecipes[] = {
    {"delayed e4m3", {Format::kE4M3, Scaling::kDelayed}, {Format::kE4M3, Scaling::kDelayed}},
    {"delayed e5m2", {Format::kE5M2, Scaling::kDelayed}, {Format::kE5M2, Scaling::kDelayed}},
    {"current e4m3", {Format::kE4M3, Scaling::kCurrent}, {Format::kE4M3, Scaling::kCurrent}},
    {"current e5m2", {Format::kE5M2, Scaling::kCurrent}, {Format::kE5M2, Scaling::kCurrent}},
    {"mx", kMx, kMx},
    {"mx floor", kMxFloor, kMxFloor},
    {"nv", kNv, kNv},
    {"nv x", kNv, kNvHadamard},
    {"nv dy", kNvStochastic, kNvBoth},
    {"nv stochastic", kNvStochastic, kNvStochastic},
    {"nv w", kSquare, kSquare},
    {"mx stochastic", kMxStochastic, kMxStochastic},
    {"delayed stochastic", kDelayedStochastic, kDelayedStochastic, true},
    {"current stochastic", kCurrentStochastic, kCurrentStochastic, true},
    {"nv w stochastic", kSquareStochastic, kSquareStochastic, true},
};

struct Matrix {
  DType dtype;
  int64_t rows, cols;
  std::vector<float> values;
};

std::vector<float> TransposeOf(const Matrix& m) {
  std::vector<float> to(m.values.size());
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t c = 0; c < m.cols; ++c)
      to[static_cast<size_t>(c * m.rows + r)] = m.values[static_cast<size_t>(r * m.cols + c)];
  }
  return to;
}

// Numbers of very different sizes: each block of 16 has its own size.
Matrix MakeMatrix(DType dtype, int64_t rows, int64_t cols, uint32_t seed) {
  Matrix m = {dtype, rows, cols, NormalFloats(rows * cols, seed)};
  for (size_t i = 0; i < m.values.size(); ++i) {
    const auto size = static_cast<int>((i / 16 + i / static_cast<size_t>(cols) / 16) * 2654435761U % 13);
    m.values[i] = Rounded(std::ldexp(m.values[i], size - 6), dtype);
  }
  return m;
}

// Matrices with numbers that are not ordinary.
Matrix Extreme(DType dtype, int64_t rows, int64_t cols, int which) {
  Matrix m = MakeMatrix(dtype, rows, cols, 4);
  const auto at = [&](int64_t row, int64_t col) -> float& {
    return m.values[static_cast<size_t>(row % rows * cols + col % cols)];
  };
  switch (which) {
    case 0:
      std::fill(m.values.begin(), m.values.end(), 0.0F);
      break;
    case 1:  // all blocks, and the tensor's largest number, are tiny
      for (float& v : m.values) v = Rounded(v * 1e-38F, dtype);
      break;
    case 2:
      for (float& v : m.values) v = Rounded(std::clamp(v * 1e36F, -3e38F, 3e38F), dtype);
      break;
    case 3:
      at(1, 2) = std::nanf("");
      at(20, 40) = -std::nanf("");
      at(3, 3) = 0;
      break;
    case 4:
      at(1, 2) = kInfinity;
      at(2, 60) = -kInfinity;
      break;
    case 5:
      at(1, 2) = kInfinity;
      at(2, 2) = -kInfinity;
      at(9, 9) = std::nanf("");
      break;
    default:  // one number far above all others: they vanish beside it
      for (float& v : m.values) v = Rounded(v * 1e-6F, dtype);
      at(5, 5) = Rounded(1e6F, dtype);
      at(6, 7) = -0.0F;
  }
  return m;
}

class Quantizing : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Quantize)});

  static void ExpectIs(OpRunner& runner, const QuantizedTensor& q, const ReferenceTensor& expected) {
    const auto bytes = [&](const Tensor& t) {
      std::vector<uint8_t> values;
      for (const std::byte byte : runner.Bytes(t)) values.push_back(static_cast<uint8_t>(byte));
      return values;
    };
    if (HasBlocks(q.quantizer.scaling)) {
      ASSERT_EQ(bytes(q.scales), expected.scales);
    }
    const auto codes = bytes(q.codes);
    ASSERT_EQ(codes.size(), expected.codes.size());
    for (size_t i = 0; i < codes.size(); ++i) ASSERT_EQ(codes[i], expected.codes[i]) << "byte " << i << " of the codes";
    if (q.quantizer.has_tensor_scale()) {
      const float scale = runner.Read(q.tensor_scale)[0];
      ASSERT_EQ(std::bit_cast<uint32_t>(scale), std::bit_cast<uint32_t>(expected.tensor_scale));
    }
  }

  // Quantizes in both orientations, or in one, and compares everything.
  void Check(const Orientations& recipe, const Matrix& m, bool by_row = true, bool by_col = true, int64_t gap = 0) {
    if (recipe.col.hadamard && m.dtype != DType::kBF16) return;
    by_col = by_col && !recipe.rows_alone;
    if (!by_row && !by_col) return;
    SCOPED_TRACE(testing::Message() << recipe.name << " of " << DTypeName(m.dtype) << " (" << m.rows << ", " << m.cols
                                    << ")" << (by_row ? " row" : "") << (by_col ? " col" : "") << " gap " << gap);
    constexpr float kDelayedScale = 3.7F;
    OpRunner runner;
    std::vector<float> spaced(static_cast<size_t>(m.rows * (m.cols + gap)), std::nanf(""));
    for (int64_t r = 0; r < m.rows; ++r) {
      std::copy_n(m.values.begin() + r * m.cols, m.cols, spaced.begin() + r * (m.cols + gap) + gap / 2);
    }
    const Tensor x = runner.Make(m.dtype, m.rows, m.cols + gap, spaced).Cols(gap / 2, m.cols);
    const QuantizedTensor row = NewQuantized(runner.trace, recipe.row, m.rows, m.cols, Category::kData, true);
    const QuantizedTensor col = NewQuantized(runner.trace, recipe.col, m.cols, m.rows, Category::kData, true);
    DelayedScale delayed;
    const bool is_delayed = recipe.row.scaling == Scaling::kDelayed;
    if (is_delayed) {
      delayed = {runner.Make(DType::kF32, 1, 1, {kDelayedScale}), runner.Make(DType::kF32, 1, 1, {1e-3F})};
    }
    Quantize(runner.trace, x, by_row ? &row : nullptr, by_col ? &col : nullptr, delayed, kStream);
    runner.Run(table_, kStepInputs);
    const auto draw = [&](int64_t element) {
      return RoundingBits(kStepInputs.seed, kStepInputs.step, kStream.id, element, recipe.row.draw_bits());
    };
    const auto by_rows = QuantizeReference(recipe.row, m.values, m.rows, m.cols, kDelayedScale, draw);
    if (by_row) ExpectIs(runner, row, by_rows);
    if (by_col) {
      const auto draw_col = [&](int64_t element) { return draw(kColumnwiseDraws + element); };
      ExpectIs(runner, col, QuantizeReference(recipe.col, TransposeOf(m), m.cols, m.rows, kDelayedScale, draw_col));
    }
    if (is_delayed) {
      const float amax = runner.Read(delayed.amax)[0];
      if (std::isnan(by_rows.amax)) {
        EXPECT_TRUE(std::isnan(amax));
      } else {
        EXPECT_EQ(amax, std::max(by_rows.amax, 1e-3F));
      }
    }
  }
};
RIDGELINE_ON_EVERY_TARGET(Quantizing);

constexpr std::pair<int64_t, int64_t> kMatrixShapes[] = {{1, 1},    {3, 7},    {16, 16},   {17, 33},  {32, 32},
                                                         {40, 100}, {64, 256}, {129, 257}, {200, 40}, {33, 520}};

TEST_P(Quantizing, IsTheReferenceInEveryShape) {
  for (const Orientations& recipe : kRecipes) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const auto& [rows, cols] : kMatrixShapes) {
        Check(recipe, MakeMatrix(dtype, rows, cols, 1));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Quantizing, EachOrientationAloneIsTheSame) {
  for (const Orientations& recipe : kRecipes) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{64, 64}, {37, 45}}) {
      Check(recipe, MakeMatrix(DType::kBF16, rows, cols, 2), true, false);
      Check(recipe, MakeMatrix(DType::kBF16, rows, cols, 2), false, true);
    }
  }
}

TEST_P(Quantizing, RowsMayLieApart) {
  for (const Orientations& recipe : kRecipes) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Check(recipe, MakeMatrix(dtype, 48, 64, 3), true, true, 6);
      Check(recipe, MakeMatrix(dtype, 35, 61, 3), true, true, 7);
    }
  }
}

TEST_P(Quantizing, NumbersThatAreNotOrdinary) {
  for (const Orientations& recipe : kRecipes) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (int which = 0; which < 7; ++which) {
        SCOPED_TRACE(which);
        Check(recipe, Extreme(dtype, 64, 64, which));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Every number of PyTorch's tables, by the vectorised code.
TEST_P(Quantizing, CastsArePyTorchs) {
  for (const Format format : {Format::kE4M3, Format::kE5M2}) {
    std::vector<Cast> casts = RoundedCodes(format);
    for (const Cast& cast : CodeValues(format)) {
      if (std::isfinite(cast.value)) casts.push_back(cast);
    }
    std::vector<float> values;
    for (const Cast& cast : casts) values.push_back(cast.value);
    OpRunner runner;
    const auto n = static_cast<int64_t>(values.size());
    const Tensor x = runner.Make(DType::kF32, 1, n, values);
    const DelayedScale one = {runner.Make(DType::kF32, 1, 1, {1}), runner.Make(DType::kF32, 1, 1, {0})};
    const QuantizedTensor q = NewQuantized(runner.trace, {format, Scaling::kDelayed}, 1, n, Category::kData, true);
    Quantize(runner.trace, x, &q, nullptr, one, kStream);
    runner.Run(table_);
    const auto codes = runner.Read(q.codes);
    for (size_t i = 0; i < casts.size(); ++i) ASSERT_EQ(codes[i], casts[i].code) << casts[i].value;
  }
}

// Every bf16 number against the reference, within a block's range and beyond it.
TEST_P(Quantizing, EveryBf16NumberIsTheReferences) {
  Matrix m = {DType::kBF16, 256, 256, {}};
  for (uint32_t bits = 0; bits < 65536; ++bits) m.values.push_back(Bf16Value(static_cast<uint16_t>(bits)));
  Check(kRecipes[0], m, true, false);
  Check(kRecipes[1], m, true, false);
  Check({"mx", kMx, kMx}, m, false, true);
  Check({"nv", kNv, kNv}, m, false, true);
}

// Any bits: subnormal numbers and the largest, side by side. Then a NaN or an infinity in some blocks.
TEST_P(Quantizing, NumbersOfEverySize) {
  std::mt19937 engine(12);
  for (const uint32_t numbers : {1, 0}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Matrix m = {dtype, 70, 150, {}};
      while (m.values.size() < 70 * 150) {
        const auto value = std::bit_cast<float>(static_cast<uint32_t>(engine()));
        const bool number = std::isfinite(value);
        m.values.push_back(number || (numbers == 0 && m.values.size() % 3 == 0) ? Rounded(value, dtype) : 0);
      }
      for (const Orientations& recipe : kRecipes) {
        Check(recipe, m);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Outputs much larger than the caches bypass them as vectors. x repeats itself, so the outputs must too.
TEST_P(Quantizing, WritesPastTheCaches) {
  if (GetParam().cuda || GetParam().highway == HWY_EMU128) return;  // these have no such stores
  constexpr int64_t kPeriod = 256, kRows = 64 * kPeriod, kCols = 1024;
  std::vector<float> values(static_cast<size_t>(kRows * kCols));
  const auto pattern = MakeMatrix(DType::kBF16, kPeriod, kCols, 9).values;
  for (size_t i = 0; i < values.size(); i += pattern.size()) std::copy(pattern.begin(), pattern.end(), &values[i]);
  OpRunner runner;
  const Tensor all = runner.Make(DType::kBF16, kRows, kCols, std::move(values));
  const auto make = [&](const Quantizer& quantizer, int64_t outer, int64_t inner) {
    return NewQuantized(runner.trace, quantizer, outer, inner, Category::kData, true);
  };
  struct Pair {
    QuantizedTensor whole, period;
  };
  std::vector<Pair> rows, cols;
  const Quantizer current = {Format::kE5M2, Scaling::kCurrent};
  for (const auto& [row, col] : {std::pair{kMx, kMx}, {kNv, kNvHadamard}, {current, current}}) {
    const Tensor x = all.Rows(0, row.format == Format::kE2M1 ? kRows : kRows / 2);  // 8 MiB of codes
    rows.push_back({make(row, x.rows, kCols), make(row, kPeriod, kCols)});
    cols.push_back({make(col, kCols, x.rows), make(col, kCols, kPeriod)});
    const bool alone = row.scaling == Scaling::kCurrent;  // columns read rows again: only separate ones are streamed
    Quantize(runner.trace, x, &rows.back().whole, alone ? nullptr : &cols.back().whole, {}, kStream);
    if (alone) Quantize(runner.trace, x, nullptr, &cols.back().whole, {}, kStream);
    Quantize(runner.trace, x.Rows(0, kPeriod), &rows.back().period, &cols.back().period, {}, kStream);
  }
  runner.Run(table_, kStepInputs);
  const auto expect_repeats = [&](const Pair& pair) {
    const auto whole = runner.Bytes(pair.whole.codes);
    const auto period = runner.Bytes(pair.period.codes);
    // A row of the period has as many bytes as it is repeated in, or is repeated as a whole.
    const auto row = static_cast<size_t>(pair.period.codes.cols);
    const size_t times = static_cast<size_t>(pair.whole.codes.cols) / row;
    for (size_t i = 0; i < whole.size(); i += row) {
      const size_t from = i / row / times * row % period.size();
      ASSERT_EQ(std::memcmp(&whole[i], &period[from], row), 0) << "byte " << i;
    }
  };
  for (const Pair& pair : rows) expect_repeats(pair);
  for (const Pair& pair : cols) expect_repeats(pair);
}

// A block's largest number may be more than 6 times its scale if the block is far below the tensor's largest: there
// E4M3 is subnormal and rounds most. Beside such blocks stand blocks of zeros and of usual size.
TEST_P(Quantizing, BlocksOfUnusualScales) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Matrix m = {dtype, 64, 512, NormalFloats(64 * 512, 11)};
    for (size_t i = 0; i < m.values.size(); ++i) {
      const size_t block = i / 16 + i / 512 / 16;
      const int size = block % 7 == 0 ? -1000 : -static_cast<int>(block % 5 * 6);
      m.values[i] = Rounded(std::ldexp(m.values[i], size), dtype);
    }
    for (const Orientations& recipe : kRecipes) {
      if (HasBlocks(recipe.row.scaling)) Check(recipe, m);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Quantizing, DoesNotDependOnThreads) {
  for (const Orientations& recipe : kRecipes) {
    ExpectSameForAnyThreads(table_, [&](OpRunner& runner) {
      const Tensor x = runner.Normal(DType::kBF16, 300, 530, 6);
      const QuantizedTensor row = NewQuantized(runner.trace, recipe.row, 300, 530, Category::kData, true);
      const QuantizedTensor col = NewQuantized(runner.trace, recipe.col, 530, 300, Category::kData, true);
      const DelayedScale delayed = {runner.Make(DType::kF32, 1, 1, {2}), runner.Make(DType::kF32, 1, 1, {0})};
      Quantize(runner.trace, x, &row, recipe.rows_alone ? nullptr : &col, delayed, kStream);
      std::vector<Tensor> outputs = {row.codes, col.codes, delayed.amax};
      for (const Tensor& t : {row.scales, col.scales, row.tensor_scale, col.tensor_scale}) {
        if (t.defined()) outputs.push_back(t);
      }
      return outputs;
    });
  }
}

// The mean of a column of equal numbers, dequantized. If a share p is rounded up, its variance is p (1 - p) / n steps.
TEST_P(Quantizing, StochasticRoundingIsUnbiased) {
  constexpr int64_t kCount = 4096;
  std::vector<float> values(static_cast<size_t>(16 * kCount), 0.0F);
  const float levels[16] = {6,    0.1F, 0.4F, 0.6F, 1.1F,  1.7F,  2.3F,  2.9F,
                            3.2F, 3.9F, 4.5F, 5.5F, -0.2F, -1.4F, -3.3F, -5};
  for (size_t i = 0; i < values.size(); ++i) values[i] = Rounded(levels[i % 16], DType::kBF16);
  OpRunner runner;
  const Tensor x = runner.Make(DType::kBF16, kCount, 16, values);
  const Tensor turned = runner.Make(DType::kBF16, 16, kCount, TransposeOf({DType::kBF16, kCount, 16, values}));
  const QuantizedTensor row = NewQuantized(runner.trace, kNvStochastic, kCount, 16, Category::kData, true);
  const QuantizedTensor col = NewQuantized(runner.trace, kNvStochastic, kCount, 16, Category::kData, true);
  Quantize(runner.trace, x, &row, nullptr, {}, kStream);
  Quantize(runner.trace, turned, nullptr, &col, {}, kStream);
  std::vector<Tensor> back;
  for (const QuantizedTensor& q : {row, col}) {
    back.push_back(runner.Empty(DType::kF32, kCount, 16));
    Dequantize(runner.trace, q, back.back());
  }
  runner.Run(table_, kStepInputs);
  EXPECT_NE(runner.Bytes(row.codes), runner.Bytes(col.codes));  // the same numbers in the same places, but other draws
  for (const Tensor& y : back) {
    const auto decoded = runner.Read(y);
    for (size_t level = 0; level < 16; ++level) {
      const double value = std::abs(values[level]);
      const double step = value < 2 ? 0.5 : value < 4 ? 1 : 2;
      const double p = std::fmod(value, step) / step;
      double sum = 0;
      for (size_t i = level; i < decoded.size(); i += 16) sum += std::abs(decoded[i]);
      EXPECT_LE(std::abs(sum / kCount - value), step * (5 * std::sqrt(p * (1 - p) / kCount) + 1.0 / 1024) + 1e-5);
    }
  }
}

TEST_P(Quantizing, StepsAndStreamsDrawDifferently) {
  std::vector<std::vector<std::byte>> codes;
  for (const auto& [step, stream] : {std::pair<int64_t, uint32_t>{1, 1}, {2, 1}, {1, 2}, {1, 1}}) {
    OpRunner runner;
    const Tensor x = runner.Normal(DType::kBF16, 32, 32, 6);
    const QuantizedTensor q = NewQuantized(runner.trace, kNvStochastic, 32, 32, Category::kData, true);
    Quantize(runner.trace, x, &q, nullptr, {}, {stream});
    runner.Run(table_, {.step = step});
    codes.push_back(runner.Bytes(q.codes));
  }
  EXPECT_NE(codes[0], codes[1]);
  EXPECT_NE(codes[0], codes[2]);
  EXPECT_EQ(codes[0], codes[3]);
}

// Columns of equal numbers again, by every quantizer of weights. A number that a block's rounded scale makes too large
// for the format saturates, so each block's largest is the tensor's.
TEST_P(Quantizing, StochasticRoundingOfWeightsIsUnbiased) {
  constexpr int64_t kCount = 4096;
  const float levels[16] = {6,    0.1F, 0.4F, 0.6F, 1.1F,  1.7F,  2.3F,  2.9F,
                            3.2F, 3.9F, 4.5F, 5.5F, -0.2F, -1.4F, -3.3F, -5};
  std::vector<float> values(static_cast<size_t>(32 * kCount));
  for (size_t i = 0; i < values.size(); ++i) values[i] = levels[i % 16];
  for (const Quantizer& quantizer : {kCurrentStochastic, kDelayedStochastic, kMxStochastic, kSquareStochastic}) {
    OpRunner runner;
    const Tensor x = runner.Make(DType::kF32, kCount, 32, values);
    const QuantizedTensor q = NewQuantized(runner.trace, quantizer, kCount, 32, Category::kData, true);
    const DelayedScale delayed = {runner.Make(DType::kF32, 1, 1, {50}), runner.Make(DType::kF32, 1, 1, {0})};
    Quantize(runner.trace, x, &q, nullptr, delayed, kStream);
    const Tensor back = runner.Empty(DType::kF32, kCount, 32);
    Dequantize(runner.trace, q, back);
    runner.Run(table_, kStepInputs);
    const std::vector<float> decoded = runner.Read(back);
    for (size_t col = 0; col < 32; ++col) {
      const double value = levels[col % 16];
      double sum = 0;
      double below = -INFINITY;
      double above = INFINITY;
      for (size_t row = 0; row < kCount; ++row) {
        const double got = decoded[row * 32 + col];
        sum += got;
        if (got <= value) below = std::max(below, got);
        if (got >= value) above = std::min(above, got);
      }
      const double exact = 1e-6 * std::abs(value);  // the scales' error
      if (!std::isfinite(below) || !std::isfinite(above)) {
        EXPECT_NEAR(sum / kCount, value, exact) << "only one neighbour of " << value;
        continue;
      }
      const double deviation = std::sqrt((value - below) * (above - value) / kCount);
      EXPECT_NEAR(sum / kCount, value, 5 * deviation + (above - below) / 65536 + exact) << value;
      for (size_t row = 0; row < kCount; ++row) {
        EXPECT_TRUE(decoded[row * 32 + col] == below || decoded[row * 32 + col] == above) << value;
      }
    }
  }
}

TEST_P(Quantizing, TransposedCodesAreThoseOfTheColumns) {
  for (const Orientations& recipe : kRecipes) {
    const bool turns = !HasBlocks(recipe.row.scaling) || recipe.row.scaling == Scaling::kBlock16x16;
    if (!turns || recipe.rows_alone) continue;
    for (const auto& [rows, cols] : kMatrixShapes) {
      SCOPED_TRACE(testing::Message() << recipe.name << " " << rows << " " << cols);
      const Matrix m = MakeMatrix(DType::kBF16, rows, cols, 8);
      OpRunner runner;
      const Tensor x = runner.Make(m.dtype, rows, cols, m.values);
      const QuantizedTensor row = NewQuantized(runner.trace, recipe.row, rows, cols, Category::kData, true);
      const QuantizedTensor col = NewQuantized(runner.trace, recipe.col, cols, rows, Category::kData, true);
      const DelayedScale delayed = {runner.Make(DType::kF32, 1, 1, {2}), runner.Make(DType::kF32, 1, 1, {0})};
      Quantize(runner.trace, x, &row, &col, delayed, kStream);
      const QuantizedTensor turned = Transposed(runner.trace, row, Category::kData);
      EXPECT_EQ(turned.tensor_scale.storage, row.tensor_scale.storage);
      runner.Run(table_, kStepInputs);
      ASSERT_EQ(runner.Bytes(turned.codes), runner.Bytes(col.codes));
      if (turned.scales.defined()) {
        ASSERT_EQ(runner.Bytes(turned.scales), runner.Bytes(col.scales));
      }
    }
  }
}

TEST_P(Quantizing, DequantizesAsTheReference) {
  for (const Orientations& recipe : kRecipes) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 7}, {33, 96}, {20, 1100}}) {
      SCOPED_TRACE(testing::Message() << recipe.name << " " << rows << " " << cols);
      const Matrix m = MakeMatrix(DType::kBF16, rows, cols, 7);
      OpRunner runner;
      const Tensor x = runner.Make(m.dtype, rows, cols, m.values);
      const QuantizedTensor q = NewQuantized(runner.trace, recipe.row, rows, cols, Category::kData, true);
      const DelayedScale delayed = {runner.Make(DType::kF32, 1, 1, {2}), runner.Make(DType::kF32, 1, 1, {0})};
      Quantize(runner.trace, x, &q, nullptr, delayed, kStream);
      const Tensor f32 = runner.Empty(DType::kF32, rows, cols);
      const Tensor bf16 = runner.Empty(DType::kBF16, rows, cols + 3).Cols(1, cols);
      Dequantize(runner.trace, q, f32);
      Dequantize(runner.trace, q, bf16);
      runner.Run(table_, kStepInputs);
      const auto draw = [&](int64_t element) {
        return RoundingBits(kStepInputs.seed, kStepInputs.step, kStream.id, element, recipe.row.draw_bits());
      };
      const auto expected = DequantizeReference(QuantizeReference(recipe.row, m.values, rows, cols, 2, draw));
      const int64_t padded = recipe.row.PaddedInner(cols);
      const auto wide = runner.Read(f32);
      const auto narrow = runner.Read(bf16);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const float value = expected[static_cast<size_t>(r * padded + c)];
          ASSERT_EQ(wide[static_cast<size_t>(r * cols + c)], value);
          ASSERT_EQ(narrow[static_cast<size_t>(r * cols + c)], Bf16Value(Bf16Bits(value)));
        }
      }
    }
  }
}

// Every code with every kind of scale, including codes that no number is rounded to.
TEST_P(Quantizing, DequantizesEveryCode) {
  constexpr int64_t kRows = 37, kCols = 1100;
  for (const Quantizer& quantizer : {kRecipes[0].row, kRecipes[1].row, kMx, kNv, kSquare}) {
    ReferenceTensor q = {quantizer, kRows, kCols, {}, {}, quantizer.has_tensor_scale() ? 0.37F : 1.0F, 0};
    q.codes.resize(static_cast<size_t>(kRows * quantizer.CodeCols(kCols)));
    q.scales.resize(static_cast<size_t>(kRows * quantizer.ScaleCols(kCols)));
    for (size_t i = 0; i < q.codes.size(); ++i) q.codes[i] = static_cast<uint8_t>(i * 7 + i / 256);
    for (size_t i = 0; i < q.scales.size(); ++i) q.scales[i] = static_cast<uint8_t>(i * 3 + 1);
    const auto expected = DequantizeReference(q);
    OpRunner runner;
    const QuantizedTensor stored = NewQuantized(runner.trace, quantizer, kRows, kCols, Category::kData, true);
    runner.Fill(stored.codes.storage, DType::kU8, {q.codes.begin(), q.codes.end()});
    if (stored.scales.defined()) {
      runner.Fill(stored.scales.storage, DType::kU8, {q.scales.begin(), q.scales.end()});
    }
    if (stored.tensor_scale.defined()) {
      runner.Fill(stored.tensor_scale.storage, DType::kF32, {q.tensor_scale});
    }
    const Tensor f32 = runner.Empty(DType::kF32, kRows, kCols);
    const Tensor bf16 = runner.Empty(DType::kBF16, kRows, kCols);
    Dequantize(runner.trace, stored, f32);
    Dequantize(runner.trace, stored, bf16);
    runner.Run(table_);
    const auto wide = runner.Read(f32);
    const auto narrow = runner.Read(bf16);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kCols; ++c) {
        const float value = expected[static_cast<size_t>(r * quantizer.PaddedInner(kCols) + c)];
        const auto at = static_cast<size_t>(r * kCols + c);
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(wide[at]) && std::isnan(narrow[at]));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(wide[at]), std::bit_cast<uint32_t>(value));
          ASSERT_EQ(Bf16Bits(narrow[at]), Bf16Bits(value));
        }
      }
    }
  }
}

TEST(QuantizeRecord, CountsAPassForEachTimeXIsRead) {
  Trace trace;
  const Tensor x = trace.Persistent(DType::kBF16, 64, 128, Category::kData);
  const auto bytes = [&](const Quantizer& quantizer) {
    const QuantizedTensor row = NewQuantized(trace, quantizer, 64, 128, Category::kData);
    const QuantizedTensor col = NewQuantized(trace, quantizer, 128, 64, Category::kData);
    DelayedScale delayed;
    if (quantizer.scaling == Scaling::kDelayed) {
      delayed = {trace.Persistent(DType::kF32, 1, 1, Category::kData),
                 trace.Persistent(DType::kF32, 1, 1, Category::kData)};
    }
    Quantize(trace, x, &row, &col, delayed, {});
    return trace.calls().back().bytes();
  };
  constexpr double kElements = 64 * 128;
  EXPECT_EQ(bytes({Format::kE4M3, Scaling::kDelayed}), kElements * (2 + 1 + 1) + 4 * (2 + 3));
  EXPECT_EQ(bytes({Format::kE4M3, Scaling::kCurrent}), kElements * (2 + 2 + 1 + 1) + 4 * 2);
  EXPECT_EQ(bytes(kMx), kElements * (2 + 2 * (1 + 1.0 / 32)));
  EXPECT_EQ(bytes(kNv), kElements * (2 + 2 + 2 * (0.5 + 1.0 / 16)) + 4 * 2);
}

TEST(QuantizeRecord, RefusesWhatItCannotDo) {
  Trace trace;
  const Tensor x = trace.Persistent(DType::kF32, 32, 64, Category::kData);
  const auto make = [&](const Quantizer& quantizer, int64_t outer, int64_t inner) {
    return NewQuantized(trace, quantizer, outer, inner, Category::kData);
  };
  EXPECT_THROW(Quantize(trace, x, nullptr, nullptr, {}, {}), Error);
  const QuantizedTensor turned = make(kMx, 64, 32);
  EXPECT_THROW(Quantize(trace, x, &turned, nullptr, {}, {}), Error);
  const QuantizedTensor transformed_row = make(kNvHadamard, 32, 64);
  EXPECT_THROW(Quantize(trace, x, &transformed_row, nullptr, {}, {}), Error);
  const QuantizedTensor transformed_f32 = make(kNvHadamard, 64, 32);
  EXPECT_THROW(Quantize(trace, x, nullptr, &transformed_f32, {}, {}), Error);
  const QuantizedTensor delayed = make({Format::kE4M3, Scaling::kDelayed}, 32, 64);
  EXPECT_THROW(Quantize(trace, x, &delayed, nullptr, {}, {}), Error);
  const QuantizedTensor mx = make(kMx, 32, 64);
  const QuantizedTensor nv = make(kNv, 64, 32);
  EXPECT_THROW(Quantize(trace, x, &mx, &nv, {}, {}), Error);
  EXPECT_THROW(Dequantize(trace, transformed_f32, trace.Persistent(DType::kF32, 64, 32, Category::kData)), Error);
  EXPECT_NO_THROW(Quantize(trace, x, &mx, &turned, {}, {}));
  const QuantizedTensor rows = make(kCurrentStochastic, 32, 64);
  const QuantizedTensor columns = make(kCurrentStochastic, 64, 32);
  EXPECT_THROW(Quantize(trace, x, &rows, &columns, {}, {}), Error);
  EXPECT_THROW(Quantize(trace, x, nullptr, &columns, {}, {}), Error);
  EXPECT_NO_THROW(Quantize(trace, x, &rows, nullptr, {}, {}));
  EXPECT_THROW(Transposed(trace, mx, Category::kData), Error);
  EXPECT_NO_THROW(Transposed(trace, rows, Category::kData));
}

}  // namespace
}  // namespace ridgeline::engine
