#include "engine/precision/recipe.h"

#include <string>

#include "base/error.h"
#include "run/names.h"

namespace ridgeline::engine {
namespace {

constexpr LinearQuantizers Fp8(Scaling scaling) {
  const Quantizer narrow{Format::kE4M3, scaling};
  const Quantizer wide{Format::kE5M2, scaling};
  return {
      .x_fprop = narrow, .w_fprop = narrow, .dy_dgrad = wide, .w_dgrad = narrow, .dy_wgrad = wide, .x_wgrad = narrow};
}
constexpr LinearQuantizers Mxfp8(ScaleRule rule) {
  const Quantizer q{Format::kE4M3, Scaling::kBlock32, Rounding::kNearest, false, rule};
  return {.x_fprop = q, .w_fprop = q, .dy_dgrad = q, .w_dgrad = q, .dy_wgrad = q, .x_wgrad = q};
}
constexpr Quantizer Fp4(Rounding rounding, bool hadamard) {
  return {Format::kE2M1, Scaling::kBlock16, rounding, hadamard};
}

constexpr LinearQuantizers kFp8Delayed = Fp8(Scaling::kDelayed);
constexpr LinearQuantizers kFp8Current = Fp8(Scaling::kCurrent);
constexpr LinearQuantizers kMxfp8RoundUp = Mxfp8(ScaleRule::kRoundUp);
constexpr LinearQuantizers kMxfp8Floor = Mxfp8(ScaleRule::kFloor);
constexpr LinearQuantizers kNvfp4 = {.x_fprop = Fp4(Rounding::kNearest, false),
                                     .w_fprop = {Format::kE2M1, Scaling::kBlock16x16},
                                     .dy_dgrad = Fp4(Rounding::kStochastic, false),
                                     .w_dgrad = {Format::kE2M1, Scaling::kBlock16x16},
                                     .dy_wgrad = Fp4(Rounding::kStochastic, true),
                                     .x_wgrad = Fp4(Rounding::kNearest, true)};

constexpr Recipe WithFp32State(Precision precision, std::string_view scaling, const LinearQuantizers* linear) {
  return {precision, scaling, "fp32", DType::kBF16, Master::kRemainder, DType::kF32, DType::kF32, linear};
}
constexpr Recipe WithBf16State(Precision precision, std::string_view scaling, const LinearQuantizers* linear) {
  return {precision, scaling, "bf16", DType::kBF16, Master::kNone, DType::kBF16, DType::kBF16, linear};
}

constexpr Recipe kRecipes[] = {
    {Precision::kFp32, "none", "fp32", DType::kF32, Master::kNone, DType::kF32, DType::kF32},
    {.precision = Precision::kTf32, .scaling = "none", .state_precision = "fp32", .tf32 = true},
    WithFp32State(Precision::kBf16, "none", nullptr),
    WithBf16State(Precision::kBf16, "none", nullptr),
    {Precision::kFp16, "none", "fp32", DType::kF16, Master::kWhole, DType::kF32, DType::kF32},
    WithFp32State(Precision::kFp8, "delayed", &kFp8Delayed),
    WithBf16State(Precision::kFp8, "delayed", &kFp8Delayed),
    WithFp32State(Precision::kFp8, "current", &kFp8Current),
    WithBf16State(Precision::kFp8, "current", &kFp8Current),
    WithFp32State(Precision::kMxfp8, "round_up", &kMxfp8RoundUp),
    WithBf16State(Precision::kMxfp8, "round_up", &kMxfp8RoundUp),
    WithFp32State(Precision::kMxfp8, "floor", &kMxfp8Floor),
    WithBf16State(Precision::kMxfp8, "floor", &kMxfp8Floor),
    WithFp32State(Precision::kNvfp4, "none", &kNvfp4),
    WithBf16State(Precision::kNvfp4, "none", &kNvfp4),
};

}  // namespace

const Recipe& RecipeOf(Precision precision, std::string_view scaling, std::string_view state_precision) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.precision == precision && recipe.scaling == scaling && recipe.state_precision == state_precision) {
      return recipe;
    }
  }
  std::string what = "no recipe for precision " + std::string(NameOf(precision));
  if (scaling != "none") what += " with scaling " + std::string(scaling);
  throw Error(ErrorKind::kInvalidInput, what + " with state_precision " + std::string(state_precision));
}

}  // namespace ridgeline::engine
