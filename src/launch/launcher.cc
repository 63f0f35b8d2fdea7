#include "launch/launcher.h"

#include <algorithm>
#include <string_view>

namespace ridgeline::launch {
namespace {

// Time to start a point, and to ask it to end at its limit before it is killed.
constexpr int64_t kMarginPerPointS = 30;
constexpr int64_t kMarginPerJobS = 60;

}  // namespace

LaunchJob ToLaunchJob(const Job& job, const std::filesystem::path& program) {
  LaunchJob launch;
  launch.key = job.key;
  launch.sweep = job.sweep;
  launch.job_file = JobFile(job);
  launch.job_dir = job.job_dir;
  launch.nodes = job.nodes;
  launch.cpus = job.cpus;
  launch.memory_bytes = job.memory_limit_bytes;
  launch.own_trainer = IsOurTrainer(job);
  launch.exec = {program.string(), "exec", launch.job_file.string()};
  launch.config = job.config;
  const bool continuable = std::any_of(job.points.begin(), job.points.end(),
                                       [](const JobPoint& point) { return !point.spec.checkpoint_dir.empty(); });
  if (continuable) launch.save_time_s = job.save_time_s;
  int64_t total_s = kMarginPerJobS;
  for (const JobPoint& point : job.points) {
    if (point.time_limit_s == 0) return launch;
    total_s += MeetLimitS(job, point) + point.time_limit_s + kMarginPerPointS;
  }
  launch.time_limit_s = total_s;
  return launch;
}

std::string_view PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kQueued:
      return "queued";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kEnded:
      return "ended";
    case JobPhase::kMissing:
      return "missing";
  }
  return "missing";
}

}  // namespace ridgeline::launch
