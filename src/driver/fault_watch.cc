#include "driver/fault_watch.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/result.h"

namespace ridgeline::driver {
namespace {

constexpr int64_t kFailuresOfANode = 2;
constexpr size_t kNodesNamed = 3;
constexpr size_t kWordsOfANode = 160;  // code points: the database has the rest

// What failures of the same kind share: the end, and the words that have no digits.
std::string KindOf(const collect::Collected& result) {
  std::string kind = EndName(result.end);
  std::istringstream words(result.message);
  for (std::string word; words >> word;) {
    if (std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      kind += ' ' + word;
  }
  return kind;
}

}  // namespace

std::vector<FaultWatch::Finding> FaultWatch::PointEnded(const std::string& job_key, const collect::Collected& result,
                                                        const std::string& kept_off) {
  if (result.end.status == RunStatus::kCancelled || result.end.reason == InfrastructureReason::kPreempted) return {};
  if (result.end.status != RunStatus::kInfrastructure) {
    alike_ = 0;
    failed_alike_on_.clear();
    return OwnFault(result);
  }
  if (!failed_jobs_.insert(job_key).second) return {};
  if (!result.node.empty() && (' ' + kept_off + ' ').find(' ' + result.node + ' ') != std::string::npos) {
    used_again_.insert(result.node);
  }
  std::vector<Finding> findings;
  if (IsToBeAvoided(result)) {
    avoid_.push_back(result.node);
    const std::string node = PrintableLine(result.node);
    findings.push_back(
        {fmt::format("{} is set aside, as long as others can take jobs: {} jobs failed on it, the last: {}", node,
                     kFailuresOfANode, PrintableLine(result.message)),
         "withdrawn before it began, to be kept off " + node});
  }
  if (IsOneTooMany(result)) {
    findings.push_back(GiveUp(fmt::format("{} jobs in a row failed alike, {}: {}", alike_, EndName(result.end),
                                          PrintableLine(result.message))));
  }
  return findings;
}

FaultWatch::Finding FaultWatch::GiveUp(std::string why) {
  given_up_ = std::move(why);
  return {"no more jobs are handed over: " + given_up_, "withdrawn before it began: " + given_up_};
}

// A point that ran out of memory, diverged or took too long has a result, which shows that the trainer works.
std::vector<FaultWatch::Finding> FaultWatch::OwnFault(const collect::Collected& result) {
  const bool failed = result.end == RunStatus::kCrashed || result.end == RunStatus::kInvalid;
  std::string kind = KindOf(result);
  if (trainer_.points.empty()) trainer_.kind = kind;
  trainer_.has_worked = trainer_.has_worked || !failed || kind != trainer_.kind;
  if (trainer_.has_worked) return {};
  trainer_.points.insert(result.point_id);
  const auto points = static_cast<int64_t>(trainer_.points.size());
  if (give_up_after_ == 0 || points < give_up_after_ || !given_up_.empty()) return {};
  is_trainers_fault_ = true;
  return {GiveUp(fmt::format("each of the first {} points ended alike, {}: {}", points, EndName(result.end),
                             PrintableLine(result.message)))};
}

std::string FaultWatch::Blamed(const collect::Collected& result) const {
  const bool is_nodes =
      result.end.reason == InfrastructureReason::kNode || result.end.reason == InfrastructureReason::kLost;
  return one_machine_ || !is_nodes || result.node.find(' ') != std::string::npos ? "" : result.node;
}

bool FaultWatch::IsToBeAvoided(const collect::Collected& result) {
  const std::string blamed = Blamed(result);
  if (blamed.empty()) return false;
  OfANode& node = failed_on_[blamed];
  node.last = ShortenToCodePoints(result.message, kWordsOfANode);
  return ++node.jobs == kFailuresOfANode;
}

FaultWatch::Finding FaultWatch::UseAgain(const std::string& why) {
  const std::string words = PrintableLine(why);
  if (avoid_.empty()) {
    return {"jobs of an earlier run find no node and are submitted again: " + words,
            "withdrawn before it began, to be submitted again"};
  }
  const std::string node = PrintableLine(avoid_.back());
  used_again_.insert(avoid_.back());
  avoid_.pop_back();
  return {fmt::format("{} is used again, as no other node can take its jobs: {}", node, words),
          "withdrawn before it began, to be let on " + node + " again"};
}

std::string FaultWatch::SetAside() const {
  std::vector<std::string> nodes;
  size_t more = 0;
  for (const auto& [name, node] : failed_on_) {
    if (node.jobs < kFailuresOfANode) continue;
    if (nodes.size() == kNodesNamed) {
      ++more;
      continue;
    }
    nodes.push_back(fmt::format("{}, where {} jobs failed, the last: {}", PrintableLine(name), node.jobs,
                                PrintableLine(node.last)));
  }
  if (more > 0) nodes.push_back(fmt::format("{} more", more));
  return Join(nodes, "; ");
}

bool FaultWatch::IsOneTooMany(const collect::Collected& result) {
  // A scheduler that loses its jobs loses many at once, and accepts them again.
  if (result.end.reason == InfrastructureReason::kLost) return false;
  std::string kind = KindOf(result);
  if (kind != kind_) {
    alike_ = 0;
    failed_alike_on_.clear();
  }
  kind_ = std::move(kind);
  // One bad node fails every job that it gets, which says nothing about other nodes.
  const std::string node = Blamed(result);
  if (!node.empty() && !failed_alike_on_.insert(node).second && !used_again_.contains(node)) return false;
  ++alike_;
  return give_up_after_ > 0 && alike_ >= give_up_after_ && given_up_.empty();
}

}  // namespace ridgeline::driver
