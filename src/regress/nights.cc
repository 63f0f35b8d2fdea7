#include "regress/nights.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/text.h"
#include "regress/gate.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::regress {
namespace {
namespace fs = std::filesystem;

constexpr const char* kRecord = "night.json";
constexpr int kNightVersion = 1;

NightCell ParseCell(const Json& cell) { return {cell.at(0).get<std::string>(), cell.at(1).get<std::string>()}; }

Json CellJson(const NightCell& cell) { return Json::array({cell.point_id, cell.setup}); }

// The metric of this name; nothing if only an earlier or a later version has it.
std::optional<GateMetric> FindMetric(std::string_view name) {
  using enum GateMetric;
  for (const GateMetric metric : {kResult, kStepTime, kPinnedStepTime, kPeakMemory, kPinnedPeakMemory}) {
    if (GateMetricName(metric) == name) return metric;
  }
  return std::nullopt;
}

std::optional<double> NumberIn(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::nullopt : std::optional(found->get<double>());
}

constexpr int64_t kLastUnixS = 253'402'300'799;  // the end of the year 9999
constexpr int64_t kMaxExitCode = 255;
constexpr size_t kMaxNightBytes = size_t{64} << 20;  // enough for a night in which 100,000 points became worse

int64_t IntegerOf(const Json& json, const char* key, int64_t most) {
  const Json& value = json.at(key);
  // get() would turn a number that an int64_t cannot hold into a negative one.
  const int64_t number = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (number >= 0 && number <= most) return number;
  throw Error(ErrorKind::kInvalidInput, fmt::format("'{}' is not an integer from 0 to {}", key, most));
}

// A change as a share. Shares of -1 or less have no logarithm.
double ShareOf(const Json& json, const char* key) {
  constexpr double kLeast = -0.99;
  constexpr double kMost = 1000;
  const auto share = json.at(key).get<double>();
  if (share >= kLeast && share <= kMost) return share;
  throw Error(ErrorKind::kInvalidInput, fmt::format("'{}' is not a share from {} to {}", key, kLeast, kMost));
}

WorseCell ParseWorse(const Json& json) {
  WorseCell worse{.cell = ParseCell(json.at("cell")),
                  .point = json.at("point").get<std::string>(),
                  .is_open = json.at("open").get<bool>(),
                  .since = json.at("since").get<std::string>(),
                  .base_build = json.at("base_build").get<std::string>()};
  for (const auto& [name, figures] : json.at("metrics").items()) {
    const auto metric = FindMetric(name);
    if (!metric) continue;
    WorseMetric& of_metric = worse.metrics[*metric] = {ShareOf(figures, "up")};
    if (figures.contains("in_turns")) of_metric.in_turns = ShareOf(figures, "in_turns");
  }
  return worse;
}

Json WorseJson(const WorseCell& worse) {
  Json metrics = Json::object();
  for (const auto& [metric, figures] : worse.metrics) {
    Json json = {{"up", figures.up}};
    if (figures.in_turns) json["in_turns"] = *figures.in_turns;
    metrics[std::string(GateMetricName(metric))] = std::move(json);
  }
  return {{"cell", CellJson(worse.cell)}, {"point", worse.point},          {"open", worse.is_open},
          {"since", worse.since},         {"metrics", std::move(metrics)}, {"base_build", worse.base_build}};
}

AcceptedCell ParseAccepted(const Json& json) {
  return {ParseCell(json.at("cell")), json.at("reason").get<std::string>(), json.at("author").get<std::string>(),
          IntegerOf(json, "unix_s", kLastUnixS)};
}

Json AcceptedJson(const Night& night) {
  Json all = Json::array();
  for (const AcceptedCell& each : night.accepted) {
    all.push_back(
        {{"cell", CellJson(each.cell)}, {"reason", each.reason}, {"author", each.author}, {"unix_s", each.unix_s}});
  }
  return all;
}

Night ParseNight(const Json& json) {
  if (const Json& version = json.at("version"); version != kNightVersion) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("version {}, but this program reads {}",
                                                      ShortenToBytes(DumpJson(version), 64), kNightVersion));
  }
  Night night;
  night.name = json.at("night").get<std::string>();
  night.sweep = json.at("sweep").get<std::string>();
  night.sweep_name = json.at("sweep_name").get<std::string>();
  night.started_unix_s = IntegerOf(json, "started_unix_s", kLastUnixS);
  night.ended_unix_s = IntegerOf(json, "ended_unix_s", kLastUnixS);
  night.run_exit = static_cast<int>(IntegerOf(json, "run_exit", kMaxExitCode));
  night.exit_code = static_cast<int>(IntegerOf(json, "exit_code", kMaxExitCode));
  night.words = json.at("words").get<std::string>();
  night.was_gated = json.at("was_gated").get<bool>();
  for (const Json& cell : json.at("worse")) night.worse.push_back(ParseWorse(cell));
  for (const Json& cell : json.at("lost")) night.lost.push_back(ParseCell(cell));
  for (const Json& cell : json.at("absent")) night.absent.push_back(ParseCell(cell));
  for (const Json& cell : json.at("accepted")) night.accepted.push_back(ParseAccepted(cell));
  return night;
}

// Whether its measurements were compared with a baseline. Points that it lost have no measurement.
bool LendsToBaselines(const Night& night) {
  const std::string answer = NightAnswer(night);
  return night.is_over() && answer != "REFUSED" && answer != "FAILED";
}

const WorseCell* FindWorse(const Night& night, const NightCell& cell) {
  const auto found =
      std::find_if(night.worse.begin(), night.worse.end(), [&](const WorseCell& worse) { return worse.cell == cell; });
  return found == night.worse.end() ? nullptr : &*found;
}

// Whether it has no measurement of the cell, so that it neither confirms nor clears a suspect.
bool Lacks(const Night& night, const NightCell& cell) {
  const auto has = [&](const std::vector<NightCell>& cells) { return std::ranges::find(cells, cell) != cells.end(); };
  return has(night.lost) || has(night.absent);
}

// The index of the night of this name; one past the last if there is none.
size_t PlaceOf(const std::vector<Night>& nights, const std::string& name) {
  const auto found = std::find_if(nights.begin(), nights.end(), [&](const Night& night) { return night.name == name; });
  return static_cast<size_t>(found - nights.begin());
}

// Whether a night after this one measured the cell, and found it no worse.
bool PassedAfter(const std::vector<Night>& nights, size_t place, const NightCell& cell) {
  return std::any_of(nights.begin() + static_cast<std::ptrdiff_t>(place) + 1, nights.end(), [&](const Night& night) {
    return LendsToBaselines(night) && !Lacks(night, cell) && FindWorse(night, cell) == nullptr;
  });
}

// An accepted change of a cell: the indices of the first night that has it, and of the night that was accepted.
struct Acceptance {
  const AcceptedCell* said;
  const WorseCell* worse;
  size_t begin = 0;
  size_t accepted = 0;

  // A change without a figure cannot be subtracted from earlier measurements.
  bool HasFigures() const { return !worse->metrics.empty(); }
};

// In the order of their nights. If consecutive nights were accepted, and the acceptance of an earlier one was not yet
// known when a later one ended, their findings are one change, which the last one states.
std::vector<Acceptance> AcceptancesOf(const std::vector<Night>& nights) {
  std::vector<Acceptance> acceptances;
  for (size_t i = 0; i < nights.size(); ++i) {
    for (const AcceptedCell& said : nights[i].accepted) {
      const WorseCell* worse = FindWorse(nights[i], said.cell);
      if (worse == nullptr) continue;
      const auto is_known = [&](const Acceptance& other) {
        return other.said->cell == said.cell && other.said->unix_s <= nights[i].ended_unix_s;
      };
      size_t earliest = 0;
      for (const Acceptance& other : acceptances) {
        if (is_known(other)) earliest = std::max(earliest, other.accepted + 1);
      }
      size_t begin = i;
      for (size_t before = i; before-- > earliest;) {
        if (FindWorse(nights[before], said.cell) != nullptr || Lacks(nights[before], said.cell)) {
          begin = before;
        } else if (LendsToBaselines(nights[before])) {
          break;
        }
      }
      begin = std::max(earliest, std::min(begin, PlaceOf(nights, worse->since)));
      std::erase_if(acceptances, [&](const Acceptance& other) {
        return other.said->cell == said.cell && !is_known(other) && other.accepted >= begin;
      });
      acceptances.push_back({&said, worse, begin, i});
    }
  }
  return acceptances;
}

NightCell CellOfFinding(const Json& finding) {
  return {finding.at("point_id").get<std::string>(), finding.at("setup").get<std::string>()};
}

using CellInNight = std::pair<size_t, NightCell>;  // by the night's index

std::vector<LeftOutMeasurements> LeftOut(const std::vector<Night>& nights, const std::vector<Acceptance>& acceptances,
                                         std::set<CellInNight> cells) {
  for (const Acceptance& acceptance : acceptances) {
    for (size_t i = 0; i < acceptance.begin && !acceptance.HasFigures(); ++i) cells.insert({i, acceptance.said->cell});
  }
  std::vector<LeftOutMeasurements> left_out;
  for (size_t i = 0; i < nights.size(); ++i) {
    const std::string& name = nights[i].name;
    if (!LendsToBaselines(nights[i])) {
      left_out.push_back({name, {}, {}});
      continue;
    }
    for (auto it = cells.lower_bound({i, NightCell{}}); it != cells.end() && it->first == i; ++it) {
      left_out.push_back({name, it->second.point_id, it->second.setup});
    }
  }
  return left_out;
}

std::optional<double> InTurns(const WorseCell& worse, GateMetric metric, GateMetric pinned) {
  for (const GateMetric each : {metric, pinned}) {
    const auto found = worse.metrics.find(each);
    if (found != worse.metrics.end() && found->second.in_turns) return found->second.in_turns;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Night> ReadNights(const fs::path& folder, std::vector<std::string>* problems) {
  std::vector<Night> nights;
  ForEachEntry(folder, [&](const fs::directory_entry& entry) {
    const fs::path file = entry.path() / kRecord;
    std::error_code ec;
    if (!fs::is_regular_file(file, ec)) return;
    try {
      Night night = ParseNight(ParseJson(ReadForeignFile(file, kMaxNightBytes).value_or(""), file.string()));
      // The name decides where a night is written, so it must not lead outside the folder.
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
  });
  std::sort(nights.begin(), nights.end(), [](const Night& a, const Night& b) {
    return std::pair(a.started_unix_s, a.name) < std::pair(b.started_unix_s, b.name);
  });
  return nights;
}

void WriteNight(const Night& night, const fs::path& folder) {
  Json worse = Json::array();
  for (const WorseCell& cell : night.worse) worse.push_back(WorseJson(cell));
  const auto cells_json = [](const std::vector<NightCell>& cells) {
    Json json = Json::array();
    for (const NightCell& cell : cells) json.push_back(CellJson(cell));
    return json;
  };
  const Json json = {{"version", kNightVersion},
                     {"night", night.name},
                     {"sweep", night.sweep},
                     {"sweep_name", night.sweep_name},
                     {"started_unix_s", night.started_unix_s},
                     {"ended_unix_s", night.ended_unix_s},
                     {"run_exit", night.run_exit},
                     {"exit_code", night.exit_code},
                     {"was_gated", night.was_gated},
                     {"words", night.words},
                     {"worse", std::move(worse)},
                     {"lost", cells_json(night.lost)},
                     {"absent", cells_json(night.absent)},
                     {"accepted", AcceptedJson(night)}};
  MakeDirs(folder / night.name);
  WriteFileAtomic(folder / night.name / kRecord, DumpJson(json) + "\n");
}

std::string NightAt(const std::vector<Night>& nights, const std::string& sweep_name, int64_t unix_ns) {
  const auto is_to_resume = [&](const Night& night) {
    const bool is_whole =
        night.is_over() && night.lost.empty() && night.exit_code != ExitCode(ErrorKind::kInfrastructure);
    return !is_whole && night.accepted.empty() && night.sweep_name == sweep_name;
  };
  const std::string first = "night-" + FormatUnixTime(unix_ns).substr(0, 10);
  std::string name = first;
  for (int i = 2;; ++i) {
    const auto same =
        std::find_if(nights.begin(), nights.end(), [&](const Night& night) { return night.name == name; });
    if (same == nights.end() || is_to_resume(*same)) return name;
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

bool AnythingFailedOnce(const Json& gate) {
  try {
    return std::ranges::any_of(gate.at("findings"), [](const Json& finding) {
      return finding.at("metric").get<std::string>() == GateMetricName(GateMetric::kResult) &&
             finding.at("answer").get<std::string>() == GateAnswerName(GateAnswer::kInconclusive);
    });
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is not a gate's answer: {}", JsonFault(e)));
  }
}

bool MeasuredAnything(const Json& gate) {
  try {
    return std::ranges::any_of(gate.at("findings"), [](const Json& finding) {
      return finding.at("answer").get<std::string>() != GateAnswerName(GateAnswer::kMissing);
    });
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is not a gate's answer: {}", JsonFault(e)));
  }
}

std::vector<WorseCell> WorseCells(const Json& gate) {
  std::map<NightCell, WorseCell> worse;
  // For pinned metrics, includes those that are no worse: accepting moves them by nothing.
  std::map<NightCell, std::map<GateMetric, WorseMetric>> since_pinned;
  try {
    for (const Json& finding : gate.at("findings")) {
      const auto metric = FindMetric(finding.at("metric").get<std::string>());
      const auto answer = finding.at("answer").get<std::string>();
      const bool is_open = answer == GateAnswerName(GateAnswer::kInconclusive) && finding.at("suspect").get<bool>();
      const bool is_worse = answer == GateAnswerName(GateAnswer::kRegressed) || is_open;
      const NightCell cell = CellOfFinding(finding);
      WorseMetric figures;
      const std::optional<double> up = NumberIn(finding, "acceptable_change");
      if (is_worse) figures = {std::max(0.0, up.value_or(0)), NumberIn(finding, "change_high")};
      if (metric == GateMetric::kPinnedStepTime || metric == GateMetric::kPinnedPeakMemory) {
        since_pinned[cell][*metric] = figures;
        continue;
      }
      if (!is_worse) continue;
      const auto [found, is_new] = worse.try_emplace(
          cell, WorseCell{.cell = cell, .point = finding.at("point").get<std::string>(), .is_open = is_open});
      WorseCell& of_cell = found->second;
      of_cell.is_open &= is_open;
      if (const auto since = finding.value("since", ""); !since.empty()) of_cell.since = since;
      if (const auto build = finding.value("base_build", ""); !build.empty()) of_cell.base_build = build;
      if (metric && up) of_cell.metrics[*metric] = figures;
    }
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is not a gate's answer: {}", JsonFault(e)));
  }
  std::vector<WorseCell> all;
  for (auto& [cell, each] : worse) {
    if (!each.metrics.empty()) each.metrics.merge(since_pinned[cell]);
    all.push_back(std::move(each));
  }
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
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is not a gate's answer: {}", JsonFault(e)));
  }
  return lost;
}

std::vector<NightCell> AbsentCells(const Json& gate, const std::vector<Night>& nights) {
  std::set<NightCell> suspects;
  for (const Night& night : nights) {
    for (const WorseCell& worse : night.worse) {
      if (worse.is_open) suspects.insert(worse.cell);
    }
  }
  try {
    for (const Json& finding : gate.at("findings")) suspects.erase(CellOfFinding(finding));
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is not a gate's answer: {}", JsonFault(e)));
  }
  return {suspects.begin(), suspects.end()};
}

std::vector<LeftOutMeasurements> VoidOf(const std::vector<Night>& nights) {
  return LeftOut(nights, AcceptancesOf(nights), {});
}

std::vector<LeftOutMeasurements> LeftOutOf(const std::vector<Night>& nights) {
  const std::vector<Acceptance> acceptances = AcceptancesOf(nights);
  std::set<CellInNight> worse;
  for (size_t i = 0; i < nights.size(); ++i) {
    if (!LendsToBaselines(nights[i])) continue;
    for (const WorseCell& each : nights[i].worse) {
      size_t first = 0;  // the first night that no earlier acceptance covers
      bool is_accepted = false;
      for (const Acceptance& acceptance : acceptances) {
        if (acceptance.said->cell != each.cell) continue;
        is_accepted |= i <= acceptance.accepted && (i >= acceptance.begin || !acceptance.HasFigures());
        if (acceptance.accepted < i) first = std::max(first, acceptance.accepted + 1);
      }
      if (is_accepted || (each.is_open && PassedAfter(nights, i, each.cell))) continue;
      for (size_t j = std::max(first, std::min(i, PlaceOf(nights, each.since))); j <= i; ++j) {
        worse.insert({j, each.cell});
      }
    }
  }
  return LeftOut(nights, acceptances, worse);
}

std::vector<AcceptedChange> AcceptedOf(const std::vector<Night>& nights) {
  using enum GateMetric;
  std::vector<AcceptedChange> changes;
  for (const Acceptance& acceptance : AcceptancesOf(nights)) {
    if (!acceptance.HasFigures()) continue;
    AcceptedChange& change = changes.emplace_back();
    change.point_id = acceptance.said->cell.point_id;
    change.setup = acceptance.said->cell.setup;
    change.night = nights[acceptance.accepted].name;
    change.reason = acceptance.said->reason;
    change.author = acceptance.said->author;
    for (size_t i = 0; i < nights.size(); ++i) {
      (i < acceptance.begin ? change.before : change.since).insert(nights[i].name);
    }
    change.begun_unix_ns = 1'000'000'000 * nights[acceptance.begin].started_unix_s;
    const WorseCell& worse = *acceptance.worse;
    for (const auto& [metric, figures] : worse.metrics) change.up[metric] = figures.up;
    // If nothing was pinned that night, a later pin has the change as the baseline does.
    if (change.up.contains(kStepTime)) change.up.try_emplace(kPinnedStepTime, change.up[kStepTime]);
    if (change.up.contains(kPeakMemory)) change.up.try_emplace(kPinnedPeakMemory, change.up[kPeakMemory]);
    change.step_time_in_turns = InTurns(worse, kStepTime, kPinnedStepTime);
    change.memory_in_turns = InTurns(worse, kPeakMemory, kPinnedPeakMemory);
    change.base_build = worse.base_build;
  }
  return changes;
}

std::string AcceptedWords(const Night& night) {
  std::map<std::pair<std::string, std::string>, size_t> counts;
  for (const AcceptedCell& each : night.accepted) ++counts[{each.author, each.reason}];
  std::vector<std::string> words;
  for (const auto& [said, count] : counts) {
    words.push_back(fmt::format("accepted{}{} ({})", said.first.empty() ? "" : " by " + said.first,
                                said.second.empty() ? "" : ": " + said.second, CountOf(count, "point")));
  }
  return Join(words, "; ");
}

}  // namespace ridgeline::regress
