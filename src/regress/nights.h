// What is known of each night: a sweep that was run for a campaign of its own, and held to the nights before. A night
// is a folder, NAME/night.json with what came of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

struct Night {
  std::string name;   // its campaign's, too: "night-2026-02-01"
  std::string sweep;  // the file
  int64_t started_unix_s = 0;
  int64_t ended_unix_s = 0;  // 0: it is at work, or was cut short
  int run_exit = 0;          // of `ridgeline run`
  int exit_code = 0;         // of the whole: that of the gate, unless the run could not be one
  std::string words;         // what the gate concluded, or why there was none

  bool is_over() const { return ended_unix_s > 0; }
  bool is_good() const { return is_over() && exit_code == 0; }
};

// The nights in a folder, in the order of their starts. A record that is damaged is left out, and named in `problems`.
// None where there is no such folder.
std::vector<Night> ReadNights(const std::filesystem::path& folder, std::vector<std::string>* problems);

// Writes its record into `folder`/NAME, whole or not at all. Throws Error(kInfrastructure).
void WriteNight(const Night& night, const std::filesystem::path& folder);

// The night to begin at this time, in UTC: one of this date that is not over, or that the infrastructure cost (exit
// code 3), is gone on with; else a name that no night has.
std::string NightAt(const std::vector<Night>& nights, int64_t unix_ns);

// The last that was good.
std::optional<Night> LastGoodNight(const std::vector<Night>& nights);

// "PASS", "REGRESSED", "INCONCLUSIVE", "FAILED" (the infrastructure's), "REFUSED" (the sweep is wrong), "CUT SHORT".
std::string NightAnswer(const Night& night);

}  // namespace ridgeline
