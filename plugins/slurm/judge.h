// What Slurm's record of a task means for its job. Pure: it asks nobody, and the session acts on what it says.
#pragma once

#include <cstddef>
#include <string>

#include "common/answers.h"
#include "slurm/journal.h"
#include "slurm/parse.h"

namespace ridgeline::slurm {

bool IsLive(const Row& row);

// As Slurm's commands name the task: "12_3", or "12" of a job that is no array.
std::string IdOf(const Array& array, size_t task);

// A task in the queue. It has ended where it waits for what will never be; then it is to be cancelled.
plugin::JobState JudgeQueued(const Array& array, size_t task, const Row& row);

// A task that ended; `log` is the end of its log, where it did not end well.
plugin::JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::string& log);

}  // namespace ridgeline::slurm
