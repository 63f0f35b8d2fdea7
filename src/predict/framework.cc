#include "predict/framework.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/presets.h"

namespace ridgeline {
namespace {

double BytesOfNumber(const RunSpec& spec) { return spec.precision == "fp32" || spec.precision == "tf32" ? 4 : 2; }

// Bytes an element of what a product of quantized weights keeps of an operand: its rows' codes and its columns', with
// their scales. Else the numbers themselves, once.
double KeptOfOperand(const RunSpec& spec) {
  if (spec.precision == "fp8") return 2;
  if (spec.precision == "mxfp8") return 2 * (1 + 1.0 / 32);
  if (spec.precision == "nvfp4") return 2 * (0.5 + 1.0 / 16);
  return BytesOfNumber(spec);
}

// NVIDIA's fsdp.py: a stack of TransformerEngine's layers under PyTorch's FSDP1, counted tensor by tensor
// (docs/prediction.md).
int64_t PeakOfTeFsdp(const RunSpec& s) {
  if (s.family != "stack" || s.shard != "full" || (s.checkpointing != "none" && s.checkpointing != "full")) {
    throw Error(
        ErrorKind::kInvalidInput,
        fmt::format("te-fsdp is known of family: stack with shard: full and checkpointing: none or full, not of "
                    "{} with {} and {}",
                    s.family, s.shard, s.checkpointing),
        "without --framework the engine's own step is predicted");
  }
  const double number = BytesOfNumber(s);
  const double kept = KeptOfOperand(s);
  const auto parameters = static_cast<double>(CountParameters(s));
  const auto hidden = static_cast<double>(s.hidden);
  const auto ffn = static_cast<double>(s.ffn);
  const auto layers = static_cast<double>(s.layers);
  const double tokens = static_cast<double>(s.batch_size) * static_cast<double>(s.seq_length);

  // Weights, gradients and both moments, in parts.
  const double state = 4 * number * parameters / static_cast<double>(s.ranks);
  const double gathered = number * parameters / layers;  // of one layer
  // What a layer keeps for its backward pass: the inputs of two norms; q, k, v and what attention makes of them; what
  // three products read and the fourth; the input of GELU; two masks of dropout, a byte a number.
  const double masks = s.dropout > 0 ? 2 : 0;
  const double layer = tokens * (hidden * (2 * number + 4 * number + 3 * kept + masks) + ffn * (kept + number));
  if (s.checkpointing == "full") {
    return std::llround(state + gathered + number * tokens * hidden * layers + layer);
  }
  // Codes of weights are kept from the forward pass to the backward pass, whole.
  const double codes = kept > number || s.precision == "fp8" || s.precision == "nvfp4" ? kept * parameters : 0;
  return std::llround(state + gathered + codes + layers * layer);
}

const Framework kFrameworks[] = {
    {},
    {.name = "te-fsdp",
     .about = "NVIDIA's fsdp.py: TransformerEngine's layers under PyTorch's FSDP1",
     .efficiency = {},
     .efficiency_from = "taken from published figures of other programs, and no GPU has run these",
     .first_iteration_s = 6.5,
     .start_s = 0,
     .peak_bytes = PeakOfTeFsdp},
};

}  // namespace

const Framework& FindFramework(const std::string& name) {
  const auto* found = std::ranges::find(kFrameworks, name, &Framework::name);
  if (found != std::end(kFrameworks)) return *found;
  std::vector<std::string> names;
  for (const Framework& framework : kFrameworks) names.emplace_back(framework.name);
  throw Error(ErrorKind::kUsage, fmt::format("there is no framework '{}'{}", name, DidYouMean(name, names)),
              "the frameworks are " + Join(names, ", "));
}

}  // namespace ridgeline
