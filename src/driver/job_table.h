// The run's jobs between their intents and their ends.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "driver/live_job.h"
#include "store/store.h"

namespace ridgeline::driver {

// Pointers that it returns are valid until the next Add or Forget.
class JobTable {
 public:
  bool empty() const { return jobs_.empty(); }
  int64_t size() const { return static_cast<int64_t>(jobs_.size()); }
  std::vector<LiveJob>::iterator begin() { return jobs_.begin(); }
  std::vector<LiveJob>::iterator end() { return jobs_.end(); }

  void Add(LiveJob job) { jobs_.push_back(std::move(job)); }
  void Forget(const std::vector<LiveJob*>& jobs);

  std::vector<LiveJob*> ToSubmit(int64_t now_ns, size_t most);  // at most so many jobs that are due
  std::vector<LiveJob*> Submitted();                            // jobs that the launcher has
  bool AllSubmitted() const;                                    // all that there was room for
  std::set<std::string> PointIds() const;                       // the points of all jobs
  std::vector<store::JobRecord> Records() const;

 private:
  std::vector<LiveJob> jobs_;
};

}  // namespace ridgeline::driver
