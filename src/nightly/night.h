// A night: a sweep that is run as a campaign of its own, compared with earlier nights, and reported.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::nightly {

struct NightOptions {
  std::filesystem::path sweep;                  // the sweep's file
  std::filesystem::path folder;                 // for the database, the nights and the pages
  std::string launcher;                         // where jobs run; empty: the sweep's launcher
  std::vector<std::filesystem::path> trainers;  // folders with definitions
  std::string pinned;                           // a side that stays the baseline; empty: none
  std::filesystem::path base_build;             // a folder with older programs; empty: none
  std::filesystem::path work_dir;               // the folder in which the sweep runs
  std::filesystem::path alert;                  // a program to start after a bad night; empty: none

  // The same night, whatever the working folder is then: paths are absolute, and `trainers` in the working folder is
  // among the folders with definitions. An alert without a folder stays, because it is searched along PATH.
  NightOptions Anywhere() const;
};

// The contents of a folder of nights.
struct NightlyPlaces {
  explicit NightlyPlaces(const std::filesystem::path& folder);
  std::filesystem::path db, runs, pages, nights, last, metrics, lock;
};

// Runs the sweep for tonight, judges it, renders every report, and starts the alert. Changes the process's working
// folder to `work_dir`. Returns the night's exit code, or kInterruptedExit. A night of today that is not over is
// resumed. Throws Error(kInfrastructure) if another night is at work in the folder, or nothing can be written there.
int RunNight(const NightOptions& options);

// Prints the nights of a folder. Returns the exit code. Throws Error(kUsage) if there is none.
int ShowNights(const std::filesystem::path& folder);

}  // namespace ridgeline::nightly
