// The signals that tell a job to end, and their meanings.
//
// A person who cancels a job leaves a file in its folder before the job is told (ridgeline/job_dir.h), or presses
// Ctrl-C. All other signals mean that the node is taken away: by an eviction, a drain, a preemption, a shutdown, or a
// closed terminal. A scheduler that only passes on a person's request knows it, and says so.
#pragma once

#include <filesystem>

#include "node/watch.h"

namespace ridgeline::node {

// Blocks SIGTERM, SIGUSR1, SIGINT and SIGHUP, and makes them pollable. A request to stop stays.
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

}  // namespace ridgeline::node
