#include "sagemaker/logs.h"

#include <algorithm>
#include <utility>

#include "ridgeline/job_dir.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";
// Lines come late, and not in the order of their times. Those of this time are read again.
constexpr int64_t kLateMs = 180'000;
constexpr int kMostPages = 1000;
constexpr int kTailPages = 20;

// Calls `take` with each event, page by page. Returns the answer that ended the reading if that is an error.
Answer ReadPages(Aws& aws, Json request, int most_pages, const std::function<void(const Json& event)>& take) {
  for (int page = 0;; ++page) {
    Answer answer = aws.Call("logs:FilterLogEvents", request);
    if (!answer.ok()) return answer;
    const Json document = Json::parse(answer.body);
    if (const auto events = document.find("events"); events != document.end() && events->is_array()) {
      for (const Json& event : *events) take(event);
    }
    // A page may be empty and not the last.
    const auto next = document.find("nextToken");
    if (next == document.end() || !next->is_string() || page + 1 >= most_pages) return answer;
    request["nextToken"] = *next;
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
  const Answer answer = ReadPages(aws, request, kMostPages, [&](const Json& event) {
    const auto time_ms = event.value("timestamp", int64_t{0});
    if (!seen_.emplace(event.value("eventId", ""), time_ms).second) return;
    last_ms = std::max(last_ms, time_ms);
    const auto stream = event.value("logStreamName", "");
    take(stream.substr(0, stream.find('/')), event.value("message", ""));
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
    ReadPages(aws, request, kTailPages, [&](const Json& event) {
      tail += event.value("message", "") + '\n';
      if (tail.size() > 2 * kLogTailBytes) tail.erase(0, tail.size() - kLogTailBytes);
    });
  } catch (const Error&) {
    return tail;  // it only explains
  }
  return tail;
}

}  // namespace ridgeline::sagemaker
