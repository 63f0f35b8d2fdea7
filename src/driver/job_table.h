// The run's jobs between their intents and their ends.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "driver/live_job.h"
#include "store/store.h"

namespace ridgeline {

// What it hands out points into it, and is good until the next Add or Forget.
class JobTable {
 public:
  bool empty() const { return jobs_.empty(); }
  int64_t size() const { return static_cast<int64_t>(jobs_.size()); }
  std::vector<LiveJob>::iterator begin() { return jobs_.begin(); }
  std::vector<LiveJob>::iterator end() { return jobs_.end(); }

  void Add(LiveJob job) { jobs_.push_back(std::move(job)); }
  void Forget(const std::vector<LiveJob*>& jobs);

  std::vector<LiveJob*> ToSubmit(int64_t now_ns);  // those whose time has come, kSubmitAtOnce at most
  std::vector<LiveJob*> Submitted();               // those the launcher has
  bool AllSubmitted() const;                       // those for which there was room
  std::set<std::string> PointIds() const;          // of all of them
  std::vector<JobRecord> Records() const;

 private:
  std::vector<LiveJob> jobs_;
};

}  // namespace ridgeline
