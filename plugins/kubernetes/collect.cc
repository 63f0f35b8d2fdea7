#include "kubernetes/collect.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::JobState;
using plugin::Phase;

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
  return live_
      .emplace(record.key, Live{plugin::JobOutput(record.job_dir, record.points), {}, plugin::LastOutput(clock_)})
      .first->second;
}

void Collector::TakeLogs(const Pods& pods, Live& live) {
  for (const auto& [key, pod] : pods) {
    auto log = live.logs.find(key);
    if (log == live.logs.end()) {
      if (!pod.HasBegun() || pod.phase == kDeletedPhase) continue;
      const std::string path = fmt::format("{}/{}/log?container={}&follow=true", cluster_.CorePath("pods"), pod.name,
                                           cluster_.kind().container);
      log = live.logs.emplace(key, PodLog(cluster_, clock_, path)).first;
    }
    log->second.Pump(pod, live.output);
  }
  // Reads the logs of pods that are not observed any more, because their Job was suspended.
  PodView gone;
  gone.phase = kDeletedPhase;
  for (auto& [key, log] : live.logs) {
    if (pods.contains(key)) continue;
    gone.name = key.substr(0, key.find('/'));
    log.Pump(gone, live.output);
  }
}

// The Job's end may be known before its pods' ends, and these before their last output.
bool Collector::MayHaveMoreToSay(const Observation& seen, Live& live) {
  const bool has_come = !seen.pods.empty() && std::all_of(seen.pods.begin(), seen.pods.end(), [&](const auto& pod) {
    return HasEnded(pod.second, seen.unix_s);
  }) && std::all_of(live.logs.begin(), live.logs.end(), [](const auto& log) { return log.second.done(); });
  return live.last_output.MayCome(has_come);
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
  plugin::JobOutput& output = live.output;
  if (!output_path_.empty()) output.CopyMissing(std::filesystem::path(output_path_) / "jobs" / record.key);
  for (const auto& [name, pod] : seen.pods) output.TakeLastWords(pod.last_words);
  std::string log_problem;
  for (const auto& [name, log] : live.logs) {
    if (log_problem.empty()) log_problem = log.problem();
  }
  output.CompleteEnd(
      log_problem,
      "output: {claim: NAME, path: DIR} keeps results on a volume; see the points' log sizes, and bundle "
      "fewer points",
      end.evidence);
  live_.erase(record.key);
  Record ended = record;
  ended.ended = true;
  ended.evidence = end.evidence;
  ended.started_unix_s = end.started_unix_s;
  journal_.Write(std::move(ended));
  return end;
}

}  // namespace ridgeline::kubernetes
