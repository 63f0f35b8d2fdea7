#include "sagemaker/logs.h"

#include <algorithm>
#include <utility>

#include "ridgeline/job_dir.h"
#include "sagemaker/parse.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";
// Lines come late, and not in the order of their times. Those of this time are read again.
constexpr int64_t kLateMs = 180'000;
constexpr int kMostPages = 1000;
constexpr int kTailPages = 20;

// Calls `take` with each event, page by page. Returns the answer that ended the reading if that is an error.
Answer ReadPages(Aws& aws, Json request, int most_pages, const std::function<void(const LogEvent& event)>& take) {
  for (int pages = 1;; ++pages) {
    LogPage page;
    Answer answer =
        aws.Call("logs:FilterLogEvents", request, [&](const Json& document) { page = ParseLogPage(document); });
    if (!answer.ok()) return answer;
    for (const LogEvent& event : page.events) take(event);
    if (page.next_token.empty() || pages >= most_pages) return answer;
    request["nextToken"] = page.next_token;
  }
}

}  // namespace

SweepLog::SweepLog(std::string prefix, int64_t since_unix_s)
    : prefix_(std::move(prefix)), since_ms_(since_unix_s * 1000) {}

void SweepLog::Read(Aws& aws, const Take& take) {
  const Json request = {{"logGroupName", kGroup},
                        {"logStreamNamePrefix", prefix_},
                        {"startTime", std::max<int64_t>(0, since_ms_)},
                        // exec's lines alone: what trainers print is long, and exec keeps the end of it
                        {"filterPattern", "\"ridgeline:\""}};
  int64_t last_ms = 0;
  const Answer answer = ReadPages(aws, request, kMostPages, [&](const LogEvent& event) {
    if (!seen_.emplace(event.id, event.time_ms).second) return;
    last_ms = std::max(last_ms, event.time_ms);
    take(event.stream.substr(0, event.stream.find('/')), event.message);
  });
  problem_.clear();
  // Group and streams are made with the first line.
  if (!answer.ok() && answer.code != "ResourceNotFoundException") {
    const plugin::Failure failure = Aws::ToFailure(answer, "read the jobs' log");
    if (failure.kind() == plugin::Failure::Kind::kNotNow) throw failure;
    problem_ = failure.message();
  }
  since_ms_ = std::max(since_ms_, last_ms - kLateMs);
  std::erase_if(seen_, [&](const auto& event) { return event.second < since_ms_; });
}

std::string SweepLog::Tail(Aws& aws, const std::string& job, int64_t since_unix_s) {
  std::string tail;
  const Json request = {{"logGroupName", kGroup},
                        {"logStreamNamePrefix", job + "/"},
                        {"startTime", std::max<int64_t>(0, since_unix_s * 1000)}};
  try {
    ReadPages(aws, request, kTailPages, [&](const LogEvent& event) {
      tail += event.message + '\n';
      if (tail.size() > 2 * kLogTailBytes) tail.erase(0, tail.size() - kLogTailBytes);
    });
  } catch (const Error&) {
    return tail;  // it only explains
  }
  return tail;
}

}  // namespace ridgeline::sagemaker
