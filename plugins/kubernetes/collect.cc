#include "kubernetes/collect.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::JobState;
using plugin::Phase;

constexpr std::chrono::seconds kLogPatience{10};  // for the log of a pod that has ended
// The caller may be gone before the next poll, for example a driver that is killed and started again and again. So each
// poll waits for logs that come at once: this long over all jobs together, with at most so many looks.
constexpr std::chrono::milliseconds kMoment{300};
constexpr int kMostLooks = 300;

}  // namespace

Collector::Collector(Cluster& cluster, Journal& journal, const plugin::Clock& clock, std::string output_path)
    : cluster_(cluster), journal_(journal), clock_(clock), output_path_(std::move(output_path)) {}

void Collector::BeginPoll() {
  looks_left_ = kMostLooks;
  poll_until_ = clock_.Now() + kMoment;
}

Collector::Live& Collector::LiveOf(const Record& record) {
  const auto found = live_.find(record.key);
  if (found != live_.end()) return found->second;
  return live_.emplace(record.key, Live{ResultFolder(record), {}, {}}).first->second;
}

void Collector::TakeLogs(const Pods& pods, Live& live) {
  for (const auto& [name, pod] : pods) {
    auto log = live.logs.find(name);
    if (log == live.logs.end()) {
      if (!pod.HasBegun() || pod.phase == kDeletedPhase) continue;
      const std::string path =
          fmt::format("{}/{}/log?container={}&follow=true", cluster_.CorePath("pods"), name, kContainer);
      log = live.logs.emplace(name, PodLog(cluster_, clock_, path)).first;
    }
    log->second.Pump(pod, live.results);
  }
  // Reads the logs of pods that are not observed any more, because their Job was suspended.
  PodView gone;
  gone.phase = kDeletedPhase;
  for (auto& [name, log] : live.logs) {
    if (pods.contains(name)) continue;
    gone.name = name;
    log.Pump(gone, live.results);
  }
}

// The Job's end may be known before its pods' ends, and these before their last output.
bool Collector::MayHaveMoreToSay(const Observation& seen, Live& live) const {
  if (!live.over_since) live.over_since = clock_.Now();
  if (clock_.Now() - *live.over_since >= kLogPatience) return false;
  return seen.pods.empty() ||
         !std::all_of(seen.pods.begin(), seen.pods.end(),
                      [&](const auto& pod) { return HasEnded(pod.second, seen.unix_s); }) ||
         !std::all_of(live.logs.begin(), live.logs.end(), [](const auto& log) { return log.second.done(); });
}

JobState Collector::Collect(Record& record, const Observation& seen, Judgement judgement) {
  using Presence = Observation::Presence;
  if (seen.presence == Presence::kUnasked || seen.presence == Presence::kUnheard) return judgement;
  Live& live = LiveOf(record);
  TakeLogs(seen.pods, live);
  if (judgement.phase != Phase::kEnded) {
    for (const auto& [name, log] : live.logs) {
      if (const std::string problem = log.ProblemSoFar(); !problem.empty()) judgement.evidence["log_problem"] = problem;
    }
    return judgement;
  }
  while (judgement.awaits_logs && MayHaveMoreToSay(seen, live)) {
    if (looks_left_ == 0 || clock_.Now() >= poll_until_) return {Phase::kRunning, judgement.started_unix_s, {}, {}};
    --looks_left_;
    cluster_.Await(kMoment / 10);
    TakeLogs(seen.pods, live);
  }
  return WriteEnd(record, seen, live, std::move(judgement));
}

JobState Collector::WriteEnd(Record& record, const Observation& seen, Live& live, JobState end) {
  ResultFolder& results = live.results;
  if (!output_path_.empty()) results.CopyMissing(std::filesystem::path(output_path_) / "jobs" / record.key);
  for (const auto& [name, pod] : seen.pods) results.TakeLastWords(pod.last_words);
  const bool explained = end.evidence.contains("end");
  std::string log_problem;
  for (const auto& [name, log] : live.logs) {
    if (log_problem.empty()) log_problem = log.problem();
  }
  if (explained || !results.HasAll()) plugin::AddLogTail(results.log_tail(), end.evidence);
  if (!results.HasAll() || results.headlines() > 0) {
    if (log_problem.empty() && results.headlines() > 0) log_problem = "its log was rotated away, or cut";
    if (!log_problem.empty()) end.evidence["log_problem"] = log_problem;
  }
  // If a job ended before it had a trainer, it did not start.
  const auto reason = end.evidence.find("reason");
  const auto exit_code = end.evidence.find("exit_code");
  const bool failed = exit_code != end.evidence.end() && exit_code->second != "0";
  if (reason != end.evidence.end() && reason->second == "lost" && failed && log_problem.empty() &&
      !results.AnyBegan()) {
    reason->second = "start";
    end.evidence["message"] = "of a trainer nothing was heard: " + end.evidence["message"];
  }
  if (!explained && !results.HasAll()) {
    results.TakeOthersAsBegun();
    end.evidence.try_emplace("message", log_problem.empty()
                                            ? "its log has no result of this point: it was rotated away, or cut"
                                            : "whether it has a result is not known: " + log_problem);
    end.evidence.try_emplace("hint",
                             "output: {claim: NAME, path: DIR} keeps results on a volume; see the points' log sizes, "
                             "and bundle fewer points");
  }
  live_.erase(record.key);
  Record ended = record;
  ended.ended = true;
  ended.evidence = end.evidence;
  ended.started_unix_s = end.started_unix_s;
  journal_.Write(std::move(ended));
  return end;
}

}  // namespace ridgeline::kubernetes
