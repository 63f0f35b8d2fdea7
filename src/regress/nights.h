// What is known of each night: a sweep that was run for a campaign of its own, and held to the nights before. A night
// is a folder, NAME/night.json with what came of it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "regress/gate.h"
#include "regress/measurements.h"

namespace ridgeline {

// A point with one setup, on any machine.
struct NightCell {
  std::string point_id;
  std::string setup;

  auto operator<=>(const NightCell&) const = default;
};

// How much more of a metric, as shares: at most, with what noise may add to it.
struct WorseMetric {
  double up = 0;                        // since what the gate held it to; 0: that found it no worse
  std::optional<double> in_turns = {};  // since the base build

  bool operator==(const WorseMetric&) const = default;
};

// What a night found worse than its baseline, of one cell.
struct WorseCell {
  NightCell cell;
  std::string point = {};  // its name among the night's
  bool is_open = false;    // a suspect that nobody measured again: it may be noise
  std::string since = {};  // the first of the nights that showed it together; empty: this one alone
  std::map<GateMetric, WorseMetric> metrics = {};  // those that are worse, and those since what is pinned
  std::string base_build = {};                     // that it was measured in turns with

  bool operator==(const WorseCell&) const = default;
};

// A person said that what a night found worse of a cell is as it should be.
struct AcceptedCell {
  NightCell cell;
  std::string reason = {};
  std::string author = {};
  int64_t unix_s = 0;  // when; 0: an earlier version did not say it

  bool operator==(const AcceptedCell&) const = default;
};

struct Night {
  std::string name;   // its campaign's, too: "night-2026-02-01"
  std::string sweep;  // the file
  int64_t started_unix_s = 0;
  int64_t ended_unix_s = 0;            // 0: it is at work, or was cut short
  int run_exit = 0;                    // of `ridgeline run`
  int exit_code = 0;                   // of the whole: that of the gate, unless the run could not be one
  bool was_gated = false;              // a gate held what was measured to the nights before
  std::string words;                   // what the gate concluded, or why there was none
  std::vector<WorseCell> worse;        // than their baseline, or suspects that nobody measured again
  std::vector<NightCell> lost;         // of no result, for want of infrastructure
  std::vector<AcceptedCell> accepted;  // of what is worse

  bool is_over() const { return ended_unix_s > 0; }
  bool is_good() const { return is_over() && exit_code == 0; }
};

// What of a gate (GateJson) was worse than its rolling baseline. What is held to a pinned one is between those two.
// Throws Error(kInvalidInput) for what is no gate.
std::vector<WorseCell> WorseCells(const Json& gate);

// Whether a point of a gate (GateJson) failed once that had a result. Throws Error(kInvalidInput) for what is no gate.
bool AnythingFailedOnce(const Json& gate);

// Whether a gate (GateJson) has more than what is missing. Throws Error(kInvalidInput) for what is no gate.
bool MeasuredAnything(const Json& gate);

// What a gate (GateJson) missed. Throws Error(kInvalidInput) for what is no gate.
std::vector<NightCell> LostCells(const Json& gate);

// What no baseline has of these nights, which are in the order of their starts: all of one that was cut short, FAILED
// or was REFUSED; and of any other what it found to have regressed, with the nights that showed it together, so that a
// regression stays one however long it lasts. What was a suspect and no more is left out until a later night passes it:
// then it was noise, and a baseline without it would think its machine too quiet. From the first of the nights, one
// after another, that found a cell worse to the one in which that was accepted, its measurements are in baselines. What
// is before them is, too, with the change that was accepted (AcceptedOf); it is not where that has no figure, as of a
// failure.
std::vector<LeftOutMeasurements> LeftOutOf(const std::vector<Night>& nights);

// Of these the nights that were none, and what is before a cell's accepted change: what no window of nights has either.
std::vector<LeftOutMeasurements> VoidOf(const std::vector<Night>& nights);

// The changes that were accepted, by their nights.
std::vector<AcceptedChange> AcceptedOf(const std::vector<Night>& nights);

// Who accepted what of this night, and why: "accepted by ada: a fused norm (2 points)". Empty: nobody.
std::string AcceptedWords(const Night& night);

// The nights in a folder, in the order of their starts. A record that is damaged is left out, and named in `problems`.
// None where there is no such folder.
std::vector<Night> ReadNights(const std::filesystem::path& folder, std::vector<std::string>* problems);

// Writes its record into `folder`/NAME, whole or not at all. Throws Error(kInfrastructure).
void WriteNight(const Night& night, const std::filesystem::path& folder);

// The night to begin at this time, in UTC: one of this date that is not over, or that the infrastructure cost (exit
// code 3) or of which it cost points, is gone on with; else a name that no night has.
std::string NightAt(const std::vector<Night>& nights, int64_t unix_ns);

// The last that was good.
std::optional<Night> LastGoodNight(const std::vector<Night>& nights);

// "PASS", "REGRESSED", "INCONCLUSIVE", "FAILED" (the infrastructure's), "REFUSED" (the sweep is wrong), "CUT SHORT",
// and "MISSING" where the infrastructure cost some points, beside what the others came to: "REGRESSED, MISSING".
std::string NightAnswer(const Night& night);

// Its words beside its answer, with which a gate's begin, too.
std::string NightWords(const Night& night);

}  // namespace ridgeline
