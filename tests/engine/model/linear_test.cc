// Which operand of which product is quantized, and how: a linear layer's products, compared with the scalar quantizers
// and double precision, for every recipe and both layouts of weights.
#include "engine/model/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/ops/gemm.h"
#include "engine/ops/philox.h"
#include "engine/precision/reference.h"
#include "engine/step/program.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/trainer.h"
#include "tests/engine/ops/op_runner.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kTokens = 40;  // not a multiple of 16 or 32
constexpr StepInputs kInputs = {.step = 2, .learning_rate = 0, .seed = 99};
constexpr uint32_t kFirstRoundingStream = 1U << 30;

// Weights and gradients without sharding.
class PlainAccess final : public ParameterAccess {
 public:
  PlainAccess(OpRunner& runner, const ModelShape& shape) {
    for (size_t p = 0; p < shape.parameters.size(); ++p) {
      const Parameter& parameter = shape.parameters[p];
      weights.push_back(runner.Normal(DType::kBF16, parameter.rows, parameter.cols, static_cast<uint32_t>(p), 0.1F));
      gradients.push_back(runner.Empty(DType::kF32, parameter.rows, parameter.cols));
    }
  }
  Tensor Weight(int parameter) override { return weights[static_cast<size_t>(parameter)]; }
  QuantizedTensor Codes(int /*parameter*/, bool /*as_it_lies*/) override { return {}; }
  Gradient NextGradient(int parameter) override { return {gradients[static_cast<size_t>(parameter)], false}; }
  void GradientDone(int /*parameter*/) override {}
  void EndUse() override {}
  std::vector<Tensor> weights, gradients;
};

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
  Matrix Transposed() const {
    Matrix t{cols, rows, std::vector<float>(values.size())};
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        t.values[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * cols + c)];
      }
    }
    return t;
  }
};

// The values of m after it is quantized along its rows.
Matrix Dequantized(const Quantizer& quantizer, const Matrix& m, uint32_t stream, bool columnwise) {
  const int64_t base = columnwise ? kColumnwiseDraws : 0;
  const auto draw = [&](int64_t i) {
    return RoundingBits(kInputs.seed, kInputs.step, stream, base + i, quantizer.draw_bits());
  };
  const ReferenceTensor q = QuantizeReference(quantizer, m.values, m.rows, m.cols, 1, draw);
  return {m.rows, quantizer.PaddedInner(m.cols), DequantizeReference(q)};
}

// a (m, k) b (n, k)ᵀ in double precision, compared with a result in `dtype`.
void ExpectProduct(const Matrix& a, const Matrix& b, const std::vector<float>& got, DType dtype,
                   const std::string& what) {
  ASSERT_EQ(a.cols, b.cols) << what;
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t col = 0; col < b.rows; ++col) {
      double sum = 0;
      double size = 0;
      for (int64_t k = 0; k < a.cols; ++k) {
        const double term = static_cast<double>(a.values[static_cast<size_t>(row * a.cols + k)]) *
                            static_cast<double>(b.values[static_cast<size_t>(col * b.cols + k)]);
        sum += term;
        size += std::abs(term);
      }
      const double bound = (dtype == DType::kBF16 ? std::abs(sum) / 128 : 0) + 2e-6 * size;
      ASSERT_NEAR(got[static_cast<size_t>(row * b.rows + col)], sum, bound) << what << " at " << row << ", " << col;
    }
  }
}

struct RecipeCase {
  const char* precision;
  const char* scaling;
};

void CheckLinear(const std::string& family, const RecipeCase& c, bool keep) {
  SCOPED_TRACE(family + " " + c.precision + " " + c.scaling + (keep ? " kept" : ""));
  Json values = TinyModel(family);
  values["precision"] = c.precision;
  values["scaling"] = c.scaling;
  const RunSpec spec = SpecFrom(values);
  const Recipe& recipe = RecipeOf(spec.precision, spec.scaling, spec.state_precision);
  const LinearQuantizers& q = *recipe.linear;
  const ModelShape shape = ShapeOf(spec);
  OpRunner runner;
  PlainAccess access(runner, shape);
  DelayedScales scales(runner.trace, shape, spec, recipe);
  Flights flights(runner.trace, Mesh());
  TensorGroup group(runner.trace, flights, spec, 0);
  Linears linears(runner.trace, access, shape, spec, recipe, scales, group);
  for (const DelayedScaling& state : scales.states()) {  // they are persistent tensors of their own
    Fill(runner.trace, state.scale, 1);
    Fill(runner.trace, state.amax, 0);
    Fill(runner.trace, state.history, 0);
  }
  constexpr int64_t kLayer = 1;
  runner.trace.SetLayer(kLayer);
  const LinearParameters& linear = shape.layers[kLayer].back().in;
  const auto weight = static_cast<size_t>(linear.weight);
  const Parameter& parameter = shape.parameters[weight];
  const auto [inputs, outputs] = std::pair(linear.inputs, linear.outputs);
  ASSERT_EQ(inputs, shape.weights_in_out ? parameter.rows : parameter.cols);
  ASSERT_EQ(outputs, shape.weights_in_out ? parameter.cols : parameter.rows);
  const Tensor x = runner.Normal(DType::kBF16, kTokens, inputs, 100);
  const Tensor dy = runner.Normal(DType::kBF16, kTokens, outputs, 101, 0.01F);
  LinearInput input{.x = x};
  const Tensor y = linears.Forward(linear, input, keep);
  EXPECT_EQ(input.x.defined(), !keep);
  const Tensor dx = linears.Backward(linear, 0, {dy}, input);
  scales.EndMicroStep();
  runner.Run(CpuKernels(), kInputs);

  const Matrix mx{kTokens, inputs, runner.Read(x)};
  const Matrix mdy{kTokens, outputs, runner.Read(dy)};
  Matrix w{parameter.rows, parameter.cols, runner.Read(access.weights[weight])};
  if (shape.weights_in_out) w = w.Transposed();       // (outputs, inputs)
  constexpr int64_t kLinearsBefore = 4 * kLayer + 2;  // four in each layer
  const auto stream = static_cast<uint32_t>(kFirstRoundingStream + kLinearsBefore);
  Matrix without_bias{kTokens, outputs, runner.Read(y)};
  if (const int bias = linear.bias; bias >= 0) {
    const std::vector<float> b = runner.Read(access.weights[static_cast<size_t>(bias)]);
    for (size_t i = 0; i < without_bias.values.size(); ++i) {
      without_bias.values[i] -= b[i % static_cast<size_t>(outputs)];
    }
  } else {
    ExpectProduct(Dequantized(q.x_fprop, mx, 0, false), Dequantized(q.w_fprop, w, 0, false), without_bias.values,
                  DType::kBF16, "y");
  }
  ExpectProduct(Dequantized(q.dy_dgrad, mdy, stream, false), Dequantized(q.w_dgrad, w.Transposed(), 0, true),
                runner.Read(dx), DType::kBF16, "dx");
  const Matrix columns_dy = Dequantized(q.dy_wgrad, mdy.Transposed(), stream, true);
  const Matrix columns_x = Dequantized(q.x_wgrad, mx.Transposed(), 0, true);
  ExpectProduct(shape.weights_in_out ? columns_x : columns_dy, shape.weights_in_out ? columns_dy : columns_x,
                runner.Read(access.gradients[weight]), DType::kF32, "dw");
}

TEST(Linears, EveryRecipesProductsAreOfItsQuantizedOperands) {
  for (const std::string& family : kFamilies) {
    for (const RecipeCase& c : {RecipeCase{"fp8", "delayed"},
                                {"fp8", "current"},
                                {"mxfp8", "round_up"},
                                {"mxfp8", "floor"},
                                {"nvfp4", "none"}}) {
      CheckLinear(family, c, true);
      CheckLinear(family, c, false);
    }
  }
}

TEST(Linears, DelayedScalingLearnsFromTheStepBefore) {
  Json values = TinyModel("llama");
  values["precision"] = "fp8";
  values["amax_history"] = 3;
  const RunSpec spec = SpecFrom(values);
  const StepProgram program = BuildStep(spec);
  ASSERT_EQ(program.delayed_scaling.size(), 2U);
  EXPECT_EQ(program.delayed_scaling[0].history.cols, 3);
  const TrainOutcome outcome = Train(spec, {});
  EXPECT_EQ(outcome.result.status, RunStatus::kOk) << outcome.result.message;
  EXPECT_TRUE(outcome.result.emulated);
}

TEST(Linears, SomeLayersMayStayInBf16) {
  Json values = TinyModel("llama");
  values["precision"] = "nvfp4";
  values["bf16_first_layers"] = 1;
  values["bf16_last_layers"] = 1;
  const StepProgram program = BuildStep(SpecFrom(values));
  for (const OpCall& call : program.trace.calls()) {
    if (call.op == &kQuantizedGemm) {
      EXPECT_EQ(call.layer, 1);
    }
  }
}

}  // namespace
}  // namespace ridgeline::engine
