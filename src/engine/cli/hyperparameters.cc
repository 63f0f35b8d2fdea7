#include "engine/cli/hyperparameters.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::engine {
namespace {

constexpr std::string_view kPrefix = "SM_HP_";

// "--batch-size" and "BATCH-SIZE" -> "BATCH_SIZE".
std::string Plain(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string plain(name);
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](unsigned char c) { return c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(c)); });
  return plain;
}

std::vector<std::string> VariableNames() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

std::string HyperParameterVariable(std::string_view flag) {
  const std::string wanted = Plain(flag);
  for (const std::string& name : VariableNames()) {
    if (name.starts_with(kPrefix) && Plain(std::string_view(name).substr(kPrefix.size())) == wanted) return name;
  }
  return {};
}

void CheckHyperParameters(std::span<const std::string> flags) {
  std::vector<std::string> known;
  for (const std::string& flag : flags) known.push_back(Plain(flag));
  for (const std::string& name : VariableNames()) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string plain = Plain(std::string_view(name).substr(kPrefix.size()));
    if (plain.starts_with("SAGEMAKER_") || std::find(known.begin(), known.end(), plain) != known.end()) continue;
    throw Error(ErrorKind::kUsage,
                "unknown hyperparameter '" + plain + "' (in the environment: " + name + ")" + DidYouMean(plain, known),
                "a hyperparameter is a flag of ridgeline-train without its dashes");
  }
}

}  // namespace ridgeline::engine
