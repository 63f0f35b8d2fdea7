#include "regress/measurements.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/table.h"
#include "report/steps.h"
#include "store/store.h"

namespace ridgeline::regress {
namespace {

// Adds the figures of each run of one measurement.
void AddStepTimes(const std::vector<Cell>& row, MeasuredRuns& runs) {
  for (const stats::SteadySteps& run :
       report::SteadyRuns(CellText(row[5]), CellInteger(row[6]), CellInteger(row[7]), CellInteger(row[8]))) {
    const bool is_first = runs.log_step_times.empty();
    runs.log_step_times.push_back(run.log_median);
    runs.warm_up_steps = std::max(runs.warm_up_steps, static_cast<int64_t>(run.warm_up));
    runs.effective_steps = is_first ? run.effective_size : std::min(runs.effective_steps, run.effective_size);
  }
}

MeasuredRuns RunsOf(const std::vector<Cell>& row) {
  MeasuredRuns runs;
  runs.failure = CellText(row[4]);
  if (runs.failure.empty()) {
    AddStepTimes(row, runs);
    runs.device_peak_bytes = CellInteger(row[9]);
    runs.rss_peak_bytes = CellInteger(row[10]);
    runs.device_peak_kind = CellText(row[15]);
    runs.device_reserved_bytes = CellInteger(row[16]);
    runs.note = CellText(row[17]);
  }
  runs.failures = CellInteger(row[18]);
  if (const auto* share = std::get_if<double>(&row[19])) runs.others_share = *share;
  runs.campaign = CellText(row[11]);
  runs.commit = CellText(row[12]);
  runs.host = CellText(row[13]);
  runs.ended_unix_ns = CellInteger(row[14]);
  return runs;
}

std::string Query(const MeasurementChoice& choice) {
  const char* view = choice.newest ? "runs" : "measurements";
  std::string where =
      "status NOT IN ('infrastructure', 'cancelled') AND setup ->> '$.predicted_on' IS NULL "
      "AND (:campaign IS NULL OR campaign = :campaign) "
      "AND (:beginning IS NULL OR substr(campaign, 1, length(:beginning)) = :beginning) "
      "AND (:commit IS NULL OR environment ->> '$.git_commit' = :commit)";
  if (choice.before_unix_ns > 0) where += fmt::format(" AND ifnull(ended_unix_ns, 0) < {}", choice.before_unix_ns);
  if (!choice.left_out.empty()) {
    where +=
        " AND campaign NOT IN (SELECT value ->> 0 FROM json_each(:left_out) WHERE value ->> 1 = '') "
        "AND (campaign, point_id, setup) NOT IN "
        "(SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:left_out))";
  }
  if (choice.most > 0) {
    where = fmt::format(
        "result IN (SELECT result FROM (SELECT result, row_number() OVER "
        "(PARTITION BY point_id, setup, ifnull(machine, ''), failure IS NULL "
        "ORDER BY ifnull(ended_unix_ns, 0) DESC, result DESC) AS place FROM {} WHERE {}) WHERE place <= {})",
        view, where, choice.most);
  }
  return fmt::format(
      "SELECT point_id, spec, setup, ifnull(machine, ''), ifnull(failure, ''), all_steps_ns, warmup_steps, steps, "
      "step_median_ns, device_peak_bytes, rss_peak_bytes, campaign, "
      "coalesce(nullif(environment ->> '$.git_commit', ''), nullif(version, ''), campaign), "
      "coalesce((SELECT nullif(evidence ->> '$.node', '') FROM jobs WHERE key = job_key), "
      "environment ->> '$.hostname', ''), ended_unix_ns, device_peak_kind, device_reserved_bytes, "
      "ifnull(run_note, ''), iif(failure IS NULL, 0, (SELECT count(*) FROM results AS a WHERE "
      "a.point_id = m.point_id AND a.setup = m.setup AND a.campaign = m.campaign AND "
      "a.status NOT IN ('ok', 'infrastructure', 'cancelled'))), "
      "cores_others_share FROM {} AS m WHERE {} "
      "ORDER BY (SELECT rowid FROM points WHERE id = point_id), setup, ifnull(machine, ''), ended_unix_ns, result",
      view, where);
}

}  // namespace

std::vector<MeasuredCell> ReadMeasurements(store::Store& store, const MeasurementChoice& choice) {
  std::map<std::string, std::string> texts;
  if (choice.campaign.ends_with('*')) {
    texts["beginning"] = choice.campaign.substr(0, choice.campaign.size() - 1);
  } else if (!choice.campaign.empty()) {
    texts["campaign"] = choice.campaign;
  }
  if (!choice.commit.empty()) texts["commit"] = choice.commit;
  if (!choice.left_out.empty()) {
    Json left_out = Json::array();
    for (const LeftOutMeasurements& each : choice.left_out)
      left_out.push_back(Json::array({each.campaign, each.point_id, each.setup}));
    texts["left_out"] = DumpJson(left_out);
  }
  std::vector<MeasuredCell> cells;
  for (const std::vector<Cell>& row : store.Query(Query(choice), texts).rows) {
    MeasuredCell cell{CellText(row[0]), CellText(row[1]), CellText(row[2]), CellText(row[3]), {}};
    const bool known = !cells.empty() && cells.back().point_id == cell.point_id && cells.back().setup == cell.setup &&
                       cells.back().machine == cell.machine;
    if (!known) cells.push_back(std::move(cell));
    cells.back().measurements.push_back(RunsOf(row));
  }
  return cells;
}

}  // namespace ridgeline::regress
