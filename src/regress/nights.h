// The records of nights. A night is a sweep that was run for its own campaign and compared with the nights before. It
// is a folder, with the outcome in NAME/night.json.
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

namespace ridgeline::regress {

// A point with one setup, on any machine.
struct NightCell {
  std::string point_id;
  std::string setup;

  auto operator<=>(const NightCell&) const = default;
};

// How much a metric grew, as a share: at most, including what noise may add.
struct WorseMetric {
  double up = 0;                        // since the gate's reference; 0: the gate found it no worse
  std::optional<double> in_turns = {};  // since the base build

  bool operator==(const WorseMetric&) const = default;
};

// What a night found worse than its baseline, for one cell.
struct WorseCell {
  NightCell cell;
  std::string point = {};  // its name among the night's
  bool is_open = false;    // a suspect that was not measured again, so it may be noise
  std::string since = {};  // the first of the nights that showed it together; empty: only this night
  std::map<GateMetric, WorseMetric> metrics = {};  // those that are worse, and those since the pinned baseline
  std::string base_build = {};                     // the build with which it was measured in turns

  bool operator==(const WorseCell&) const = default;
};

// A person's statement that a cell's finding is as intended.
struct AcceptedCell {
  NightCell cell;
  std::string reason = {};
  std::string author = {};
  int64_t unix_s = 0;  // the time

  bool operator==(const AcceptedCell&) const = default;
};

struct Night {
  std::string name;        // also the campaign's name: "night-2026-02-01"
  std::string sweep;       // the file
  std::string sweep_name;  // as in every metric
  int64_t started_unix_s = 0;
  int64_t ended_unix_s = 0;            // 0: it is running, or was cut short
  int run_exit = 0;                    // of `ridgeline run`
  int exit_code = 0;                   // overall: the gate's exit code, unless there was no valid run
  bool was_gated = false;              // a gate compared its measurements with earlier nights
  std::string words;                   // what the gate concluded, or why there was none
  std::vector<WorseCell> worse;        // cells worse than their baseline, or suspects that were not measured again
  std::vector<NightCell> lost;         // cells without a result, for infrastructure reasons
  std::vector<NightCell> absent;       // cells that earlier nights suspected and that its sweep does not have
  std::vector<AcceptedCell> accepted;  // accepted findings

  bool is_over() const { return ended_unix_s > 0; }
  bool is_good() const { return is_over() && exit_code == 0; }
};

// The cells of a gate (GateJson) that were worse than their rolling baseline, with their figures since a pinned one. A
// cell that is worse only than a pinned baseline is not among them. Throws Error(kInvalidInput) if it is no gate.
std::vector<WorseCell> WorseCells(const Json& gate);

// Whether a point of a gate (GateJson) that had a result failed once. Throws Error(kInvalidInput) if it is no gate.
bool AnythingFailedOnce(const Json& gate);

// Whether a gate (GateJson) has any finding that is not missing. Throws Error(kInvalidInput) if it is no gate.
bool MeasuredAnything(const Json& gate);

// The cells that a gate (GateJson) missed. Throws Error(kInvalidInput) if it is no gate.
std::vector<NightCell> LostCells(const Json& gate);

// The cells that these nights suspected, and of which a gate (GateJson) has no finding. Throws Error(kInvalidInput) if
// it is no gate.
std::vector<NightCell> AbsentCells(const Json& gate, const std::vector<Night>& nights);

// The measurements of these nights that no baseline uses. The nights are in the order of their starts.
//
// - All of a night that was cut short, FAILED or was REFUSED.
// - For any other night, the cells that it found to have regressed, with the nights that showed it together. So a
//   regression stays one, however long it lasts.
// - A cell that was only a suspect, until a later night passes it: then it was noise, and a baseline without it would
//   underestimate its machine's noise.
//
// Once a night's finding is accepted, baselines include the cell's measurements from the first of the consecutive
// nights that found it worse. Earlier measurements stay, too, with the accepted change (AcceptedOf), unless the change
// has no figure, as for a failure.
std::vector<LeftOutMeasurements> LeftOutOf(const std::vector<Night>& nights);

// Returns those of invalid nights, and those before a cell's accepted change. No window of nights includes them.
std::vector<LeftOutMeasurements> VoidOf(const std::vector<Night>& nights);

// The accepted changes, by their nights.
std::vector<AcceptedChange> AcceptedOf(const std::vector<Night>& nights);

// Who accepted what of this night, and why: "accepted by ada: a fused norm (2 points)". Empty if nothing was accepted.
std::string AcceptedWords(const Night& night);

// The nights in a folder, in the order of their starts. Leaves out damaged records, and names them in `problems`. None
// if there is no such folder.
std::vector<Night> ReadNights(const std::filesystem::path& folder, std::vector<std::string>* problems);

// Writes its record into `folder`/NAME, entirely or not at all. Throws Error(kInfrastructure).
void WriteNight(const Night& night, const std::filesystem::path& folder);

// The name of the night to begin at this time, in UTC. Resumes a night of this sweep and date that is not over, that
// the infrastructure ended (exit code 3), or that lost points to it, unless a person accepted what it found: its record
// stays. Otherwise returns a name that no night has.
std::string NightAt(const std::vector<Night>& nights, const std::string& sweep_name, int64_t unix_ns);

// The last good night.
std::optional<Night> LastGoodNight(const std::vector<Night>& nights);

// "PASS", "REGRESSED", "INCONCLUSIVE", "FAILED" (by the infrastructure), "REFUSED" (an invalid sweep), "CUT SHORT".
// "MISSING" is added if the infrastructure cost some points: "REGRESSED, MISSING".
std::string NightAnswer(const Night& night);

// Its words to show beside its answer: without the answer with which a gate's words begin.
std::string NightWords(const Night& night);

}  // namespace ridgeline::regress
