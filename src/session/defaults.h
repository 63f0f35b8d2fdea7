// The default places and names. All commands share them, so that they find each other's work.
#pragma once

namespace ridgeline::session {

inline constexpr const char* kDefaultDb = "ridgeline.db";          // --db, in the working folder
inline constexpr const char* kDefaultOutputDir = "ridgeline-out";  // --to, of `ridgeline run`: job folders and reports

// A copy of the sweep, in the folder that `ridgeline render` writes and `ridgeline collect` reads.
inline constexpr const char* kRenderedSweep = "jobs/sweep.yaml";  // collect.h: kRenderedSweepName
inline constexpr const char* kRenderedTrainers = "trainers";      // the trainers' definitions at that time

}  // namespace ridgeline::session
