#include "common/keys.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

#include "common/failure.h"

namespace ridgeline::plugin {
namespace {

constexpr size_t kMostBytes = 50;  // names in Kubernetes may have 63, and suffixes are added

}  // namespace

bool IsKey(const std::string& text) {
  return text.starts_with("rl-") && text.size() <= kMostBytes && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::string Label(const std::string& sweep) {
  constexpr size_t kMost = 40;
  std::string label;
  for (const char c : sweep.substr(0, kMost)) {
    label += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ? c : '-';
  }
  return label.empty() ? "sweep" : label;
}

std::string FileNameOf(const Json& job, int64_t nodes) {
  if (nodes == 0) nodes = std::max<int64_t>(1, job.value("nodes", int64_t{1}));
  return fmt::format("{}.{}-node{}.{}", Label(job.value("sweep", std::string())), nodes, nodes == 1 ? "" : "s",
                     job.at("key").get<std::string>());
}

void CheckKey(const std::string& text) {
  if (IsKey(text)) return;
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("'{}' is not a job key: rl- and lower-case letters, digits and -, at most {} in all", text,
                            kMostBytes));
}

}  // namespace ridgeline::plugin
