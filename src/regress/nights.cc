#include "regress/nights.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "regress/gate.h"
#include "ridgeline/json_fault.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr const char* kRecord = "night.json";
constexpr int kNightVersion = 1;

NightCell ParseCell(const Json& cell) { return {cell.at(0).get<std::string>(), cell.at(1).get<std::string>()}; }

Json CellJson(const NightCell& cell) { return Json::array({cell.point_id, cell.setup}); }

// Earlier versions said the cell alone.
WorseCell ParseWorse(const Json& json) {
  if (json.is_array()) return {.cell = ParseCell(json)};
  return {.cell = ParseCell(json.at("cell")),
          .point = json.at("point").get<std::string>(),
          .is_open = json.at("open").get<bool>(),
          .since = json.at("since").get<std::string>()};
}

Json WorseJson(const WorseCell& worse) {
  return {{"cell", CellJson(worse.cell)}, {"point", worse.point}, {"open", worse.is_open}, {"since", worse.since}};
}

constexpr int64_t kLastUnixS = 253'402'300'799;  // of the year 9999
constexpr int64_t kMaxExitCode = 255;
constexpr size_t kMaxNightBytes = size_t{64} << 20;  // of a night in which 100,000 points became worse

int64_t IntegerOf(const Json& json, const char* key, int64_t most) {
  const Json& value = json.at(key);
  // Of what an int64_t cannot hold, get() would make a negative one.
  const int64_t number = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (number >= 0 && number <= most) return number;
  throw Error(ErrorKind::kInvalidInput, fmt::format("'{}' is no integer from 0 to {}", key, most));
}

Night ParseNight(const Json& json) {
  if (const Json& version = json.at("version"); version != kNightVersion) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("version {}, but this program reads {}",
                                                      ShortenToBytes(DumpJson(version), 64), kNightVersion));
  }
  Night night;
  night.name = json.at("night").get<std::string>();
  night.sweep = json.at("sweep").get<std::string>();
  night.started_unix_s = IntegerOf(json, "started_unix_s", kLastUnixS);
  night.ended_unix_s = IntegerOf(json, "ended_unix_s", kLastUnixS);
  night.run_exit = static_cast<int>(IntegerOf(json, "run_exit", kMaxExitCode));
  night.exit_code = static_cast<int>(IntegerOf(json, "exit_code", kMaxExitCode));
  night.words = json.at("words").get<std::string>();
  night.was_gated = json.value("was_gated", night.exit_code != ExitCode(ErrorKind::kInfrastructure));
  for (const Json& cell : json.value("worse", Json::array())) night.worse.push_back(ParseWorse(cell));
  for (const Json& cell : json.value("lost", Json::array())) night.lost.push_back(ParseCell(cell));
  night.accepted = json.value("accepted", false);
  return night;
}

// Whether what was measured in it was held to a baseline. What it lost it has no measurement of.
bool LendsToBaselines(const Night& night) {
  const std::string answer = NightAnswer(night);
  return night.is_over() && answer != "REFUSED" && answer != "FAILED";
}

const WorseCell* FindWorse(const Night& night, const NightCell& cell) {
  const auto found =
      std::find_if(night.worse.begin(), night.worse.end(), [&](const WorseCell& worse) { return worse.cell == cell; });
  return found == night.worse.end() ? nullptr : &*found;
}

bool Lost(const Night& night, const NightCell& cell) {
  return std::find(night.lost.begin(), night.lost.end(), cell) != night.lost.end();
}

// Of the night of this name; one behind the last where there is none.
size_t PlaceOf(const std::vector<Night>& nights, const std::string& name) {
  const auto found = std::find_if(nights.begin(), nights.end(), [&](const Night& night) { return night.name == name; });
  return static_cast<size_t>(found - nights.begin());
}

// Whether a night after this one measured the cell, and found it no worse.
bool PassedAfter(const std::vector<Night>& nights, size_t place, const NightCell& cell) {
  return std::any_of(nights.begin() + static_cast<std::ptrdiff_t>(place) + 1, nights.end(), [&](const Night& night) {
    return LendsToBaselines(night) && !Lost(night, cell) && FindWorse(night, cell) == nullptr;
  });
}

// The places of the nights with which the baseline of an accepted cell begins, and in which it was accepted last.
struct Acceptance {
  size_t begin = 0;
  size_t accepted = 0;
};

std::map<NightCell, Acceptance> AcceptancesOf(const std::vector<Night>& nights) {
  std::map<NightCell, Acceptance> acceptances;
  for (size_t i = nights.size(); i-- > 0;) {
    if (!nights[i].accepted) continue;
    for (const auto& [cell, point, is_open, since] : nights[i].worse) {
      if (acceptances.contains(cell)) continue;
      size_t begin = i;
      for (size_t before = i; before-- > 0;) {
        if (FindWorse(nights[before], cell) != nullptr || Lost(nights[before], cell)) {
          begin = before;
        } else if (LendsToBaselines(nights[before])) {
          break;
        }
      }
      acceptances[cell] = {std::min(begin, PlaceOf(nights, since)), i};
    }
  }
  return acceptances;
}

NightCell CellOfFinding(const Json& finding) {
  return {finding.at("point_id").get<std::string>(), finding.at("setup").get<std::string>()};
}

using CellInNight = std::pair<size_t, NightCell>;  // by the night's place

std::vector<LeftOutMeasurements> LeftOut(const std::vector<Night>& nights,
                                         const std::map<NightCell, Acceptance>& acceptances,
                                         const std::set<CellInNight>& worse) {
  std::vector<LeftOutMeasurements> left_out;
  for (size_t i = 0; i < nights.size(); ++i) {
    const std::string& name = nights[i].name;
    if (!LendsToBaselines(nights[i])) {
      left_out.push_back({name, {}, {}});
      continue;
    }
    for (const auto& [cell, acceptance] : acceptances) {
      if (i < acceptance.begin) left_out.push_back({name, cell.point_id, cell.setup});
    }
    for (auto it = worse.lower_bound({i, NightCell{}}); it != worse.end() && it->first == i; ++it) {
      left_out.push_back({name, it->second.point_id, it->second.setup});
    }
  }
  return left_out;
}

}  // namespace

std::vector<Night> ReadNights(const fs::path& folder, std::vector<std::string>* problems) {
  std::vector<Night> nights;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const fs::path file = entry.path() / kRecord;
    if (!fs::is_regular_file(file, ec)) continue;
    try {
      Night night = ParseNight(ParseJson(ReadForeignFile(file, kMaxNightBytes).value_or(""), file.string()));
      // A night is written where its name says, which must not be outside.
      if (night.name != entry.path().filename()) {
        throw Error(ErrorKind::kInvalidInput,
                    fmt::format("it is the record of '{}', which is another folder's", ShortenToBytes(night.name, 64)));
      }
      nights.push_back(std::move(night));
    } catch (const Error& e) {
      problems->push_back(fmt::format("{}: {}", file.string(), e.message()));
    } catch (const Json::exception& e) {
      problems->push_back(fmt::format("{}: {}", file.string(), JsonFault(e)));
    }
  }
  std::sort(nights.begin(), nights.end(), [](const Night& a, const Night& b) {
    return std::pair(a.started_unix_s, a.name) < std::pair(b.started_unix_s, b.name);
  });
  return nights;
}

void WriteNight(const Night& night, const fs::path& folder) {
  Json worse = Json::array();
  for (const WorseCell& cell : night.worse) worse.push_back(WorseJson(cell));
  Json lost = Json::array();
  for (const NightCell& cell : night.lost) lost.push_back(CellJson(cell));
  const Json json = {{"version", kNightVersion},
                     {"night", night.name},
                     {"sweep", night.sweep},
                     {"started_unix_s", night.started_unix_s},
                     {"ended_unix_s", night.ended_unix_s},
                     {"run_exit", night.run_exit},
                     {"exit_code", night.exit_code},
                     {"was_gated", night.was_gated},
                     {"words", night.words},
                     {"worse", std::move(worse)},
                     {"lost", std::move(lost)},
                     {"accepted", night.accepted}};
  MakeDirs(folder / night.name);
  WriteFileAtomic(folder / night.name / kRecord, DumpJson(json) + "\n");
}

std::string NightAt(const std::vector<Night>& nights, int64_t unix_ns) {
  const std::string first = "night-" + FormatUnixTime(unix_ns).substr(0, 10);
  std::string name = first;
  for (int i = 2;; ++i) {
    const auto same =
        std::find_if(nights.begin(), nights.end(), [&](const Night& night) { return night.name == name; });
    if (same == nights.end() || !same->is_over() || !same->lost.empty() ||
        same->exit_code == ExitCode(ErrorKind::kInfrastructure)) {
      return name;
    }
    name = fmt::format("{}-{}", first, i);
  }
}

std::optional<Night> LastGoodNight(const std::vector<Night>& nights) {
  const auto good = std::find_if(nights.rbegin(), nights.rend(), [](const Night& night) { return night.is_good(); });
  return good == nights.rend() ? std::nullopt : std::optional(*good);
}

std::string NightAnswer(const Night& night) {
  if (!night.is_over()) return "CUT SHORT";
  const std::string missing = night.lost.empty() ? "" : ", MISSING";
  switch (night.exit_code) {
    case 0:
      return "PASS";
    case 1:
      return "REGRESSED" + missing;
    case 2:
      return "REFUSED";
    case 4:
      return "INCONCLUSIVE" + missing;
    case 3:
      return night.was_gated ? "MISSING" : "FAILED";
    default:
      return "FAILED";
  }
}

std::string NightWords(const Night& night) {
  const std::string all = NightAnswer(night);
  const std::string answer = all.substr(0, all.find(',')) + ": ";
  return night.words.starts_with(answer) ? night.words.substr(answer.size()) : night.words;
}

bool AnythingFailsNow(const Json& gate) {
  try {
    return std::ranges::any_of(gate.at("findings"), [](const Json& finding) {
      return finding.at("metric").get<std::string>() == GateMetricName(GateMetric::kResult) &&
             finding.at("answer").get<std::string>() == GateAnswerName(GateAnswer::kRegressed);
    });
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is no gate: {}", JsonFault(e)));
  }
}

bool MeasuredAnything(const Json& gate) {
  try {
    return std::ranges::any_of(gate.at("findings"), [](const Json& finding) {
      return finding.at("answer").get<std::string>() != GateAnswerName(GateAnswer::kMissing);
    });
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is no gate: {}", JsonFault(e)));
  }
}

std::vector<WorseCell> WorseCells(const Json& gate) {
  std::map<NightCell, WorseCell> worse;
  try {
    for (const Json& finding : gate.at("findings")) {
      const auto metric = finding.at("metric").get<std::string>();
      if (metric == GateMetricName(GateMetric::kPinnedStepTime) ||
          metric == GateMetricName(GateMetric::kPinnedPeakMemory)) {
        continue;
      }
      const auto answer = finding.at("answer").get<std::string>();
      const bool is_open = answer == GateAnswerName(GateAnswer::kInconclusive) && finding.at("suspect").get<bool>();
      if (answer != GateAnswerName(GateAnswer::kRegressed) && !is_open) continue;
      const NightCell cell = CellOfFinding(finding);
      const auto [found, is_new] = worse.try_emplace(
          cell, WorseCell{.cell = cell, .point = finding.at("point").get<std::string>(), .is_open = is_open});
      found->second.is_open &= is_open;
      if (const auto since = finding.value("since", ""); !since.empty()) found->second.since = since;
    }
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is no gate: {}", JsonFault(e)));
  }
  std::vector<WorseCell> all;
  for (auto& [cell, each] : worse) all.push_back(std::move(each));
  return all;
}

std::vector<NightCell> LostCells(const Json& gate) {
  std::vector<NightCell> lost;
  try {
    for (const Json& finding : gate.at("findings")) {
      const bool is_missing = finding.at("answer").get<std::string>() == GateAnswerName(GateAnswer::kMissing);
      if (is_missing && !finding.at("point_id").get<std::string>().empty()) lost.push_back(CellOfFinding(finding));
    }
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is no gate: {}", JsonFault(e)));
  }
  return lost;
}

std::vector<LeftOutMeasurements> VoidOf(const std::vector<Night>& nights) {
  return LeftOut(nights, AcceptancesOf(nights), {});
}

std::vector<LeftOutMeasurements> LeftOutOf(const std::vector<Night>& nights) {
  const std::map<NightCell, Acceptance> acceptances = AcceptancesOf(nights);
  std::set<CellInNight> worse;
  for (size_t i = 0; i < nights.size(); ++i) {
    if (!LendsToBaselines(nights[i])) continue;
    for (const auto& [cell, point, is_open, since] : nights[i].worse) {
      const auto found = acceptances.find(cell);
      const size_t first = found == acceptances.end() ? 0 : found->second.accepted + 1;
      if (i < first || (is_open && PassedAfter(nights, i, cell))) continue;
      for (size_t j = std::max(first, std::min(i, PlaceOf(nights, since))); j <= i; ++j) worse.insert({j, cell});
    }
  }
  return LeftOut(nights, acceptances, worse);
}

}  // namespace ridgeline
