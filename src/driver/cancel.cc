#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "collect/collect.h"
#include "driver/batch.h"
#include "driver/cost.h"
#include "driver/driver.h"
#include "driver/pace.h"
#include "driver/patience.h"
#include "run/job.h"

namespace ridgeline::driver {
namespace {

// The job may have put anything in this file's place, and opening a pipe would block. If the file cannot be written,
// the signal alone tells the job to end.
void SayCancelled(const std::filesystem::path& job_dir) {
  try {
    WriteFile(CancelFile(job_dir), "");
  } catch (const Error&) {
    return;
  }
}

}  // namespace

Cancelled CancelJobs(std::vector<store::JobRecord> jobs, store::Store& store, launch::Launcher& launcher, Clock& clock,
                     const sweep::SweepPrice& price, const std::map<std::string, double>& predicted_usd,
                     const std::function<bool()>& give_up) {
  const auto refs = [&] {
    std::vector<launch::JobRef> result;
    for (const store::JobRecord& job : jobs) result.push_back({job.key, job.native_id});
    return result;
  };
  if (jobs.empty()) return {};
  for (const store::JobRecord& job : jobs) SayCancelled(job.job_dir);
  const int64_t start_ns = clock.MonotonicNs();
  PollPace pace(start_ns);
  bool told = false;
  std::string untold;
  std::vector<collect::JobToCollect> ended;
  std::optional<Error>
      unread;  // why these are not collected yet; a file that cannot be read now may be readable in the next turn
  const auto collect = [&] {
    unread.reset();
    try {
      if (!ended.empty()) collect::Collect(store, ended, clock.UnixNs());
      ended.clear();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInfrastructure) throw;
      unread = e;
    }
  };
  BatchSize cancelled_at_once(launcher.can().bulk);
  BatchSize asked_at_once(launcher.can().bulk);
  // Returns nothing if the launcher does not answer, or if it is given up.
  const auto ask = [&]() -> std::vector<launch::JobState> {
    if (jobs.empty()) return {};
    try {
      const std::vector<launch::JobRef> asked = refs();
      if (!told) {
        told = AskInBatches<bool, launch::JobRef>(
                   cancelled_at_once, clock, asked,
                   [&](std::span<const launch::JobRef> batch) { return launcher.Cancel(batch); }, give_up)
                   .has_value();
      }
      if (!told) return {};
      untold.clear();
      return AskInBatches<launch::JobState, launch::JobRef>(
                 asked_at_once, clock, asked,
                 [&](std::span<const launch::JobRef> batch) { return launcher.PollMany(batch); }, give_up)
          .value_or(std::vector<launch::JobState>());
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInfrastructure) throw;
      if (!told) untold = PrintableLine(e.message());
      return {};
    }
  };
  for (;;) {
    if (const std::vector<launch::JobState> states = ask(); !states.empty()) {
      std::vector<store::JobRecord> left;
      for (size_t i = 0; i < jobs.size(); ++i) {
        if (states[i].phase == launch::JobPhase::kEnded || states[i].phase == launch::JobPhase::kMissing) {
          ended.push_back({std::move(jobs[i]), store::JobRecord::State::kCancelled, states[i].evidence});
          AddCost(price, predicted_usd, ended.back());
        } else {
          left.push_back(std::move(jobs[i]));
        }
      }
      jobs = std::move(left);
    }
    collect();
    const int64_t now_ns = clock.MonotonicNs();
    const bool is_done = jobs.empty() && ended.empty();
    if (is_done || give_up() || now_ns - start_ns > kCancelPatienceNs) {
      if (unread) throw Error(*unread);
      return {std::ssize(jobs), untold};
    }
    clock.SleepNs(pace.WaitNs(now_ns));
  }
}

}  // namespace ridgeline::driver
