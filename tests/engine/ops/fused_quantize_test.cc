// Ops that write the codes of their results, compared bit by bit with the same ops followed by Quantize.
#include "engine/ops/fused_quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

constexpr double kEps = 1e-5;

// Codes in both orientations, in storages of their own.
struct Codes {
  QuantizedTensor row, col;
  DelayedScale delayed;

  Codes(OpRunner& runner, int64_t rows, int64_t cols, const Quantizer& quantizer = kFusedQuantizer)
      : row(NewQuantized(runner.trace, quantizer, rows, cols, Category::kData, true)),
        col(NewQuantized(runner.trace, quantizer, cols, rows, Category::kData, true)),
        delayed{runner.Make(DType::kF32, 1, 1, {3.7F}), runner.Make(DType::kF32, 1, 1, {1e-3F})} {}
};

TEST(FusedQuantizing, RefusesOtherThanDelayedE4m3OfTheirShape) {
  OpRunner runner;
  const Tensor x = runner.Empty(DType::kBF16, 4, 16);
  const Tensor weight = runner.Empty(DType::kBF16, 1, 16);
  const Tensor stats = runner.Empty(DType::kF32, 1, 4);
  const Codes whole(runner, 4, 16);
  const Codes half(runner, 4, 8);
  QuantizedTensor current = whole.row;
  current.quantizer.scaling = Scaling::kCurrent;
  const auto refused = [&](const std::function<void()>& record) {
    const size_t calls = runner.trace.calls().size();
    EXPECT_THROW(record(), Error);
    EXPECT_EQ(runner.trace.calls().size(), calls);
  };
  refused([&] { SwiGluQuantize(runner.trace, x, nullptr, nullptr, half.delayed); });
  refused([&] { SwiGluQuantize(runner.trace, x, &whole.row, nullptr, half.delayed); });
  refused([&] { SwiGluQuantize(runner.trace, x.Cols(0, 15), &half.row, nullptr, half.delayed); });
  refused([&] { SwiGluQuantize(runner.trace, x, &half.row, nullptr, {}); });
  refused([&] { GeluQuantize(runner.trace, x, nullptr, &whole.row, whole.delayed); });
  refused([&] { GeluQuantize(runner.trace, runner.Empty(DType::kF32, 4, 16), &whole.row, nullptr, whole.delayed); });
  const auto of_gradient = [&](int64_t outer, int64_t inner, const Quantizer& quantizer) {
    return NewQuantized(runner.trace, quantizer, outer, inner, Category::kData, true);
  };
  const QuantizedTensor rows = of_gradient(4, 16, kFusedGradientQuantizer);
  const QuantizedTensor columns = of_gradient(16, 4, kFusedGradientQuantizer);
  const Tensor dy = x.Cols(0, 8);
  const Tensor contiguous = runner.Empty(DType::kBF16, 4, 8);
  refused([&] { SwiGluBackwardQuantize(runner.trace, dy, x, rows, columns, half.delayed); });
  refused([&] { SwiGluBackwardQuantize(runner.trace, contiguous, x, rows, rows, half.delayed); });
  refused([&] { SwiGluBackwardQuantize(runner.trace, contiguous, x, whole.row, whole.col, half.delayed); });
  refused([&] { SwiGluBackwardQuantize(runner.trace, contiguous, contiguous, rows, columns, half.delayed); });
  refused([&] { SwiGluBackwardQuantize(runner.trace, contiguous, x, rows, columns, {}); });
  const QuantizedTensor crossing = of_gradient(4, 16, MxGradientQuantizer(ScaleRule::kRoundUp));
  refused([&] { SwiGluBackwardQuantize(runner.trace, contiguous, x, crossing, columns, {}); });
  const auto gelu = [&](const Tensor& d, const QuantizedTensor& row, const QuantizedTensor& col,
                        const DelayedScale& delayed, const Tensor& dbias) {
    refused([&] { GeluBackwardQuantize(runner.trace, d, x, row, col, delayed, dbias, false); });
  };
  gelu(contiguous, rows, columns, half.delayed, {});
  gelu(x, rows, rows, half.delayed, {});
  gelu(x, whole.row, whole.col, half.delayed, {});
  gelu(x, rows, columns, {}, {});
  gelu(x, rows, columns, half.delayed, stats);
  gelu(x, crossing, columns, half.delayed, {});
  refused([&] { RmsNormQuantize(runner.trace, x, weight, current, stats, kEps, whole.delayed); });
  refused([&] { RmsNormQuantize(runner.trace, x, stats, whole.row, stats, kEps, whole.delayed); });
  refused([&] { RmsNormQuantize(runner.trace, x, weight, whole.row, stats, kEps, {}); });
  refused([&] { LayerNormQuantize(runner.trace, x, weight, {}, whole.row, stats, stats, kEps, whole.delayed); });
  refused([&] { LayerNormQuantize(runner.trace, x, weight, weight, whole.row, {}, stats, kEps, whole.delayed); });
  refused([&] { RmsNormQuantize(runner.trace, x, weight, whole.row, stats, kEps, whole.delayed, {weight, x}); });
}

#ifdef RIDGELINE_CUDA_TESTS

struct Shape {
  int64_t rows, cols;
};
// The requested orientations.
struct Sides {
  bool row = false, col = false;
};

class FusedQuantizing : public EveryTarget {
 protected:
  // record(runner, codes, fused) fills the codes of the requested sides, the slot, and the tensors that it returns.
  using Record = std::function<std::vector<Tensor>(OpRunner& runner, const Codes& codes, bool fused)>;

  void ExpectSameBits(const Shape& shape, const Sides& sides, const Record& record,
                      const Quantizer& quantizer = kFusedQuantizer) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << (sides.row ? " row" : "")
                                    << (sides.col ? " col" : ""));
    std::vector<std::vector<std::byte>> of[2];
    for (const bool fused : {false, true}) {
      OpRunner runner;
      const Codes codes(runner, shape.rows, shape.cols, quantizer);
      std::vector<Tensor> results = record(runner, codes, fused);
      results.push_back(codes.delayed.amax);
      for (const auto& [wanted, q] : {std::pair(sides.row, &codes.row), {sides.col, &codes.col}}) {
        if (!wanted) continue;
        results.push_back(q->codes);
        results.push_back(HasBlocks(quantizer.scaling) ? q->scales : q->tensor_scale);
      }
      runner.Run(table_, {.step = 2, .learning_rate = 0, .seed = 5});
      if (HasFatalFailure()) return;
      for (const Tensor& result : results) of[fused].push_back(runner.Bytes(result));
    }
    for (size_t i = 0; i < of[0].size(); ++i) ASSERT_EQ(of[0][i], of[1][i]) << "result " << i;
  }

  // Numbers of every size, and some that are NaN or infinite.
  static Tensor Input(OpRunner& runner, int64_t rows, int64_t cols) {
    std::vector<float> values = NormalFloats(rows * cols, 1, 3);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = Rounded(std::ldexp(values[i], static_cast<int>(i % 7) - 5), DType::kBF16);
    }
    if (values.size() > 400) {
      values[70] = std::nanf("");
      values[399] = std::numeric_limits<float>::infinity();
    }
    return runner.Make(DType::kBF16, rows, cols, std::move(values));
  }

  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Elementwise), RIDGELINE_FAMILY(Norm), RIDGELINE_FAMILY(Quantize)});
};
RIDGELINE_ON_TARGETS(Targets, FusedQuantizing, WithCuda({}));

constexpr Quantizer kGradientQuantizers[] = {kFusedGradientQuantizer, MxGradientQuantizer(ScaleRule::kRoundUp),
                                             MxGradientQuantizer(ScaleRule::kFloor)};
constexpr Shape kShapes[] = {{1, 1}, {3, 7}, {17, 33}, {40, 104}, {5, 24}, {129, 257}, {200, 40}};

TEST_P(FusedQuantizing, ActivationsAreThoseThatWereStoredBefore) {
  for (const bool gated : {true, false}) {
    SCOPED_TRACE(gated ? "swiglu" : "gelu");
    for (const Shape& shape : kShapes) {
      for (const Sides& sides : {Sides{true, true}, {true, false}, {false, true}}) {
        ExpectSameBits(shape, sides, [&](OpRunner& runner, const Codes& codes, bool fused) {
          const auto& [rows, cols] = shape;
          const Tensor x = Input(runner, rows, gated ? 2 * cols : cols);
          const QuantizedTensor* row = sides.row ? &codes.row : nullptr;
          const QuantizedTensor* col = sides.col ? &codes.col : nullptr;
          if (fused) {
            (gated ? SwiGluQuantize : GeluQuantize)(runner.trace, x, row, col, codes.delayed);
            return std::vector<Tensor>{};
          }
          const Tensor y = runner.Empty(DType::kBF16, rows, cols);
          (gated ? SwiGlu : Gelu)(runner.trace, x, y);
          Quantize(runner.trace, y, row, col, codes.delayed, {});
          return std::vector<Tensor>{};
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(FusedQuantizing, GradientsOfGatesAreThoseThatWereStoredBefore) {
  const auto expect_same = [&](const Shape& shape, const Quantizer& quantizer) {
    const auto record = [&](OpRunner& runner, const Codes& codes, bool fused) {
      const auto& [rows, ffn] = shape;
      const Tensor dy = runner.Normal(DType::kBF16, rows, ffn, 2);
      const Tensor x = Input(runner, rows, 2 * ffn);
      if (fused) {
        SwiGluBackwardQuantize(runner.trace, dy, x, codes.row, codes.col, codes.delayed);
      } else {
        SwiGluBackward(runner.trace, dy, x, x);
        Quantize(runner.trace, x, &codes.row, &codes.col, codes.delayed, {});
      }
      return std::vector<Tensor>{};
    };
    ExpectSameBits({shape.rows, 2 * shape.cols}, {true, true}, record, quantizer);
  };
  for (const Shape& shape : kShapes) {
    expect_same(shape, kFusedGradientQuantizer);
    if (HasFatalFailure()) return;
  }
  // In blocks of 32, which belong to gates or to ups. The last rows may fill no block, and tiles have 128 columns.
  for (const Shape& shape : {Shape{1, 32}, {40, 96}, {129, 160}, {32, 128}, {96, 288}}) {
    for (const ScaleRule rule : {ScaleRule::kRoundUp, ScaleRule::kFloor}) {
      expect_same(shape, MxGradientQuantizer(rule));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(FusedQuantizing, GradientsOfGeluAreThoseThatWereStoredBefore) {
  for (const Quantizer& quantizer : kGradientQuantizers) {
    for (const Shape& shape : kShapes) {
      const auto record = [&](OpRunner& runner, const Codes& codes, bool fused) {
        const Tensor dy = runner.Normal(DType::kBF16, shape.rows, shape.cols, 2);
        const Tensor x = Input(runner, shape.rows, shape.cols);
        if (fused) {
          GeluBackwardQuantize(runner.trace, dy, x, codes.row, codes.col, codes.delayed, {}, false);
        } else {
          GeluBackward(runner.trace, dy, x, x);
          Quantize(runner.trace, x, &codes.row, &codes.col, codes.delayed, {});
        }
        return std::vector<Tensor>{};
      };
      ExpectSameBits(shape, {true, true}, record, quantizer);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(FusedQuantizing, BiasesOfGeluGetTheSumsOfTheRoundedGradient) {
  struct Case {
    Shape shape;
    DType dtype;
    bool accumulate;
  };
  for (const Quantizer& quantizer : kGradientQuantizers) {
    for (const Case& of :
         {Case{{1, 1}, DType::kF32, false}, Case{{129, 257}, DType::kF32, true}, Case{{300, 40}, DType::kBF16, false},
          Case{{256, 160}, DType::kF32, false}, Case{{288, 96}, DType::kF32, true}}) {
      const auto& [rows, cols] = of.shape;
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      OpRunner runner;
      const Codes codes(runner, rows, cols, quantizer);
      const Tensor dy = runner.Normal(DType::kBF16, rows, cols, 2);
      const Tensor x = runner.Normal(DType::kBF16, rows, cols, 3);
      const Tensor dx = runner.Empty(DType::kBF16, rows, cols);
      const Tensor dbias = runner.Make(of.dtype, 1, cols, std::vector<float>(static_cast<size_t>(cols), 2.0F));
      GeluBackward(runner.trace, dy, x, dx);
      GeluBackwardQuantize(runner.trace, dy, x, codes.row, codes.col, codes.delayed, dbias, of.accumulate);
      runner.Run(table_);
      const std::vector<float> gradients = runner.Read(dx);
      const std::vector<float> sums = runner.Read(dbias);
      for (int64_t c = 0; c < cols; ++c) {
        double sum = of.accumulate ? 2 : 0;
        double size = sum;
        for (int64_t r = 0; r < rows; ++r) {
          const double value = gradients[static_cast<size_t>(r * cols + c)];
          sum += value;
          size += std::abs(value);
        }
        ASSERT_NEAR(sums[static_cast<size_t>(c)], sum, size * (of.dtype == DType::kF32 ? 1e-6 : 4e-3))
            << "column " << c;
      }
    }
  }
}

// A norm whose input already exists or is a sum that it computes, with or without dropout.
struct NormCaseOfCodes {
  bool center = false;
  bool summed = false;
  double p = 0;
};

TEST_P(FusedQuantizing, NormsAreThoseThatWereStoredBefore) {
  for (const NormCaseOfCodes& of :
       {NormCaseOfCodes{}, {.center = true}, {.summed = true}, {.center = true, .summed = true, .p = 0.3}}) {
    const bool center = of.center;
    SCOPED_TRACE(testing::Message() << (center ? "layer norm" : "rms norm") << (of.summed ? " of a sum" : ""));
    for (const Shape& shape : {Shape{1, 1}, {3, 7}, {33, 24}, {5, 104}, {4, 257}, {2, 9000}, {2200, 24}}) {
      ExpectSameBits(shape, {.row = true}, [&](OpRunner& runner, const Codes& codes, bool fused) {
        const auto& [rows, cols] = shape;
        const Tensor x = Input(runner, rows, cols);
        const ResidualSum made = {x, runner.Normal(DType::kBF16, rows, cols, 4), of.p, {6}};
        const ResidualSum sum = fused && of.summed ? made : ResidualSum{};
        if (!fused && of.summed) DropoutAdd(runner.trace, made.branch, made.residual, x, made.p, made.stream);
        const Tensor weight = runner.Normal(DType::kBF16, 1, cols, 2);
        const Tensor bias = runner.Normal(DType::kBF16, 1, cols, 3);
        const Tensor rstd = runner.Empty(DType::kF32, 1, rows);
        const Tensor mean = runner.Empty(DType::kF32, 1, rows);
        const Tensor y = fused ? Tensor{} : runner.Empty(DType::kBF16, rows, cols);
        if (fused && center) {
          LayerNormQuantize(runner.trace, x, weight, bias, codes.row, mean, rstd, kEps, codes.delayed, sum);
        } else if (fused) {
          RmsNormQuantize(runner.trace, x, weight, codes.row, rstd, kEps, codes.delayed, sum);
        } else if (center) {
          LayerNorm(runner.trace, x, weight, bias, y, mean, rstd, kEps);
        } else {
          RmsNorm(runner.trace, x, weight, y, rstd, kEps);
        }
        if (!fused) Quantize(runner.trace, y, &codes.row, nullptr, codes.delayed, {});
        return center ? std::vector{x, mean, rstd} : std::vector{x, rstd};
      });
      if (HasFatalFailure()) return;
    }
  }
}

#endif

}  // namespace
}  // namespace ridgeline::engine
