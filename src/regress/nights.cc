#include "regress/nights.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

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
  return night;
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
      problems->push_back(fmt::format("{}: {}", file.string(), e.what()));
    }
  }
  std::sort(nights.begin(), nights.end(), [](const Night& a, const Night& b) {
    return std::pair(a.started_unix_s, a.name) < std::pair(b.started_unix_s, b.name);
  });
  return nights;
}

void WriteNight(const Night& night, const fs::path& folder) {
  const Json json = {{"version", kNightVersion},
                     {"night", night.name},
                     {"sweep", night.sweep},
                     {"started_unix_s", night.started_unix_s},
                     {"ended_unix_s", night.ended_unix_s},
                     {"run_exit", night.run_exit},
                     {"exit_code", night.exit_code},
                     {"words", night.words}};
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

}  // namespace ridgeline
