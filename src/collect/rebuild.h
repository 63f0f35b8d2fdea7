// A database made again from what a run left in its output folder: the folders of its jobs, and the texts of its
// sweeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Keeps the sweep's text in `output_dir`, where RebuildFrom finds it; in place of an earlier one of that name.
void KeepSweep(const std::filesystem::path& output_dir, const Sweep& sweep);

struct Rebuilt {
  std::vector<std::string> sweeps;    // whose jobs lie in the folder
  int64_t jobs = 0;                   // that were not known
  int64_t results = 0;                // the same
  int64_t live = 0;                   // of those jobs, that may still run: the next run asks their launcher
  std::vector<std::string> problems;  // what could not be made again as it was, and why
};

// Takes every job of `output_dir`/jobs that the store does not know, in the order in which they were made, with its
// sweep, its points, what it is measured as and its results; of jobs that live, and of those that ended without a
// result of a point, what results came since. A job some of whose points have no result may still run, and becomes an
// intent: the next run hands it to its launcher under its key, which finds it or starts it again, and a node measures
// no point of a job twice. It is `lost`, and its points are too, where that cannot be: it names no launcher, it was
// told to end, a later job has a point of it, or its sweep has none of what is left. `campaign` is for jobs that do not
// say theirs, as those of earlier versions. All in one transaction; doing it again changes nothing. Throws as Collect
// does.
Rebuilt RebuildFrom(Store& store, const std::filesystem::path& output_dir, const std::string& campaign,
                    int64_t now_unix_ns);

}  // namespace ridgeline
