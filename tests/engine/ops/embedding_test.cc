#include "engine/ops/embedding.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

class EmbeddingOp : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Embedding)});
};
RIDGELINE_ON_EVERY_TARGET(EmbeddingOp);

std::vector<float> Ids(int64_t count, int64_t vocab, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<float> ids;
  for (int64_t i = 0; i < count; ++i) {
    // Half of the ids are the same, like spaces in text.
    ids.push_back(engine() % 2 == 0 ? 1.0F : static_cast<float>(engine() % static_cast<uint32_t>(vocab)));
  }
  ids.back() = static_cast<float>(vocab - 1);
  return ids;
}

TEST_P(EmbeddingOp, TakesRows) {
  for (const DType dtype : kFloats) {
    for (const bool positions : {false, true}) {
      for (const int64_t hidden : {1, 31, 32, 100}) {
        constexpr int64_t kVocab = 50, kSeq = 7, kTokens = 21;
        const auto ids = Ids(kTokens, kVocab, 1);
        const auto wte = RepresentableNormal(dtype, kVocab * hidden, 2);
        const auto wpe = RepresentableNormal(dtype, (kSeq + 2) * hidden, 3);
        std::vector<float> expected;
        for (int64_t i = 0; i < kTokens * hidden; ++i) {
          const int64_t token = i / hidden, c = i % hidden;
          const float from =
              wte[static_cast<size_t>(static_cast<int64_t>(ids[static_cast<size_t>(token)]) * hidden + c)];
          expected.push_back(positions ? Rounded(from + wpe[static_cast<size_t>(token % kSeq * hidden + c)], dtype)
                                       : from);
        }
        OpRunner runner;
        const Tensor tids = runner.Make(DType::kI32, 1, kTokens, ids);
        const Tensor twte = runner.Make(dtype, kVocab, hidden, wte);
        const Tensor twpe = runner.Make(dtype, kSeq + 2, hidden, wpe);
        const Tensor x = runner.Empty(dtype, kTokens, hidden);
        Embedding(runner.trace, tids, twte, positions ? twpe : Tensor{}, x, kSeq);
        runner.Run(table_);
        EXPECT_EQ(runner.Read(x), expected);
      }
    }
  }
}

TEST_P(EmbeddingOp, BackwardAddsEveryTokensRow) {
  for (const DType dtype : kFloats) {
    for (const DType gradient : kFloats) {
      for (const auto& [vocab, hidden] : {std::pair<int64_t, int64_t>{1, 3}, {50, 100}, {5000, 33}}) {
        constexpr int64_t kSeq = 37, kTokens = 4 * kSeq;
        const auto ids = Ids(kTokens, vocab, 1);
        if (vocab == 1) continue;
        const auto dx = RepresentableNormal(dtype, kTokens * hidden, 2);
        const auto d_wte = RepresentableNormal(gradient, vocab * hidden, 3);  // such as a tied head's gradient
        const auto d_wpe = RepresentableNormal(gradient, (kSeq + 1) * hidden, 4);
        std::vector<double> wte = Doubles(d_wte), wpe = Doubles(d_wpe);
        for (int64_t i = 0; i < kTokens * hidden; ++i) {
          const int64_t token = i / hidden, c = i % hidden;
          const double d = dx[static_cast<size_t>(i)];
          wte[static_cast<size_t>(static_cast<int64_t>(ids[static_cast<size_t>(token)]) * hidden + c)] += d;
          wpe[static_cast<size_t>(token % kSeq * hidden + c)] += d;
        }
        for (const bool positions : {false, true}) {
          OpRunner runner;
          const Tensor tdx = runner.Make(dtype, kTokens, hidden, dx);
          const Tensor tids = runner.Make(DType::kI32, 1, kTokens, ids);
          const Tensor twte = runner.Make(gradient, vocab, hidden, d_wte);
          const Tensor twpe = runner.Make(gradient, kSeq + 1, hidden, d_wpe);
          EmbeddingBackward(runner.trace, tdx, tids, twte, positions ? twpe : Tensor{}, kSeq);
          runner.Run(table_);
          // Rounded once, no matter how often a token occurs.
          ExpectClose(runner.Read(twte), wte, gradient, 2e-5);
          if (positions) {
            ExpectClose(runner.Read(twpe), wpe, gradient, 2e-6);
          } else {
            EXPECT_EQ(runner.Read(twpe), d_wpe);
          }
        }
      }
    }
  }
}

// A rank with ids 2 and 3 of the vocabulary.
TEST_P(EmbeddingOp, APartOfTheVocabularyHasItsOwnTokensAlone) {
  OpRunner runner;
  const Tensor ids = runner.Make(DType::kI32, 1, 4, {3, 0, 4, 2});
  const Tensor wte = runner.Make(DType::kF32, 2, 2, {20, 21, 30, 31});
  const Tensor wpe = runner.Make(DType::kF32, 2, 2, {1, 2, 3, 4});
  const Tensor x = runner.Empty(DType::kF32, 4, 2);
  Embedding(runner.trace, ids, wte, wpe, x, 2, 2);
  const Tensor dx = runner.Make(DType::kF32, 4, 2, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor d_wte = runner.Make(DType::kF32, 2, 2, {100, 200, 300, 400});
  const Tensor d_wpe = runner.Make(DType::kF32, 2, 2, {0, 0, 0, 0});
  EmbeddingBackward(runner.trace, dx, ids, d_wte, d_wpe, 2, 2);
  runner.Run(table_);
  EXPECT_EQ(runner.Read(x), (std::vector<float>{31, 33, 0, 0, 0, 0, 23, 25}));
  EXPECT_EQ(runner.Read(d_wte), (std::vector<float>{107, 208, 301, 402}));
  EXPECT_EQ(runner.Read(d_wpe), (std::vector<float>{6, 8, 10, 12})) << "every rank has all positions";
}

TEST_P(EmbeddingOp, BackwardOfAVocabularyOfOneToken) {
  OpRunner runner;
  const Tensor dx = runner.Make(DType::kF32, 4, 2, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor ids = runner.Make(DType::kI32, 1, 4, {0, 0, 0, 0});
  const Tensor d_wte = runner.Make(DType::kF32, 1, 2, {100, 200});
  EmbeddingBackward(runner.trace, dx, ids, d_wte, Tensor{}, 2);
  runner.Run(table_);
  EXPECT_EQ(runner.Read(d_wte), (std::vector<float>{116, 220}));
}

// More tokens than are sorted at once, and ids with more than 16 bits.
TEST_P(EmbeddingOp, BackwardAddsManyTokensInTheirOrder) {
  constexpr int64_t kTokens = 3 * 2048 + 77;
  for (const auto& [vocab, hidden] : {std::pair<int64_t, int64_t>{300, 8}, {70001, 3}}) {
    const auto ids = Ids(kTokens, vocab, 1);
    const auto dx = NormalFloats(kTokens * hidden, 2);
    const auto d_wte = NormalFloats(vocab * hidden, 3);
    std::vector<float> expected = d_wte;
    for (int64_t c = 0; c < hidden; ++c) {
      std::map<int64_t, float> sums;
      for (int64_t token = 0; token < kTokens; ++token) {
        sums[static_cast<int64_t>(ids[static_cast<size_t>(token)])] += dx[static_cast<size_t>(token * hidden + c)];
      }
      for (const auto& [id, sum] : sums) expected[static_cast<size_t>(id * hidden + c)] += sum;
    }
    OpRunner runner;
    const Tensor tdx = runner.Make(DType::kF32, kTokens, hidden, dx);
    const Tensor tids = runner.Make(DType::kI32, 1, kTokens, ids);
    const Tensor twte = runner.Make(DType::kF32, vocab, hidden, d_wte);
    EmbeddingBackward(runner.trace, tdx, tids, twte, {}, kTokens);
    runner.Run(table_);
    EXPECT_EQ(runner.Read(twte), expected) << vocab;
  }
}

TEST_P(EmbeddingOp, TakesViewsThatBeginAnywhere) {
  constexpr int64_t kVocab = 9, kTokens = 12, kHidden = 16;
  for (const DType dtype : kFloats) {
    const auto ids = Ids(kTokens, kVocab, 1);
    OpRunner runner;
    const auto view = [&](int64_t rows, uint32_t seed) {
      return runner.Normal(dtype, 1, rows * kHidden + 1, seed).Cols(1, rows * kHidden).Reshape(rows, kHidden);
    };
    const Tensor tids = runner.Make(DType::kI32, 1, kTokens, ids);
    const Tensor wte = view(kVocab, 1);
    const Tensor wpe = view(kTokens, 2);
    const Tensor x = view(kTokens, 3);
    const Tensor d_wte = view(kVocab, 4);
    Embedding(runner.trace, tids, wte, wpe, x, kTokens);
    EmbeddingBackward(runner.trace, x, tids, d_wte, {}, kTokens);
    runner.Run(table_);
    const auto rows = [&](uint32_t seed, int64_t count) {
      const auto all = RepresentableNormal(dtype, count * kHidden + 1, seed);
      return std::vector<float>(all.begin() + 1, all.end());
    };
    std::vector<double> gradient = Doubles(rows(4, kVocab));
    std::vector<float> embedded;
    for (int64_t i = 0; i < kTokens * kHidden; ++i) {
      const auto at = static_cast<int64_t>(ids[static_cast<size_t>(i / kHidden)]) * kHidden + i % kHidden;
      embedded.push_back(
          Rounded(rows(1, kVocab)[static_cast<size_t>(at)] + rows(2, kTokens)[static_cast<size_t>(i)], dtype));
      gradient[static_cast<size_t>(at)] += static_cast<double>(embedded.back());
    }
    EXPECT_EQ(runner.Read(x), embedded);
    ExpectClose(runner.Read(d_wte), gradient, dtype, 1e-5);
  }
}

TEST_P(EmbeddingOp, ThreadsChangeNothing) {
  ExpectSameForAnyThreads(table_, [](OpRunner& runner) -> std::vector<Tensor> {
    constexpr int64_t kTokens = 300, kVocab = 3000, kHidden = 333;
    const Tensor ids = runner.Make(DType::kI32, 1, kTokens, Ids(kTokens, kVocab, 1));
    const Tensor wte = runner.Normal(DType::kBF16, kVocab, kHidden, 2);
    const Tensor wpe = runner.Normal(DType::kBF16, kTokens, kHidden, 2);
    const Tensor x = runner.Empty(DType::kBF16, kTokens, kHidden);
    Embedding(runner.trace, ids, wte, wpe, x, kTokens / 3);
    EmbeddingBackward(runner.trace, x, ids, wte, wpe, kTokens / 3);
    return {x, wte, wpe};
  });
}

TEST(EmbeddingRecord, RefusesOtherShapes) {
  Trace trace;
  const auto make = [&](DType dtype, int64_t rows, int64_t cols) {
    return trace.Temporary(dtype, rows, cols, Category::kActivations);
  };
  const Tensor ids = make(DType::kI32, 1, 6);
  const Tensor x = make(DType::kBF16, 6, 8);
  const Tensor wte = make(DType::kBF16, 50, 8);
  EXPECT_THROW(Embedding(trace, ids, wte, Tensor{}, x, 4), Error);
  EXPECT_THROW(Embedding(trace, ids, make(DType::kF32, 50, 8), Tensor{}, x, 3), Error);
  EXPECT_THROW(Embedding(trace, ids, wte, make(DType::kBF16, 2, 8), x, 3), Error);
  EXPECT_THROW(Embedding(trace, make(DType::kI32, 1, 5), wte, Tensor{}, x, 3), Error);
  EXPECT_THROW(EmbeddingBackward(trace, x, ids, make(DType::kBF16, 50, 7), Tensor{}, 3), Error);
  EXPECT_TRUE(trace.calls().empty());
}

}  // namespace
}  // namespace ridgeline::engine
