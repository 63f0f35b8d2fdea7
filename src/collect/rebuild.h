// Rebuilds a database from what a run left in its output folder: the folders of its jobs, and the texts of its sweeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::collect {

// Keeps the sweep's text in `output_dir` for RebuildFrom. Replaces an earlier one of that name.
void KeepSweep(const std::filesystem::path& output_dir, const sweep::Sweep& sweep);

struct Rebuilt {
  std::vector<std::string> sweeps;    // the sweeps whose jobs are in the folder
  int64_t jobs = 0;                   // jobs that were not known
  int64_t results = 0;                // results that were not known
  int64_t live = 0;                   // those of the jobs that may still run: the next run asks their launcher
  std::vector<std::string> problems;  // what could not be rebuilt as it was, and why
};

// Adds every job of `output_dir`/jobs that the store does not know, in the order in which the jobs were made, with its
// sweep, its points, the keys under which they are measured, and its results. For known jobs that live, or that ended
// without a result of a point, it adds the results that have come since.
//
// A job with points that have no result may still run, and becomes an intent. The next run hands it to its launcher
// under its key. The launcher finds it or starts it again, and a node measures no point of a job twice. The job is
// `lost`, with its points, if that is impossible: it names no launcher, it was told to end, a later job has a point of
// it, or its sweep has none of the points left. `campaign` is for jobs that do not state theirs, as those of earlier
// versions. All is done in one transaction, and repeating it changes nothing. Throws as Collect does.
Rebuilt RebuildFrom(store::Store& store, const std::filesystem::path& output_dir, const std::string& campaign,
                    int64_t now_unix_ns);

}  // namespace ridgeline::collect
