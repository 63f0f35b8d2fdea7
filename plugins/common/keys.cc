#include "common/keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/failure.h"

namespace ridgeline::plugin {
namespace {

constexpr size_t kMostBytes = 50;  // Kubernetes' names have 63, and something is put behind them

}  // namespace

bool IsKey(const std::string& text) {
  return text.starts_with("rl-") && text.size() <= kMostBytes && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

void CheckKey(const std::string& text) {
  if (IsKey(text)) return;
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("'{}' is not a job key: rl- and lower-case letters, digits and -, at most {} in all", text,
                            kMostBytes));
}

}  // namespace ridgeline::plugin
