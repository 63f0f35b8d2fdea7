// What Slurm's record of a task means for its job. Pure: contacts nobody. The session acts on it.
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

// The task's name in Slurm's commands: "12_3", or "12" for a job that is no array.
std::string IdOf(const Array& array, size_t task);

// Judges a task in the queue. `wait`: what it waits for (WaitOf); nullptr if just for its turn.
plugin::JobState JudgeQueued(const Row& row, const Wait* wait);

// Judges a task that has waited long enough for something that will not come. It is to be cancelled, and this is its
// end.
plugin::JobState JudgeHopeless(const Array& array, size_t task, const Row& row, const Wait& wait);

// What else is known about a task that Slurm calls cancelled.
struct Around {
  bool array_was_refused = false;  // a node had the array's last task cancelled, and so the whole array
  bool may_be_requeued = false;    // by Slurm: then somebody may cancel a task that waits for its second node
};

// Returns whether Slurm cancelled a task that has, or had, a node, without an end of its script. Slurm's queue never
// says who cancelled a job. But a job that a person cancels has no node yet, or its script ends, by a signal or with an
// exit code. Slurm cancels a job that may not be requeued if its node cannot begin it, or if a restarted controller had
// forgotten that it had begun. Returns false for tasks that this launcher was told to end.
//
// The last task of an array has the array's own id. If a node has that task cancelled, the whole array ends with it,
// including scripts that run.
bool IsUnasked(const Array& array, size_t task, const Row& row, const Around& around);

// Returns whether a task's script was told that it was cancelled. `log` as below.
bool WasTold(const std::optional<std::string>& log);

// Judges a task that has ended. `log` is the end of its log; nothing if there is none, which means that its script
// never began.
plugin::JobState JudgeEnded(const Array& array, size_t task, const Row& row, const std::optional<std::string>& log,
                            const Around& around);

}  // namespace ridgeline::slurm
