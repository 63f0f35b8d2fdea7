// A sweep run in rounds: what was measured says what is measured next. The driver knows nothing of it: each round is a
// run of it, with the points that the sweep has by then. Every point is an ordinary one in the store, and what to run
// next follows from the store alone, so that a run that was stopped or killed goes on with the next.
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

namespace ridgeline {

struct RoundsResult {
  RunSummary summary;               // of the last round
  std::vector<std::string> answer;  // what a search came to, a line each; empty of a sweep without one
};

// Runs a sweep: its `search`, else all of its points, and where `batch_size: max` ran out of memory the smaller ones
// that take its place. `at_once`: how many points of a search are measured together, where its jobs may run together.
// REQUIRES and throws as RunSweep; Error(kUsage) for a search that is to be detached.
RoundsResult RunInRounds(Sweep sweep, DriverOptions driver, const DriverParts& parts, int64_t at_once);

// What a search measures again in turns is of a sweep of its own, since the sweep has one measurement of each point:
// the same text under this name. Its campaigns are the search's with + and the number of the measurement.
Sweep SweepOfTurns(Sweep sweep);

// How many points are measured together by this launcher; `max_parallel` 0: not said.
int64_t SearchedAtOnce(const Launcher& launcher, int64_t max_parallel);

// Whether a point has ended out of memory, as the sweep measures it for this campaign. `store` must outlive what it
// returns. `trainer`: argv, where the sweep names none.
std::function<bool(const Sweep& sweep, const Point& point)> EndedForMemoryIn(Store& store, const std::string& campaign,
                                                                             const std::vector<std::string>& trainer);

// What the store knows of the points. `campaign`: the search's.
Trials ReadTrials(Store& store, const Sweep& sweep, const std::vector<SearchSpace>& spaces, const std::string& campaign,
                  const std::vector<std::string>& trainer);

}  // namespace ridgeline
