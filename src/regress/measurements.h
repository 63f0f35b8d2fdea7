// The measurements of a store, as comparisons and the gate use them: for each cell (a point with one setup, on machines
// of one fingerprint) its measurements, and for each of those its runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::regress {

// Measurements that are left out: all of a campaign, or those of one cell of it.
struct LeftOutMeasurements {
  std::string campaign;
  std::string point_id;  // empty: all
  std::string setup;
};

struct MeasurementChoice {
  std::string campaign;        // only this campaign; with `*` at the end, all that begin so; empty: any
  std::string commit;          // only builds of this commit (its full name, as in the results); empty: any
  bool newest = false;         // only the newest of each point and setup
  int64_t before_unix_ns = 0;  // only what ended before this time; 0: any time
  std::vector<LeftOutMeasurements> left_out;
  int64_t most = 0;  // per cell the latest that succeeded, and as many that failed; 0: all
};

struct MeasuredRuns {
  std::string campaign;
  std::string commit;  // the build's commit; else its version; else the campaign
  std::string host;    // the node's name from its scheduler, else from itself; empty if neither is known
  int64_t ended_unix_ns = 0;
  std::string failure;                 // in words; empty if it succeeded
  int64_t failures = 0;                // failed attempts of its campaign, if the last one failed
  std::vector<double> log_step_times;  // natural logarithm of each run's median steady step, in nanoseconds
  int64_t warm_up_steps = 0;           // warm-up found beyond the sweep's, in the run with the most
  double others_share = 0;             // share of its cores' time that others took; 0: none, or not measured
  double effective_steps = 0;          // equivalent number of independent steps, in the run with the fewest; 0: unknown
  int64_t device_peak_bytes = 0;       // the largest of its runs; 0: not taken
  int64_t rss_peak_bytes = 0;
  std::string device_peak_kind;  // what device_peak_bytes counts; empty: unknown
  int64_t device_reserved_bytes = 0;
  std::string note;  // remarks beside its figures, such as "steps 4 of 103"
};

struct MeasuredCell {
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;                     // the fingerprint; empty if a failure names none
  std::vector<MeasuredRuns> measurements;  // the oldest first
};

// Peaks of two sides that count the same, and what that is: "allocated", "in use", "NVML", "the device", "reserved" or
// "the process". Nothing if they have no peaks of the same kind.
inline constexpr const char* kOfProcess = "the process";
struct LikePeaks {
  int64_t base = 0;
  int64_t head = 0;
  std::string of;
};
template <typename Side>
std::optional<LikePeaks> LikePeaksOf(const Side& base, const Side& head) {
  if (base.device_peak_bytes > 0 && head.device_peak_bytes > 0 && base.device_peak_kind == head.device_peak_kind) {
    const std::string& kind = base.device_peak_kind;
    return LikePeaks{base.device_peak_bytes, head.device_peak_bytes, kind.empty() ? "the device" : kind};
  }
  if (base.device_reserved_bytes > 0 && head.device_reserved_bytes > 0) {
    return LikePeaks{base.device_reserved_bytes, head.device_reserved_bytes, "reserved"};
  }
  if (base.rss_peak_bytes > 0 && head.rss_peak_bytes > 0) {
    return LikePeaks{base.rss_peak_bytes, head.rss_peak_bytes, kOfProcess};
  }
  return std::nullopt;
}

// In the order in which their points came into the store. Runs that ended for infrastructure reasons or were cancelled
// are no measurements. Throws Error(kInvalidInput) if step times in the store are invalid.
std::vector<MeasuredCell> ReadMeasurements(store::Store& store, const MeasurementChoice& choice);

}  // namespace ridgeline::regress
