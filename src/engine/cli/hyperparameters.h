// Flags from the environment, as Amazon SageMaker hands hyperparameters to a training container.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline::engine {

// Returns the environment variable that holds a flag's hyperparameter. For "--batch-size", that is SM_HP_BATCH_SIZE or,
// as SageMaker spells a hyperparameter called batch-size, SM_HP_BATCH-SIZE. Empty if neither is set.
std::string HyperParameterVariable(std::string_view flag);

// Throws Error(kUsage), naming a hyperparameter that is none of these flags. Ignores SageMaker's own.
void CheckHyperParameters(std::span<const std::string> flags);

}  // namespace ridgeline::engine
