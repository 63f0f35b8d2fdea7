// The signals by which a job is told to end, and what each of them means.
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

  // A point that can be continued is worth saving when the node is taken away; any other may as well be cancelled.
  void SetContinuable(bool continuable) { continuable_ = continuable; }

  int fd() const override { return fd_; }
  StopReason Reason() override;

 private:
  std::filesystem::path cancel_file_;
  int fd_ = -1;
  bool continuable_ = false;
  bool told_ = false;
  bool warned_ = false;
  bool terminated_ = false;
  bool interrupted_ = false;
};

}  // namespace ridgeline
