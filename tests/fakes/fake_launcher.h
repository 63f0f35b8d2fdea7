// A launcher in this process, for tests of the code that uses launchers. The test says what each job does and when.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "launch/launcher.h"

namespace ridgeline {

class FakeLauncher final : public launch::Launcher {
 public:
  struct Entry {
    launch::LaunchJob job;
    launch::JobPhase phase = launch::JobPhase::kQueued;
    std::map<std::string, std::string> evidence;
    int starts = 0;  // how many times the job was really started; never more than once for a key
    int polls = 0;
    int64_t started_unix_ns = 0;
  };

  // The script. Every PollMany calls it for each job that exists, before it answers. It may write result files into
  // entry.job.job_dir and change entry.phase. The default ends a job at its first poll.
  std::function<void(Entry&)> on_poll = [](Entry& entry) { entry.phase = launch::JobPhase::kEnded; };
  // Is called by every Submit of a new key. If it throws Error, that job is refused.
  std::function<void(const launch::LaunchJob&)> on_submit = [](const launch::LaunchJob&) {};

  // Each job takes this long in every call about it, by this clock.
  int64_t job_takes_ns = 0;
  Clock* clock = nullptr;

  // Is called by every Cancel before anything else.
  std::function<void()> on_cancel = [] {};

  std::map<std::string, Entry> jobs;
  std::vector<std::string> cancelled;
  int64_t max_jobs = 0;       // as in LauncherStatus
  bool bulk = true;           // as in LauncherCapabilities
  bool bill = false;          // the same
  size_t most_a_call = 1000;  // submits no more in one call, and answers `later` for the others
  int64_t poll_pause_ns = 0;  // as in PollPauseNs
  int probes_refused = 0;     // for the moment
  bool not_now = false;       // on_submit refuses only for the moment
  int submit_calls = 0;
  int poll_calls = 0;
  int calls_about_jobs = 0;  // a call about two jobs counts twice

  const std::string& name() const override { return name_; }
  launch::LauncherCapabilities can() const override { return {max_jobs > 0, poll_pause_ns > 0, false, bulk, bill}; }
  launch::LauncherStatus Probe() override {
    if (probes_refused > 0)
      return --probes_refused, launch::LauncherStatus{false, "too many requests", "", 0, /*retry=*/true};
    return {true, "", "a launcher in this process", max_jobs};
  }
  int64_t PollPauseNs() const override { return poll_pause_ns; }
  launch::Rendered Render(std::span<const launch::LaunchJob>) override { return {}; }

  std::vector<launch::Submission> Submit(std::span<const launch::LaunchJob> requested) override {
    ++submit_calls;
    std::vector<launch::Submission> answers;
    for (const launch::LaunchJob& job : requested) {
      if (answers.size() >= most_a_call) {
        answers.push_back({.key = job.key, .native_id = "", .error = {}, .later = true});
        continue;
      }
      TakeTime();
      launch::Submission answer{job.key, "fake-" + job.key, {}, false};
      if (!jobs.contains(job.key)) {
        try {
          on_submit(job);
          jobs[job.key] = Entry{job, launch::JobPhase::kQueued, {}, 1, 0};
        } catch (const Error& e) {
          answer = {job.key, "", e, not_now};
        }
      }
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  std::vector<launch::JobState> PollMany(std::span<const launch::JobRef> requested) override {
    ++poll_calls;
    std::vector<launch::JobState> answers;
    for (const launch::JobRef& ref : requested) {
      TakeTime();
      const auto it = jobs.find(ref.key);
      if (it == jobs.end()) {
        answers.push_back({ref.key, ref.native_id, launch::JobPhase::kMissing, {}, 0});
        continue;
      }
      Entry& entry = it->second;
      ++entry.polls;
      if (entry.phase != launch::JobPhase::kEnded) on_poll(entry);
      answers.push_back({ref.key, "fake-" + ref.key, entry.phase, entry.evidence, entry.started_unix_ns});
    }
    return answers;
  }

  std::vector<bool> Cancel(std::span<const launch::JobRef> requested) override {
    on_cancel();
    std::vector<bool> answers;
    for (const launch::JobRef& ref : requested) {
      TakeTime();
      const auto it = jobs.find(ref.key);
      const bool there = it != jobs.end() && it->second.phase != launch::JobPhase::kEnded;
      if (there) {
        it->second.phase = launch::JobPhase::kEnded;
        it->second.evidence["end"] = "cancelled";
        cancelled.push_back(ref.key);
      }
      answers.push_back(there);
    }
    return answers;
  }

 private:
  void TakeTime() {
    ++calls_about_jobs;
    if (job_takes_ns > 0) clock->SleepNs(job_takes_ns);
  }

  std::string name_ = "fake";
};

}  // namespace ridgeline
