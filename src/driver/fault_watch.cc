#include "driver/fault_watch.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/result.h"

namespace ridgeline {
namespace {

constexpr int64_t kFailuresOfANode = 2;

// What failures that are alike have in common: the reason, and the words that are no names or numbers.
std::string KindOf(const Collected& result) {
  std::string kind(ReasonName(result.end.reason));
  std::istringstream words(result.message);
  for (std::string word; words >> word;) {
    if (std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      kind += ' ' + word;
  }
  return kind;
}

}  // namespace

std::vector<FaultWatch::Finding> FaultWatch::PointEnded(const std::string& job_key, const Collected& result) {
  if (result.end.status == RunStatus::kCancelled || result.end.reason == InfrastructureReason::kPreempted) return {};
  if (result.end.status != RunStatus::kInfrastructure) {
    alike_ = 0;
    return {};
  }
  if (!failed_jobs_.insert(job_key).second) return {};
  std::vector<Finding> findings;
  if (IsToBeAvoided(result.node)) {
    avoid_.push_back(result.node);
    const std::string node = PrintableLine(result.node);
    findings.push_back({fmt::format("{} is set aside: {} jobs failed on it, the last: {}", node, kFailuresOfANode,
                                    PrintableLine(result.message)),
                        "withdrawn before it began, to be kept off " + node});
  }
  if (IsOneTooMany(result)) {
    given_up_ = fmt::format("{} jobs in a row failed alike, {}: {}", alike_, EndName(result.end),
                            PrintableLine(result.message));
    findings.push_back({"no more jobs are handed over: " + given_up_, "withdrawn before it began: " + given_up_});
  }
  return findings;
}

bool FaultWatch::IsToBeAvoided(const std::string& node) {
  return !node.empty() && node.find(' ') == std::string::npos && ++failures_on_[node] == kFailuresOfANode;
}

bool FaultWatch::IsOneTooMany(const Collected& result) {
  // A scheduler that forgets its jobs forgets many at once, and takes them again.
  if (result.end.reason == InfrastructureReason::kLost) return false;
  std::string kind = KindOf(result);
  alike_ = kind == kind_ ? alike_ + 1 : 1;
  kind_ = std::move(kind);
  return give_up_after_ > 0 && alike_ >= give_up_after_ && given_up_.empty();
}

}  // namespace ridgeline
