#include "engine/precision/recipe.h"

#include <string>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr Recipe kRecipes[] = {
    {"fp32", "fp32", DType::kF32, false, DType::kF32, DType::kF32},
    {"bf16", "fp32", DType::kBF16, true, DType::kF32, DType::kF32},
    {"bf16", "bf16", DType::kBF16, false, DType::kBF16, DType::kBF16},
};

}  // namespace

const Recipe& RecipeOf(std::string_view precision, std::string_view state_precision) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.precision == precision && recipe.state_precision == state_precision) return recipe;
  }
  throw Error(ErrorKind::kInvalidInput, "no recipe for precision " + std::string(precision) + " with state_precision " +
                                            std::string(state_precision));
}

}  // namespace ridgeline
