#include "store/lineage.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "run/measurement.h"
#include "sweep/sweep.h"

namespace ridgeline {
namespace {

// The setup of a sweep as of its last run. If the kept text is no valid sweep for this version, returns the default.
std::string SetupOfText(const std::string& text) {
  try {
    const Launch launch = ParseLaunch(text, "a kept sweep");
    return SetupOf(launch.trainer, launch.cpus);
  } catch (const Error&) {
    return DefaultSetup();
  }
}

void FillSetups(Database& database) {
  std::vector<std::pair<std::string, std::string>> setups;  // name of the sweep, its setup
  Statement sweeps = database.Prepare("SELECT name, text FROM sweeps WHERE setup = ''");
  while (sweeps.Step()) setups.emplace_back(sweeps.Text(0), SetupOfText(sweeps.Text(1)));
  Statement put = database.Prepare("UPDATE sweeps SET setup = ? WHERE name = ?");
  for (const auto& [name, setup] : setups) {
    put.Bind(1, setup);
    put.Bind(2, name);
    put.Run();
  }
  database.Execute("UPDATE jobs SET setup = (SELECT setup FROM sweeps WHERE name = jobs.sweep) WHERE setup = ''");
  // A result without a job belongs to the sweep that has its point.
  Statement results = database.Prepare(
      "UPDATE results SET setup = coalesce((SELECT setup FROM jobs WHERE key = results.job_key), "
      "(SELECT min(w.setup) FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep "
      "WHERE s.point_id = results.point_id), ?) WHERE setup = ''");
  results.Bind(1, DefaultSetup());
  results.Run();
}

Facts FactsOf(const std::string& environment) {
  try {
    return ParseJson(environment, "an environment").get<Facts>();
  } catch (const Error&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

void FillOrigins(Database& database) {
  std::vector<std::pair<std::string, Facts>> environments;
  Statement each =
      database.Prepare("SELECT id, environment FROM environments WHERE machine IS NULL OR version IS NULL");
  while (each.Step()) environments.emplace_back(each.Text(0), FactsOf(each.Text(1)));
  Statement put = database.Prepare("UPDATE environments SET machine = ?, version = ? WHERE id = ?");
  for (const auto& [id, facts] : environments) {
    put.Bind(1, MachineOf(facts));
    put.Bind(2, VersionOf(facts));
    put.Bind(3, id);
    put.Run();
  }
}

}  // namespace

void FillLineage(Database& database) {
  FillSetups(database);
  FillOrigins(database);
}

}  // namespace ridgeline
