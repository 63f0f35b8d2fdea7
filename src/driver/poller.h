// Asks the launcher how the jobs are, as often as it wishes, and says what there is to collect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "driver/driver.h"
#include "driver/job_table.h"
#include "driver/reluctance.h"

namespace ridgeline {

class Poller {
 public:
  struct Outcome {
    std::vector<JobToCollect> to_collect;
    std::vector<LiveJob*> looked_at;  // whose these are
    std::vector<LiveJob*> ended;      // of them; whoever collects these finds out whether they lack lines (JobResults)
  };

  // What it refers to must outlive it.
  Poller(const DriverParts& parts, Reluctance& reluctance) : parts_(parts), reluctance_(reluctance) {}

  // Asks one question about all jobs the launcher has, and brings them up to date here and in the store. Nothing where
  // it is not time yet. Throws where the launcher has not answered for too long.
  std::optional<Outcome> Poll(JobTable& jobs);

  // How many jobs have ended whose logs could not be read, or not whole.
  int64_t unread_logs() const { return static_cast<int64_t>(unread_logs_.size()); }

  // To be called when what Poll gave is collected: that time counts where a launcher wants to be left alone.
  void Pause();

 private:
  std::vector<JobState> Ask(const std::vector<LiveJob*>& jobs);
  static std::map<std::string, std::string> EvidenceOf(const LiveJob& job, const JobState& answer);
  std::optional<JobRecord::State> NewState(LiveJob& job, const JobState& answer);
  static bool EndedWell(const JobState& answer);
  bool HangsThoughDone(LiveJob& job);
  bool IsBrokenGang(LiveJob& job);
  bool IsTimeToCollect(const LiveJob& job) const;
  bool TellToEnd(const std::vector<LiveJob*>& jobs, const std::string& why);
  void EndBrokenGangs(const std::vector<LiveJob*>& broken);
  void NoteNoNode(LiveJob& job, const JobState& answer) const;
  void NoteWaiting(const JobState& answer);
  void NoteLogProblem(const LiveJob& job, const JobState& answer);
  void NotePending(LiveJob& job, const JobState& answer);
  int64_t Now() const { return parts_.clock.MonotonicNs(); }

  const DriverParts& parts_;
  Reluctance& reluctance_;
  int64_t begin_ns_ = 0;     // of the last question
  int64_t next_ask_ns_ = 0;  // not before
  int failed_questions_ = 0;
  std::set<std::string> noted_waits_;
  bool noted_log_problem_ = false;
  std::set<std::string> unread_logs_;  // keys of jobs
};

}  // namespace ridgeline
