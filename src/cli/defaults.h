// Where things are when nobody says otherwise: the same for every command, so that they find each other's work.
#pragma once

namespace ridgeline {

inline constexpr const char* kDefaultDb = "ridgeline.db";          // --db, in the folder one works in
inline constexpr const char* kDefaultOutputDir = "ridgeline-out";  // --to, of `ridgeline run`: job folders and reports
inline constexpr const char* kDefaultLauncher = "local";           // --launcher, where the sweep names none

// A copy of the sweep, in the folder that `ridgeline render` writes and `ridgeline collect` reads.
inline constexpr const char* kRenderedSweep = "jobs/sweep.yaml";
inline constexpr const char* kRenderedTrainers = "trainers";  // their definitions, as they were then

}  // namespace ridgeline
