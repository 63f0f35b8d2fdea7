// The signals by which a job is told to end, and what each of them means.
//
// A person who cancels a job leaves a file in its folder before it is told (ridgeline/job_dir.h), or presses Ctrl-C.
// Whatever else ends it takes the node away from it: an eviction, a drain, a preemption, a machine that goes down, a
// terminal that is gone. Where a scheduler only passes on what a person told it, it knows that, and says so.
#pragma once

#include <filesystem>

#include "node/watch.h"

namespace ridgeline {

// SIGTERM, SIGUSR1, SIGINT and SIGHUP, blocked and made something to poll. Once told, always told.
class StopSignals final : public StopWatcher {
 public:
  explicit StopSignals(std::filesystem::path cancel_file);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() override;

  int fd() const override { return fd_; }
  StopReason Reason() override;

 private:
  std::filesystem::path cancel_file_;
  int fd_ = -1;
  bool told_ = false;
  bool interrupted_ = false;  // by a person: Ctrl-C
};

}  // namespace ridgeline
