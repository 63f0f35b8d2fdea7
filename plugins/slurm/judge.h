// What Slurm's record of a task means for its job. Pure: it asks nobody, and the session acts on what it says.
#pragma once

#include <cstddef>
#include <string>

#include "common/answers.h"
#include "slurm/journal.h"
#include "slurm/meaning.h"
#include "slurm/parse.h"

namespace ridgeline::slurm {

bool IsLive(const Row& row);

// As Slurm's commands name the task: "12_3", or "12" of a job that is no array.
std::string IdOf(const Array& array, size_t task);

// A task in the queue. `wait`: what it waits for (WaitOf), nullptr for its turn.
plugin::JobState JudgeQueued(const Row& row, const Wait* wait);

// A task that waits for what will not be, and has for long enough: it is to be cancelled, and this is its end.
plugin::JobState JudgeHopeless(const Array& array, size_t task, const Row& row, const Wait& wait);

// A task that ended; `log` is the end of its log, where it did not end well.
plugin::JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::string& log);

}  // namespace ridgeline::slurm
