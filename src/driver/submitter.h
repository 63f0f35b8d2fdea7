// Submits intents to the launcher until it has taken or refused them.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "collect/collect.h"
#include "driver/batch.h"
#include "driver/driver.h"
#include "driver/fault_watch.h"
#include "driver/job_table.h"
#include "driver/launcher_retries.h"

namespace ridgeline::driver {

class Submitter {
 public:
  struct Outcome {
    bool asked = false;                       // the launcher took or refused something
    std::vector<LiveJob*> refused;            // refused for good: these jobs are lost, and still in the table
    std::vector<collect::JobToCollect> ends;  // of the refused jobs
  };

  // `program` is the `ridgeline` that runs a job. `faults` knows the nodes to avoid. The references must outlive this
  // object.
  Submitter(const DriverParts& parts, LauncherRetries& retries, const FaultWatch& faults, std::filesystem::path program)
      : parts_(parts),
        retries_(retries),
        faults_(faults),
        program_(std::move(program)),
        batch_(parts.launcher.can().bulk) {}

  // Submits a batch of the jobs that are due, and records in the store which were taken. Throws if the launcher has
  // said "not now" for too long.
  Outcome Submit(JobTable& jobs);

  // Must be called when the refused jobs are collected. Throws if the launcher counts as down.
  void ThrowIfDown() const;

 private:
  std::vector<launch::Submission> Ask(const std::vector<LiveJob*>& due);
  void Taken(LiveJob& job, const launch::Submission& answer, int64_t asked_unix_ns);

  const DriverParts& parts_;
  LauncherRetries& retries_;
  const FaultWatch& faults_;
  std::filesystem::path program_;
  BatchSize batch_;
  std::optional<Error> last_refusal_;
  int refused_in_a_row_ = 0;
};

}  // namespace ridgeline::driver
