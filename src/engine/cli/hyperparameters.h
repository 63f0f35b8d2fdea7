// Flags from the environment: how Amazon SageMaker hands a training container its hyperparameters.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

// The environment variable that holds a flag's hyperparameter: for "--batch-size" SM_HP_BATCH_SIZE or, as SageMaker
// spells a hyperparameter called batch-size, SM_HP_BATCH-SIZE. Empty where neither is set.
std::string HyperParameterVariable(std::string_view flag);

// Throws Error(kUsage) naming a hyperparameter that is none of these flags; SageMaker's own are left alone.
void CheckHyperParameters(std::span<const std::string> flags);

}  // namespace ridgeline
