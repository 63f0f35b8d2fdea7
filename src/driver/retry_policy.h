// Whether and when to try again: a point that ended badly, a job that was refused, a launcher that does not answer.
// Pure: ends and times go in, decisions come out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "launch/launcher.h"
#include "ridgeline/run.h"

namespace ridgeline::driver {

// How long to wait after `tries` failed tries.
int64_t TryAgainNs(int tries);

// Returns whether to submit a job again after this refusal and `tries` tries. Always if nothing is wrong with the job.
// REQUIRES: refusal.error.
bool IsSubmittedAgain(const launch::Submission& refusal, int tries);

// The points that this run repeats after a bad end, as often as the sweep says.
class PointRetries {
 public:
  // `limits`: how often for which reason (Launch::retries).
  explicit PointRetries(const std::map<InfrastructureReason, int64_t>& limits) : limits_(limits) {}

  // Returns how long to wait before a point that ended this way is run again, and counts that; nothing if it is not run
  // again. Repairs take time, so the wait grows with each try. A point that was told to leave may come back at once. A
  // point that never began, because its job ended first, is run again without counting a retry. Another point of that
  // job did begin, so this comes to an end.
  std::optional<int64_t> RunAgainAfterNs(const std::string& point_id, const RunEnd& end, bool began);

 private:
  const std::map<InfrastructureReason, int64_t>& limits_;
  std::unordered_map<std::string, std::map<InfrastructureReason, int64_t>> retries_;
};

// How long to put up with a launcher that says "not now" or does not answer.
class LauncherPatience {
 public:
  explicit LauncherPatience(int64_t limit_ns) : limit_ns_(limit_ns) {}

  void Answered() { since_ns_ = 0; }

  // The launcher did not answer. Returns whether that has gone on for too long.
  bool NotAnswered(int64_t now_ns);

 private:
  int64_t limit_ns_;
  int64_t since_ns_ = 0;  // 0: it answers
};

}  // namespace ridgeline::driver
