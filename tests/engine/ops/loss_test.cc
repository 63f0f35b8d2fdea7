#include "engine/ops/loss.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

class Loss : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Loss)});
};
RIDGELINE_ON_EVERY_TARGET(Loss);

struct LossReference {
  double loss = 0;
  std::vector<double> gradient;
};
LossReference CrossEntropyReference(const std::vector<float>& logits, const std::vector<float>& targets, int64_t vocab,
                                    double scale) {
  LossReference result;
  for (size_t row = 0; row < targets.size(); ++row) {
    const float* x = logits.data() + row * static_cast<size_t>(vocab);
    const double max = *std::max_element(x, x + vocab);
    double sum = 0;
    for (int64_t i = 0; i < vocab; ++i) sum += std::exp(x[i] - max);
    const auto target = static_cast<int64_t>(targets[row]);
    result.loss += (std::log(sum) + max - x[target]) * scale;
    for (int64_t i = 0; i < vocab; ++i) {
      result.gradient.push_back((std::exp(x[i] - max) / sum - (i == target ? 1 : 0)) * scale);
    }
  }
  return result;
}

TEST_P(Loss, CrossEntropyIsItsFormula) {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, vocab] :
         {std::pair<int64_t, int64_t>{1, 2}, {3, 31}, {2, 32}, {5, 257}, {3, 4096}, {2, 10001}}) {
      for (const float spread : {0.1F, 3.0F, 30.0F}) {
        // With this seed no target is nearly certain; p - 1 would lose most of its bits.
        const auto logits = RepresentableNormal(dtype, rows * vocab, 2, spread);
        std::vector<float> targets;
        for (int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<float>((i * 7919 + vocab - 1) % vocab));
        const double scale = 0.25;
        const LossReference expected = CrossEntropyReference(logits, targets, vocab, scale);
        OpRunner runner;
        const Tensor x = runner.Make(dtype, rows, vocab, logits);
        const Tensor t = runner.Make(DType::kI32, 1, rows, targets);
        const Tensor loss = runner.Make(DType::kF32, 1, 1, {0.5F});
        CrossEntropy(runner.trace, x, t, loss, scale);
        runner.Run(table_);
        EXPECT_NEAR(runner.Read(loss)[0], 0.5 + expected.loss, 1e-6 * (0.5 + expected.loss));
        ExpectClose(runner.Read(x), expected.gradient, dtype, 1e-12, 5e-6);
      }
    }
  }
}

// The vocabulary in parts of different sizes, as several ranks have it. Together they are as one rank.
TEST_P(Loss, CrossEntropyOfPartsIsThatOfTheWhole) {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, vocab, last] : {std::tuple<int64_t, int64_t, int64_t>{1, 2, 1}, {3, 31, 4}, {5, 5000, 7}}) {
      for (const float spread : {0.1F, 30.0F}) {
        const auto logits = RepresentableNormal(dtype, rows * vocab, 2, spread);
        std::vector<float> targets;
        for (int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<float>((i * 7919 + vocab - 1) % vocab));
        const LossReference expected = CrossEntropyReference(logits, targets, vocab, 0.25);
        OpRunner runner;
        const Tensor x = runner.Make(dtype, rows, vocab, logits);
        const Tensor t = runner.Make(DType::kI32, 1, rows, targets);
        const Tensor all = runner.Empty(DType::kF32, 1, 2 * kNumbersOfLoss * rows);
        const std::pair<int64_t, int64_t> parts[] = {{0, vocab - last}, {vocab - last, last}};
        std::vector<Tensor> losses;
        for (size_t p = 0; p < 2; ++p) {
          LossStatistics(runner.trace, x.Cols(parts[p].first, parts[p].second), t,
                         all.Cols(static_cast<int64_t>(p) * kNumbersOfLoss * rows, kNumbersOfLoss * rows),
                         parts[p].first);
        }
        for (const auto& [first, count] : parts) {
          losses.push_back(runner.Make(DType::kF32, 1, 1, {0.5F}));
          CrossEntropyOfPart(runner.trace, x.Cols(first, count), t, all, losses.back(), 0.25, first);
        }
        runner.Run(table_);
        for (const Tensor& loss : losses) {
          EXPECT_NEAR(runner.Read(loss)[0], 0.5 + expected.loss, 1e-6 * (0.5 + expected.loss));
        }
        EXPECT_EQ(runner.Read(losses[0]), runner.Read(losses[1]));
        ExpectClose(runner.Read(x), expected.gradient, dtype, 1e-12, 5e-6);
      }
    }
  }
}

// A device keeps only a part of such long rows where it reads them twice.
TEST_P(Loss, CrossEntropyTakesLongRows) {
  constexpr int64_t kVocab = 100'003;
  const auto logits = RepresentableNormal(DType::kBF16, kVocab, 3, 3.0F);
  const std::vector<float> targets = {99'000};
  const LossReference expected = CrossEntropyReference(logits, targets, kVocab, 1);
  OpRunner runner;
  const Tensor x = runner.Make(DType::kBF16, 1, kVocab, logits);
  const Tensor t = runner.Make(DType::kI32, 1, 1, targets);
  const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
  CrossEntropy(runner.trace, x, t, loss, 1);
  runner.Run(table_);
  EXPECT_NEAR(runner.Read(loss)[0], expected.loss, 1e-5 * expected.loss);
  ExpectClose(runner.Read(x), expected.gradient, DType::kBF16, 1e-12, 5e-6);
}

TEST_P(Loss, CrossEntropyTakesStridedRowsAndAnyOrderOfMagnitudes) {
  // Rising logits make every piece of the row raise the maximum. The padding beside them holds other numbers.
  constexpr int64_t kVocab = 9000, kPad = 5;
  std::vector<float> all, logits;
  for (int64_t i = 0; i < 2 * (kVocab + kPad); ++i) {
    const int64_t c = i % (kVocab + kPad);
    all.push_back(c < kVocab ? static_cast<float>(c) * 0.1F - 500 : 1e30F);
    if (c < kVocab) logits.push_back(all.back());
  }
  logits[3] = all[3] = -std::numeric_limits<float>::infinity();
  const std::vector<float> targets = {8999, 8990};
  const LossReference expected = CrossEntropyReference(logits, targets, kVocab, 1);
  OpRunner runner;
  const Tensor whole = runner.Make(DType::kF32, 2, kVocab + kPad, all);
  const Tensor t = runner.Make(DType::kI32, 1, 2, targets);
  const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
  CrossEntropy(runner.trace, whole.Cols(0, kVocab), t, loss, 1);
  runner.Run(table_);
  EXPECT_NEAR(runner.Read(loss)[0], expected.loss, 1e-5);
  ExpectClose(runner.Read(whole.Cols(0, kVocab)), expected.gradient, DType::kF32, 1e-37, 5e-6);
  EXPECT_EQ(runner.Read(whole.Cols(kVocab, kPad)), std::vector<float>(2 * kPad, 1e30F));
}

TEST_P(Loss, CrossEntropyTakesRowsThatBeginAnywhere) {
  constexpr int64_t kRows = 3;
  for (const DType dtype : kFloats) {
    for (const auto& [vocab, first, stride] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 2},
                                               {5, 3, 9},
                                               {13, 5, 19},
                                               {40001, 7, 40011},
                                               {120007, 7, 120019}}) {
      const auto all = RepresentableNormal(dtype, kRows * stride, 1, 3);
      std::vector<float> logits;
      for (int64_t i = 0; i < kRows * stride; ++i) {
        if (i % stride >= first && i % stride < first + vocab) logits.push_back(all[static_cast<size_t>(i)]);
      }
      const std::vector<float> targets = {0, static_cast<float>(vocab / 2), static_cast<float>(vocab - 1)};
      const LossReference expected = CrossEntropyReference(logits, targets, vocab, 0.5);
      OpRunner runner;
      const Tensor whole = runner.Make(dtype, kRows, stride, all);
      const Tensor t = runner.Make(DType::kI32, 1, kRows, targets);
      const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
      CrossEntropy(runner.trace, whole.Cols(first, vocab), t, loss, 0.5);
      runner.Run(table_);
      EXPECT_NEAR(runner.Read(loss)[0], expected.loss, 1e-6 * expected.loss);
      ExpectClose(runner.Read(whole.Cols(first, vocab)), expected.gradient, dtype, 1e-12, 5e-6);
    }
  }
}

TEST_P(Loss, CrossEntropyScalesGradientsAlone) {
  constexpr int64_t kRows = 2, kVocab = 37;
  const auto logits = NormalFloats(kRows * kVocab, 1);
  const std::vector<float> targets = {3, 36};
  const LossReference expected = CrossEntropyReference(logits, targets, kVocab, 1);
  OpRunner runner;
  const Tensor x = runner.Make(DType::kF32, kRows, kVocab, logits);
  const Tensor t = runner.Make(DType::kI32, 1, kRows, targets);
  const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
  CrossEntropy(runner.trace, x, t, loss, 0.5, runner.Make(DType::kF32, 1, 3, {1024, 7, 8}));
  runner.Run(table_);
  EXPECT_NEAR(runner.Read(loss)[0], 0.5 * expected.loss, 1e-6 * expected.loss);
  std::vector<double> gradient = expected.gradient;
  for (double& value : gradient) value *= 512;
  ExpectClose(runner.Read(x), gradient, DType::kF32, 1e-12, 5e-6);
}

TEST_P(Loss, CrossEntropyOfOnePossibleTokenIsZero) {
  for (const DType dtype : kFloats) {
    std::vector<float> logits(9000, -std::numeric_limits<float>::infinity());
    logits.back() = 5;
    OpRunner runner;
    const Tensor x = runner.Make(dtype, 1, 9000, logits);
    const Tensor t = runner.Make(DType::kI32, 1, 1, {8999});
    const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
    CrossEntropy(runner.trace, x, t, loss, 1);
    runner.Run(table_);
    EXPECT_EQ(runner.Read(loss)[0], 0);
    EXPECT_EQ(runner.Read(x), std::vector<float>(9000, 0));
  }
}

TEST_P(Loss, CrossEntropyOfNanIsNan) {
  for (const DType dtype : kFloats) {
    for (const size_t at : {0U, 40U, 4999U}) {
      OpRunner runner;
      std::vector<float> logits(5000, 1);
      logits[at] = std::nanf("");
      const Tensor x = runner.Make(dtype, 1, 5000, logits);
      const Tensor t = runner.Make(DType::kI32, 1, 1, {7});
      const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
      CrossEntropy(runner.trace, x, t, loss, 1);
      runner.Run(table_);
      EXPECT_TRUE(std::isnan(runner.Read(loss)[0])) << at;
    }
  }
}

TEST_P(Loss, SumLossSums) {
  for (const DType dtype : kFloats) {
    for (const int64_t n : {1, 33, 5000, 200001}) {
      const auto x = RepresentableNormal(dtype, n, 1);
      double sum = 0, magnitude = 0;
      for (const float v : x) {
        sum += v;
        magnitude += std::abs(v);
      }
      OpRunner runner;
      const Tensor tx = runner.Make(dtype, 1, n, x);
      const Tensor loss = runner.Make(DType::kF32, 1, 1, {2});
      SumLoss(runner.trace, tx, loss, 0.5);
      runner.Run(table_);
      EXPECT_NEAR(runner.Read(loss)[0], 2 + 0.5 * sum, 1e-7 * magnitude + 2e-7);
    }
  }
}

TEST_P(Loss, ThreadsChangeNothing) {
  ExpectSameForAnyThreads(table_, [](OpRunner& runner) -> std::vector<Tensor> {
    constexpr int64_t kRows = 64, kVocab = 3001;
    const Tensor x = runner.Normal(DType::kBF16, kRows, kVocab, 1);
    const Tensor t = runner.Make(DType::kI32, 1, kRows, std::vector<float>(kRows, 5));
    const Tensor loss = runner.Make(DType::kF32, 1, 1, {0});
    const Tensor sum = runner.Make(DType::kF32, 1, 1, {0});
    SumLoss(runner.trace, x, sum, 1);
    CrossEntropy(runner.trace, x, t, loss, 1);
    return {x, loss, sum};
  });
}

TEST(LossRecord, RefusesOtherShapes) {
  Trace trace;
  const auto make = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const Tensor x = make(DType::kBF16, 6, 8);
  const Tensor scalar = make(DType::kF32, 1, 1);
  EXPECT_THROW(CrossEntropy(trace, x, make(DType::kI32, 1, 5), scalar, 1), Error);
  EXPECT_THROW(CrossEntropy(trace, x, make(DType::kF32, 1, 6), scalar, 1), Error);
  EXPECT_THROW(CrossEntropy(trace, x, make(DType::kI32, 1, 6), make(DType::kBF16, 1, 1), 1), Error);
  EXPECT_THROW(SumLoss(trace, x.Cols(0, 4), scalar, 1), Error);
  EXPECT_THROW(SumLoss(trace, x, x, 1), Error);
  EXPECT_TRUE(trace.calls().empty());
}

}  // namespace
}  // namespace ridgeline::engine
