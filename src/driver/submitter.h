// Hands jobs that are intents to the launcher, until it has taken or refused them.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "collect/collect.h"
#include "driver/driver.h"
#include "driver/fault_watch.h"
#include "driver/job_table.h"
#include "driver/reluctance.h"

namespace ridgeline {

class Submitter {
 public:
  struct Outcome {
    bool asked = false;              // anything was handed over
    std::vector<LiveJob*> refused;   // for good: they are lost, and the table's still
    std::vector<JobToCollect> ends;  // of the refused ones
  };

  // `program` is the `ridgeline` that runs a job, `faults` know the nodes to leave out. What it refers to must outlive
  // it.
  Submitter(const DriverParts& parts, Reluctance& reluctance, const FaultWatch& faults, std::filesystem::path program)
      : parts_(parts), reluctance_(reluctance), faults_(faults), program_(std::move(program)) {}

  // Hands over what is due, and keeps in the store what was taken. Throws where the launcher has said "not now" for too
  // long.
  Outcome Submit(JobTable& jobs);

  // To be called when the refused ones are collected. Throws where nothing more is to be hoped of the launcher.
  void ThrowIfDown() const;

 private:
  std::vector<Submission> Ask(const std::vector<LiveJob*>& due);
  void Taken(LiveJob& job, const Submission& answer, int64_t asked_unix_ns);

  const DriverParts& parts_;
  Reluctance& reluctance_;
  const FaultWatch& faults_;
  std::filesystem::path program_;
  std::optional<Error> last_refusal_;
  int refused_in_a_row_ = 0;
};

}  // namespace ridgeline
