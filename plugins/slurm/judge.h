// What Slurm's record of a task means for its job. Pure: it asks nobody, and the session acts on what it says.
#pragma once

#include <cstddef>
#include <optional>
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

// Whether Slurm cancelled a task that had a node, and no script's end was heard of. Slurm's queue never says who
// cancels a job, but whom a person ends has no node yet, or a script that ends of it, by a signal or with a code. A
// node that cannot begin a job has it cancelled where it may not be requeued, and so it has one that the controller,
// restarted, had forgotten was begun. What this launcher was told to end is no such task.
bool IsUnasked(const Array& array, size_t task, const Row& row);

// A task that ended; `log` is the end of its log, nothing where there is none: its script never began.
plugin::JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log);

}  // namespace ridgeline::slurm
