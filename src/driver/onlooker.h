// How jobs are that no driver follows, for who looks at them.
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

namespace ridgeline {

// Asks the launchers that have a queue of their own, where jobs wait that nobody follows. Submits, collects and cancels
// nothing, and leaves the store as it is: the next driver hears the same.
class Onlooker {
 public:
  // The launcher that has this job.
  using OpenLauncher = std::function<std::unique_ptr<Launcher>(const JobRecord& job)>;

  // `clock` must outlive it.
  Onlooker(std::filesystem::path db, Clock& clock, OpenLauncher open)
      : db_(std::move(db)), clock_(clock), open_(std::move(open)) {}

  // Brings what launchers have of these jobs up to date: with one question to each, unless it was asked a moment ago
  // and said what there is to say then. The database's lock is held while they are asked; where somebody else has it,
  // the records say what he knows. Returns why a launcher could not be asked, a line each.
  std::string Look(std::vector<JobRecord>& jobs);

 private:
  void Ask(const std::vector<JobRecord>& jobs);

  std::filesystem::path db_;
  Clock& clock_;
  OpenLauncher open_;
  std::map<std::string, JobState> said_;  // by the jobs' keys
  std::string not_asked_;
  int64_t next_ask_ns_ = 0;  // not before
};

}  // namespace ridgeline
