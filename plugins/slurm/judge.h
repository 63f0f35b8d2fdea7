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

// What else is known of a task that Slurm calls cancelled.
struct Around {
  bool array_was_refused = false;  // a node had the array's last task cancelled, and so the whole array
  bool may_be_requeued = false;    // by Slurm: then somebody may cancel a task that waits for its second node
};

// Whether Slurm cancelled a task that has, or had, a node, and no script's end was heard of. Slurm's queue never says
// who cancels a job, but whom a person ends has had no node yet, or a script that ends of it, by a signal or with a
// code. A node that cannot begin a job has it cancelled where it may not be requeued, and so it has one that the
// controller, restarted, had forgotten was begun. What this launcher was told to end is no such task.
//
// The last task of an array bears the array's own id. A node that has that one cancelled ends the whole array with it,
// scripts that run included.
bool IsUnasked(const Array& array, size_t task, const Row& row, const Around& around);

// Whether a task's script heard that it was cancelled. `log` as below.
bool WasTold(const std::optional<std::string>& log);

// A task that ended; `log` is the end of its log, nothing where there is none: its script never began.
plugin::JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log,
                            const Around& around);

}  // namespace ridgeline::slurm
