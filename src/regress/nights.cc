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

Night ParseNight(const Json& json) {
  if (json.at("version").get<int>() != kNightVersion) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("version {}, but this program reads {}", json.at("version").get<int>(), kNightVersion));
  }
  Night night;
  night.name = json.at("night").get<std::string>();
  night.sweep = json.at("sweep").get<std::string>();
  night.started_unix_s = json.at("started_unix_s").get<int64_t>();
  night.ended_unix_s = json.at("ended_unix_s").get<int64_t>();
  night.run_exit = json.at("run_exit").get<int>();
  night.exit_code = json.at("exit_code").get<int>();
  night.words = json.at("words").get<std::string>();
  for (const Json& cell : json.value("worse", Json::array())) {
    night.worse.push_back({cell.at(0).get<std::string>(), cell.at(1).get<std::string>()});
  }
  night.accepted = json.value("accepted", false);
  return night;
}

// Whether what was measured in it was measured on a machine that was up, and was held to a baseline.
bool LendsToBaselines(const Night& night) {
  return night.is_over() && night.exit_code != ExitCode(ErrorKind::kUsage) && NightAnswer(night) != "FAILED";
}

bool FoundWorse(const Night& night, const NightCell& cell) {
  return std::find(night.worse.begin(), night.worse.end(), cell) != night.worse.end();
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
    for (const NightCell& cell : nights[i].worse) {
      if (acceptances.contains(cell)) continue;
      size_t begin = i;
      for (size_t before = i; before-- > 0;) {
        if (FoundWorse(nights[before], cell)) {
          begin = before;
        } else if (LendsToBaselines(nights[before])) {
          break;
        }
      }
      acceptances[cell] = {begin, i};
    }
  }
  return acceptances;
}

}  // namespace

std::vector<Night> ReadNights(const fs::path& folder, std::vector<std::string>* problems) {
  std::vector<Night> nights;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const fs::path file = entry.path() / kRecord;
    if (!fs::is_regular_file(file, ec)) continue;
    try {
      nights.push_back(ParseNight(ReadJsonFile(file)));
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
  for (const NightCell& cell : night.worse) worse.push_back(Json::array({cell.point_id, cell.setup}));
  const Json json = {{"version", kNightVersion},
                     {"night", night.name},
                     {"sweep", night.sweep},
                     {"started_unix_s", night.started_unix_s},
                     {"ended_unix_s", night.ended_unix_s},
                     {"run_exit", night.run_exit},
                     {"exit_code", night.exit_code},
                     {"words", night.words},
                     {"worse", std::move(worse)},
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
    if (same == nights.end() || !same->is_over() || same->exit_code == ExitCode(ErrorKind::kInfrastructure))
      return name;
    name = fmt::format("{}-{}", first, i);
  }
}

std::optional<Night> LastGoodNight(const std::vector<Night>& nights) {
  const auto good = std::find_if(nights.rbegin(), nights.rend(), [](const Night& night) { return night.is_good(); });
  return good == nights.rend() ? std::nullopt : std::optional(*good);
}

std::string NightAnswer(const Night& night) {
  if (!night.is_over()) return "CUT SHORT";
  switch (night.exit_code) {
    case 0:
      return "PASS";
    case 1:
      return "REGRESSED";
    case 2:
      return "REFUSED";
    case 4:
      return "INCONCLUSIVE";
    default:
      return "FAILED";
  }
}

std::string NightWords(const Night& night) {
  const std::string answer = NightAnswer(night) + ": ";
  return night.words.starts_with(answer) ? night.words.substr(answer.size()) : night.words;
}

std::vector<NightCell> WorseCells(const Json& gate) {
  std::set<NightCell> worse;
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
      worse.insert({finding.at("point_id").get<std::string>(), finding.at("setup").get<std::string>()});
    }
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("it is no gate: {}", JsonFault(e)));
  }
  return {worse.begin(), worse.end()};
}

std::vector<LeftOutMeasurements> LeftOutOf(const std::vector<Night>& nights) {
  const std::map<NightCell, Acceptance> acceptances = AcceptancesOf(nights);
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
    for (const NightCell& cell : nights[i].worse) {
      const auto found = acceptances.find(cell);
      if (found == acceptances.end() || i > found->second.accepted) {
        left_out.push_back({name, cell.point_id, cell.setup});
      }
    }
  }
  return left_out;
}

}  // namespace ridgeline
