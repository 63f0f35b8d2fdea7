// What runs now, for readers that only look: each sweep's counts, its jobs, the steps of its running points, the time
// left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "driver/lock.h"
#include "driver/progress.h"
#include "store/store.h"

namespace ridgeline::metrics {

struct RunningPoint {
  std::string point_id;
  std::string job_key;
  // Nothing if its trainer has not reported any yet, or its job is elsewhere.
  std::optional<driver::PointProgress> progress;
};

// A sweep at one moment.
struct SweepNow {
  store::SweepProgress progress;
  int64_t running_jobs = 0;
  int64_t queued_jobs = 0;            // submitted, or about to be, and not started
  int64_t queued_since_unix_ns = 0;   // when the first of these was submitted; 0: none was
  std::string queued_for;             // why that one waits, as far as its scheduler says
  std::vector<RunningPoint> running;  // of running jobs, in order; at most kMostRunning
  int64_t running_points = 0;         // all of them
  int64_t left_ns = 0;                // estimated; 0: not known
  bool is_live() const { return running_jobs + queued_jobs > 0; }
};

struct StoreNow {
  static constexpr size_t kMostRunning = 64;

  int64_t unix_ns = 0;
  std::optional<driver::DriverIdentity> driver;  // at work on the database
  std::vector<SweepNow> sweeps;                  // newest first
};

// `db` is the store's file. Reads the store and the jobs' folders, and asks no launcher.
StoreNow LookNow(store::Store& store, const std::filesystem::path& db, const Clock& clock);

}  // namespace ridgeline::metrics
