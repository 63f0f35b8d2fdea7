// Runs a sweep in rounds: measurements decide what is measured next. The driver does not know about rounds: each is a
// run with the points that the sweep has by then. Every point is an ordinary one in the store, and the next points
// follow from the store alone. So a run that was stopped or killed resumes with the next points.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "search/decide.h"
#include "search/space.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::rounds {

struct RoundsResult {
  driver::RunSummary summary;       // the last round's summary
  std::vector<std::string> answer;  // a search's answer, one line each; empty for a sweep without a search
};

// Runs a sweep: its `search`, or else all of its points. If `batch_size: max` ran out of memory, also runs the smaller
// points that take its place. `at_once`: how many points of a search are measured together, if its jobs may run
// together. REQUIRES and throws as RunSweep, and Error(kUsage) for a search that is to be detached.
RoundsResult RunInRounds(sweep::Sweep sweep, driver::DriverOptions driver, const driver::DriverParts& parts,
                         int64_t at_once);

// The sweep for a search's repeated measurements in turns. They need a sweep of their own, because a sweep has one
// measurement per point. It has the same text under this name. Its campaigns are the search's with + and the number of
// the measurement.
sweep::Sweep SweepOfTurns(sweep::Sweep sweep);

// The jobs that a sweep's costs are of: its own, and for a search those of its measurements in turns.
std::vector<driver::SweepCampaign> CostsAreOf(const sweep::Sweep& sweep, const std::string& campaign);

// What of the sweep, and of a search's measurements in turns, is billed now (Launcher::StillBilled). Throws as that.
std::vector<std::string> StillBilled(const sweep::Sweep& sweep, launch::Launcher& launcher);

// How many points this launcher measures together; `max_parallel` 0: not specified.
int64_t SearchedAtOnce(const launch::Launcher& launcher, int64_t max_parallel);

// Returns whether a point ran out of memory, as the sweep measures it for this campaign. `store` must outlive the
// returned function. `trainer`: argv, if the sweep names none.
std::function<bool(const sweep::Sweep& sweep, const Point& point)> EndedForMemoryIn(
    store::Store& store, const std::string& campaign, const std::vector<std::string>& trainer);

// Reads what the store knows of the points. `campaign`: the search's.
search::Trials ReadTrials(store::Store& store, const sweep::Sweep& sweep,
                          const std::vector<search::SearchSpace>& spaces, const std::string& campaign,
                          const std::vector<std::string>& trainer);

}  // namespace ridgeline::rounds
