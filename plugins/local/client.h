// Jobs as processes of this machine.
//
// A job is a folder state_dir/jobs/KEY:
//   lock      held by the keeper and by `exec` while either lives; the job is alive exactly while it is held
//   request   the job as submitted; without `started` it waits for a slot
//   started   the process that runs it
//   exit      how it ended, written by the keeper; if there is `started`, no `exit` and a free lock, it was killed
//   cancel    it was told to end
//   log.txt   what `exec` printed
// A slot is a lock state_dir/slots/N, held like a job's. So the files tell the truth whoever is killed at any moment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"
#include "local/lock.h"
#include "local/parse.h"

namespace ridgeline::local {

class Client {
 public:
  // `slot_cores`: the cores of each slot. `keeper`: the program that starts a job and stays with it.
  Client(std::filesystem::path state_dir, std::vector<std::vector<int>> slot_cores, std::filesystem::path keeper);

  // Finds a job that is alive, waiting or done. Starts any other, or lets it wait. Throws Failure.
  void Submit(const plugin::Json& job);
  // Starts the job if it waits and a slot is free.
  plugin::JobState Poll(const std::string& key);
  // Sends SIGTERM to the job, or removes it from the queue. Returns false if there is nothing to cancel.
  bool Cancel(const std::string& key);

 private:
  std::filesystem::path JobFolder(const std::string& key) const;
  // Starts nothing if all slots are taken; then the job waits. REQUIRES: `job_lock` is the job's.
  void StartIfSlotIsFree(const std::filesystem::path& folder, const plugin::Json& job, const Lock& job_lock);
  void Start(const std::filesystem::path& folder, const plugin::Json& job, const Lock& job_lock, const Lock& slot_lock,
             const std::vector<int>& cores);

  std::filesystem::path state_dir_;
  std::vector<std::vector<int>> slot_cores_;
  std::filesystem::path keeper_;
};

// The cores that this process may use.
std::vector<int> AllowedCores();

}  // namespace ridgeline::local
