// Shows the state of jobs that no driver follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "launch/launcher.h"
#include "store/store.h"

namespace ridgeline::driver {

// Asks launchers with a queue of their own about jobs that wait there without a driver. Submits, collects and cancels
// nothing, and leaves the store unchanged, so the next driver gets the same answers.
class JobStatusReader {
 public:
  // Opens the launcher that has this job.
  using OpenLauncher = std::function<std::unique_ptr<launch::Launcher>(const store::JobRecord& job)>;

  // `clock` must outlive this object.
  JobStatusReader(std::filesystem::path db, Clock& clock, OpenLauncher open)
      : db_(std::move(db)), clock_(clock), open_(std::move(open)) {}

  // Brings these records up to date. Asks each launcher one question. If it was asked a moment ago, that answer still
  // holds. Holds the database's lock while it asks. If the lock is taken, the records stay as its holder wrote them.
  // Returns why launchers could not be asked, one line each.
  std::string Look(std::vector<store::JobRecord>& jobs);

 private:
  void Ask(const std::vector<store::JobRecord>& jobs);

  std::filesystem::path db_;
  Clock& clock_;
  OpenLauncher open_;
  std::map<std::string, launch::JobState> said_;  // by job key
  std::string not_asked_;
  int64_t next_ask_ns_ = 0;  // no question before this time
};

}  // namespace ridgeline::driver
