// What failures of the infrastructure tell together: which nodes to leave out, and when to stop handing over jobs.
// Pure: ends go in, decisions come out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collect/collect.h"

namespace ridgeline {

class FaultWatch {
 public:
  // give_up_after: as Launch has it.
  explicit FaultWatch(int64_t give_up_after) : give_up_after_(give_up_after) {}

  struct Finding {
    std::string note;       // for people
    std::string withdrawn;  // what jobs that have not begun are withdrawn for
  };

  // How a point of a job ended, and what that tells beyond it. A job counts once, as its points share its fate; being
  // told to leave is no failure. Of several nodes nobody knows which it was.
  std::vector<Finding> PointEnded(const std::string& job_key, const Collected& result);

  // Nodes on which two jobs failed, in the order in which that was seen.
  const std::vector<std::string>& avoid() const { return avoid_; }

  // What so many jobs in a row failed of, where that is reason enough to stop; else empty. Any end that is not the
  // infrastructure's begins a new row; a job that vanished is not of any.
  const std::string& given_up() const { return given_up_; }

 private:
  bool IsOneTooMany(const Collected& result);
  bool IsToBeAvoided(const std::string& node);

  int64_t give_up_after_;
  std::set<std::string> failed_jobs_;
  std::map<std::string, int64_t> failures_on_;  // by node
  std::vector<std::string> avoid_;
  std::string kind_;  // of the last failure
  int64_t alike_ = 0;
  std::string given_up_;
};

}  // namespace ridgeline
