#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

std::string_view DTypeName(DType dtype) {
  static constexpr std::string_view kNames[] = {"fp32", "bf16", "fp16", "int16", "int32", "uint8"};
  return kNames[static_cast<int>(dtype)];
}

std::string_view CategoryName(Category category) {
  static constexpr std::string_view kNames[kCategoryCount] = {"parameters", "gradients", "optimizer", "activations",
                                                              "workspace",  "logits",    "data"};
  return kNames[static_cast<int>(category)];
}

}  // namespace ridgeline::engine
