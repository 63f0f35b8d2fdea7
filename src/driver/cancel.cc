#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "collect/collect.h"
#include "driver/driver.h"
#include "driver/pace.h"
#include "driver/patience.h"
#include "run/job.h"

namespace ridgeline {
namespace {

// Whatever the job has put in its place: a pipe would make who opens it wait. Where it cannot be written, the signal
// alone tells the job.
void SayCancelled(const std::filesystem::path& job_dir) {
  try {
    WriteFile(CancelFile(job_dir), "");
  } catch (const Error&) {
    return;
  }
}

}  // namespace

int64_t CancelJobs(std::vector<JobRecord> jobs, Store& store, Launcher& launcher, Clock& clock,
                   const std::function<bool()>& give_up) {
  const auto refs = [&] {
    std::vector<JobRef> result;
    for (const JobRecord& job : jobs) result.push_back({job.key, job.native_id});
    return result;
  };
  if (jobs.empty()) return 0;
  for (const JobRecord& job : jobs) SayCancelled(job.job_dir);
  const int64_t start_ns = clock.MonotonicNs();
  PollPace pace(start_ns);
  bool told = false;
  // Nothing where the launcher does not answer.
  const auto ask = [&]() -> std::vector<JobState> {
    try {
      if (!told) launcher.Cancel(refs());
      told = true;
      return launcher.PollMany(refs());
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInfrastructure) throw;
      return {};
    }
  };
  for (;;) {
    if (const std::vector<JobState> states = ask(); !states.empty()) {
      std::vector<JobToCollect> ended;
      std::vector<JobRecord> left;
      for (size_t i = 0; i < jobs.size(); ++i) {
        if (states[i].phase == JobPhase::kEnded || states[i].phase == JobPhase::kMissing) {
          ended.push_back({std::move(jobs[i]), JobRecord::State::kCancelled, states[i].evidence});
        } else {
          left.push_back(std::move(jobs[i]));
        }
      }
      jobs = std::move(left);
      if (!ended.empty()) Collect(store, ended, clock.UnixNs());
    }
    const int64_t now_ns = clock.MonotonicNs();
    if (jobs.empty() || give_up() || now_ns - start_ns > kCancelPatienceNs) return static_cast<int64_t>(jobs.size());
    clock.SleepNs(pace.WaitNs(now_ns));
  }
}

}  // namespace ridgeline
