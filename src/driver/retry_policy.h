// Whether and when something is tried again: a point that ended badly, a job that was refused, a launcher that does not
// answer. It does nothing itself: ends and times go in, decisions come out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "launch/launcher.h"
#include "ridgeline/run.h"

namespace ridgeline {

// How long to wait after so many tries that failed.
int64_t TryAgainNs(int tries);

// Whether a job is submitted again that was refused so, after so many tries. Where nothing is wrong with it, always.
// REQUIRES: refusal.error.
bool IsSubmittedAgain(const Submission& refusal, int tries);

// Points that this run runs again after a bad end, as often as the sweep says.
class PointRetries {
 public:
  // `limits`: how often for which reason (Launch::retries).
  explicit PointRetries(const std::map<InfrastructureReason, int64_t>& limits) : limits_(limits) {}

  // Whether a point that ended so is run again, and how long to wait before; if so, that is counted. What failed needs
  // time to be mended, ever more from try to try. A point that was told to leave may come back at once. One that never
  // began, as its job ended before its turn, is owed a turn. Another of its job had one, so this comes to an end.
  std::optional<int64_t> RunAgainAfterNs(const std::string& point_id, const RunEnd& end, bool began);

 private:
  const std::map<InfrastructureReason, int64_t>& limits_;
  std::unordered_map<std::string, std::map<InfrastructureReason, int64_t>> retries_;
};

// A launcher that says "not now", or nothing: for how long that is borne.
class LauncherPatience {
 public:
  explicit LauncherPatience(int64_t limit_ns) : limit_ns_(limit_ns) {}

  void Answered() { since_ns_ = 0; }

  // It did not answer. Returns whether that has gone on for too long.
  bool NotAnswered(int64_t now_ns);

 private:
  int64_t limit_ns_;
  int64_t since_ns_ = 0;  // 0: it answers
};

}  // namespace ridgeline
