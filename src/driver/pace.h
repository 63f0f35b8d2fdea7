// How often the driver asks, and how many points it hands over at once: enough that the harness never costs more than
// a small share of what it measures.
#pragma once

#include <cstdint>

namespace ridgeline {

// Waiting between two questions: a sixteenth of the time since anything last happened, from 2 ms to 250 ms.
class PollPace {
 public:
  explicit PollPace(int64_t now_ns) : changed_ns_(now_ns) {}
  void Changed(int64_t now_ns) { changed_ns_ = now_ns; }
  int64_t WaitNs(int64_t now_ns) const;

 private:
  int64_t changed_ns_;
};

// Points a job. One, so that each is its own job, until points prove so short that submitting and collecting them one
// by one would be much of the time: then as many as take about a second, at most doubling from job to job. A job runs
// its points one after another, each in processes of its own, so what they measure does not change.
class BundleSize {
 public:
  int64_t points() const { return points_; }
  void JobEnded(int64_t points, int64_t duration_ns);

 private:
  int64_t points_ = 1;
};

}  // namespace ridgeline
