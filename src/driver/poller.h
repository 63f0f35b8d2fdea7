// Asks the launcher about the jobs, as often as it wishes, and says what there is to collect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "driver/batch.h"
#include "driver/driver.h"
#include "driver/job_table.h"
#include "driver/launcher_retries.h"

namespace ridgeline::driver {

class Poller {
 public:
  struct Outcome {
    std::vector<collect::JobToCollect> to_collect;
    std::vector<LiveJob*> looked_at;  // the jobs of `to_collect`, in its order
    // Ended jobs among these; the collector finds out whether they lack lines (JobResults).
    std::vector<LiveJob*> ended;
  };

  // The arguments must outlive this object.
  Poller(const DriverParts& parts, LauncherRetries& retries)
      : parts_(parts), retries_(retries), batch_(parts.launcher.can().bulk) {}

  // Asks about all jobs that the launcher has, and brings them up to date here and in the store. Returns nothing if it
  // is not time yet, and no jobs if the run is interrupted meanwhile. Throws if the launcher has not answered for too
  // long.
  std::optional<Outcome> Poll(JobTable& jobs);

  // The number of ended jobs whose logs could not be read, or not whole.
  std::string UnreadLogs() const;

  // Must be called when the outcome of Poll is collected. A launcher that wants to be left alone is left alone from
  // then.
  void Pause();

 private:
  std::vector<launch::JobState> Ask(const std::vector<LiveJob*>& jobs);
  static std::map<std::string, std::string> EvidenceOf(const LiveJob& job, const launch::JobState& answer);
  std::optional<store::JobRecord::State> NewState(LiveJob& job, const launch::JobState& answer);
  static bool EndedWell(const launch::JobState& answer);
  bool HangsThoughDone(LiveJob& job);
  bool IsBrokenGang(LiveJob& job);
  int64_t AwaitingSinceNs(LiveJob& job);
  bool IsTimeToCollect(const LiveJob& job) const;
  bool TellToEnd(const std::vector<LiveJob*>& jobs, const std::string& why);
  void EndBrokenGangs(const std::vector<LiveJob*>& broken);
  void NoteNoNode(LiveJob& job, const launch::JobState& answer) const;
  void NoteWaiting(const launch::JobState& answer);
  void NoteLogProblem(const LiveJob& job, const launch::JobState& answer);
  void NotePending(LiveJob& job, const launch::JobState& answer);
  int64_t Now() const { return parts_.clock.MonotonicNs(); }

  const DriverParts& parts_;
  LauncherRetries& retries_;
  BatchSize batch_;
  int64_t next_ask_ns_ = 0;  // no question before this time
  int failed_questions_ = 0;
  std::set<std::string> noted_waits_;
  bool noted_log_problem_ = false;
  std::set<std::string> unread_logs_;  // job keys
};

}  // namespace ridgeline::driver
