// What a store has measured, as comparisons and the gate take it: of each cell (a point with one setup, on machines of
// one fingerprint) the measurements, and of each of them its runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

class Store;

// Measurements that are left out: all of a campaign, or those of one cell of it.
struct LeftOutMeasurements {
  std::string campaign;
  std::string point_id;  // empty: all
  std::string setup;
};

struct MeasurementChoice {
  std::string campaign;        // of this one; of all that begin so, where a `*` is its end; empty: of any
  std::string commit;          // by builds of this commit, as the results say it, whole; empty: by any
  bool newest = false;         // only the newest of each point and setup
  int64_t before_unix_ns = 0;  // only what ended before; 0: whenever
  std::vector<LeftOutMeasurements> left_out;
  int64_t most = 0;  // of each cell only the latest that ended well, and as many that did not; 0: all
};

struct MeasuredRuns {
  std::string campaign;
  std::string commit;  // of its build; else that build's version; else its campaign
  std::string host;    // the node, as its scheduler calls it, else as itself; empty where neither says it
  int64_t ended_unix_ns = 0;
  std::string failure;                 // in words; empty where it went well
  int64_t failures = 0;                // of its campaign's attempts, where the last of them failed
  std::vector<double> log_step_times;  // natural logarithm of each run's median steady step, in nanoseconds
  int64_t warm_up_steps = 0;           // found beyond the sweep's, in the run that has the most
  double others_share = 0;             // of its cores' time, that others took; 0: none, or not taken
  double effective_steps = 0;     // in the run that has the fewest: independent steps that tell as much; 0: unknown
  int64_t device_peak_bytes = 0;  // the largest of its runs; 0: not taken
  int64_t rss_peak_bytes = 0;
  std::string device_peak_kind;  // what device_peak_bytes counts; empty: nobody says
  int64_t device_reserved_bytes = 0;
  std::string note;  // what there is to say beside its figures, such as "steps 4 of 103"
};

struct MeasuredCell {
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;                     // the fingerprint; empty where a failure says none
  std::vector<MeasuredRuns> measurements;  // the oldest first
};

// Peaks of two sides that count the same, and what that is: "allocated", "in use", "NVML", "the device", "reserved" or
// "the process". Nothing where both have none alike.
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

// In the order in which their points came into the store. What ended for want of infrastructure, or was cancelled, is
// no measurement. Throws Error(kInvalidInput) where step times in the store are none.
std::vector<MeasuredCell> ReadMeasurements(Store& store, const MeasurementChoice& choice);

}  // namespace ridgeline
