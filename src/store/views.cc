#include "store/views.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "run/disturbance.h"
#include "run/families.h"
#include "run/fields.h"
#include "run/figures.h"
#include "run/gpu_peaks.h"
#include "run/gpus.h"
#include "run/names.h"
#include "run/result.h"
#include "store/store.h"

namespace ridgeline::store {
namespace {

// The engine's memory categories (docs/store.md). A trainer may have others. All are in planned_bytes_by_category.
constexpr std::array<std::string_view, 6> kCategories = {"parameters",  "gradients", "optimizer",
                                                         "activations", "workspace", "logits"};

// The columns of `results` that the views rename or leave out.
constexpr std::array<std::string_view, 3> kHidden = {"number", "point_id", "environment_id"};

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void AddFigureColumns(Database& database) {
  const std::vector<std::string> present = ColumnsOf(database, "results");
  for (const Figure& figure : Figures()) {
    if (Contains(present, figure.name)) continue;
    const std::string_view empty = figure.is_series()        ? " NOT NULL DEFAULT '[]'"
                                   : figure.is_object()      ? " NOT NULL DEFAULT '{}'"
                                   : figure.type() == "text" ? " NOT NULL DEFAULT ''"
                                                             : "";
    database.Execute(fmt::format("ALTER TABLE results ADD COLUMN {} {}{}", figure.name, figure.sql_type(), empty));
  }
}

void AddFieldColumns(Database& database) {
  const std::vector<std::string> present = ColumnsOf(database, "points");
  for (const Field& field : Fields()) {
    if (Contains(present, field.name)) continue;
    const std::string_view type = field.type() == "number" ? "REAL" : field.type() == "text" ? "TEXT" : "INTEGER";
    database.Execute(
        fmt::format("ALTER TABLE points ADD COLUMN {0} {1};"
                    "UPDATE points SET {0} = spec ->> '$.{0}'",
                    field.name, type));
  }
  for (const Field& field : Fields()) {
    if (field.unsaid.empty()) continue;
    const std::string unsaid = field.type() == "true or false" ? std::string(field.unsaid == "true" ? "1" : "0")
                                                               : fmt::format("'{}'", field.unsaid);
    database.Execute(fmt::format("UPDATE points SET {0} = {1} WHERE {0} IS NULL", field.name, unsaid));
  }
}

// SQL that is true if `row` of `results` is the last attempt among results measured as the same.
std::string SpeaksSql(std::string_view row) {
  return fmt::format(
      "{0}.attempt = (SELECT max(attempt) FROM results WHERE point_id = {0}.point_id AND setup = {0}.setup AND "
      "campaign = {0}.campaign)",
      row);
}

// SQL of the order of a point's measurements with one setup, the newest last.
std::string OrderSql(std::string_view row) {
  return fmt::format("({0}, ifnull({1}.ended_unix_ns, 0), {1}.attempt)", StandsSql(row), row);
}

// A row for each step of each figure that has one value for each step. The figure has its name from a result's JSON.
std::string SeriesSql() {
  std::string sql;
  for (const Figure& figure : Figures()) {
    if (!figure.is_series()) continue;
    sql += fmt::format(
        "{}SELECT point_id, number AS result, '{}' AS figure, key + 1 AS step, value FROM latest, json_each({})",
        sql.empty() ? "" : " UNION ALL ", figure.key.substr(0, figure.key.find('.')), figure.name);
  }
  return sql;
}

// Why a run did not end ok, in words for people. After a failure of the infrastructure: that it was not measured.
constexpr std::string_view kFailure = R"sql(CASE r.status
  WHEN 'ok' THEN NULL
  WHEN 'oom_device' THEN 'out of memory'
  WHEN 'oom_host' THEN 'out of memory'
  WHEN 'skipped_predicted_oom' THEN 'predicted out of memory'
  WHEN 'timeout' THEN 'time limit passed'
  WHEN 'infrastructure' THEN 'not measured (' || CASE r.reason
    WHEN 'node' THEN 'its node failed'
    WHEN 'start' THEN 'it could not be started'
    WHEN 'storage' THEN 'its storage failed'
    WHEN 'image' THEN 'its image could not be had'
    WHEN 'limit' THEN 'a limit of the site'
    WHEN 'rights' THEN 'no rights'
    ELSE r.reason END || ')'
  ELSE r.status END)sql";

constexpr std::string_view kTrainer =
    "iif(p.trainer = 'ridgeline', (SELECT group_concat(value, ' ') FROM json_each(r.setup, '$.trainer')), p.trainer)";

// The same words as ParallelWords of run/parallelism.h.
constexpr std::string_view kParallel = R"sql(iif(p.tensor_parallel > 1,
    ', TP ' || p.tensor_parallel || iif(p.sequence_parallel, '', ', no SP'), '') ||
  iif(p.pipeline_parallel > 1, ', PP ' || p.pipeline_parallel, '') ||
  iif(p.context_parallel > 1, ', CP ' || p.context_parallel, '') ||
  iif(p.expert_parallel > 1, ', EP ' || p.expert_parallel, '') ||
  iif(p.virtual_pipeline > 1, ', VP ' || p.virtual_pipeline, '') ||
  iif(p.shard_ranks > 0, ', shards of ' || p.shard_ranks, ''))sql";

// A step in words for people, from r and p. Usual values are left out. The last four begin with a comma, or are empty.
struct Words {
  std::string_view column;
  std::string_view sql;
};
constexpr std::array<Words, 6> kWords = {{
    {"model_words", R"sql(p.model || iif(p.model GLOB p.family || '-[0-9]*x[0-9]*',
  ' (heads ' || p.heads || '/' || p.kv_heads || ' of ' || p.head_dim || ', ffn ' || p.ffn ||
  ', vocabulary ' || p.vocab || ')', ''))sql"},
    {"format", R"sql(p.precision ||
  iif(p.state_precision <> 'fp32', ' with ' || p.state_precision || ' state', '') ||
  iif(p.primary_weights = 'quantized', ', weights quantized', ''))sql"},
    {"step_words", R"sql(iif(p.grad_accumulation > 1, ', accumulation ' || p.grad_accumulation, '') ||
  iif(p.dropout > 0, ', dropout ' || p.dropout, '') ||
  iif(p.optimizer <> iif(p.family = 'stack', 'adam', 'adamw'), ', ' || p.optimizer, ''))sql"},
    {"parallel_words", "{parallel}"},
    {"ranks_words", R"sql(iif(p.ranks > 1, ', ' || p.ranks || ' ranks', '') || {parallel} ||
  iif(p.shard <> 'none', ', sharded', '') ||
  iif(p.communicator <> 'self', ', ' || p.communicator || ' communicator', ''))sql"},
    {"place_words",
     R"sql(CASE p.device WHEN 'cuda' THEN ', on ' || p.gpu WHEN 'cpu' THEN '' ELSE ', on ' || p.device END ||
  iif({trainer} <> 'ridgeline-train', ', by ' || {trainer}, '') ||
  CASE WHEN r.setup ->> '$.cpus' > 0
       THEN ', ' || (r.setup ->> '$.cpus') || iif(r.setup ->> '$.cpus' = 1, ' core', ' cores') || ' at most' ELSE '' END)sql"},
}};

// A note on a measurement besides its figures, from r and p. It says that there are fewer measured steps than asked
// for, or only warm-up. Or it asks for the unit of its times, or says that the run hung. NULL if none of these holds.
constexpr std::string_view kRunNote = R"sql(CASE WHEN r.status = 'ok' AND r.provenance = 'measured' THEN
  nullif(ltrim(ifnull('; ' || CASE WHEN r.measured_steps < p.steps * iif(r.repeat > 0, r.repeat, p.repeats)
         THEN 'steps ' || r.measured_steps || iif(r.evidence ->> '$.steps_at_least' IS NULL, '', ' or more') || ' of ' || (p.steps * iif(r.repeat > 0, r.repeat, p.repeats))
         WHEN r.steady_tokens_per_s IS NULL AND r.cold_tokens_per_s IS NOT NULL THEN 'no steady steps' END, '') ||
    ifnull('; ' || (r.evidence ->> '$.unit_question'), '') || ifnull('; ' || (r.evidence ->> '$.hung'), ''),
    '; '), '') END)sql";

// The interval of a prediction. The interval of a measurement follows from its steps.
constexpr std::array<Words, 4> kIntervals = {{
    {"steady_tokens_per_s_low",
     "{row}.steady_tokens_per_s * {row}.step_median_ns / CAST({row}.evidence ->> '$.step_high_ns' AS REAL)"},
    {"steady_tokens_per_s_high",
     "{row}.steady_tokens_per_s * {row}.step_median_ns / CAST({row}.evidence ->> '$.step_low_ns' AS REAL)"},
    {"cold_tokens_per_s_low", "CAST({row}.evidence ->> '$.cold_low_tokens_per_s' AS REAL)"},
    {"cold_tokens_per_s_high", "CAST({row}.evidence ->> '$.cold_high_tokens_per_s' AS REAL)"},
}};

// The interval as columns of `row`, of results, whose names begin with `prefix`.
std::string IntervalColumns(std::string_view row, std::string_view prefix) {
  std::string columns;
  for (const Words& interval : kIntervals) {
    const std::string sql = fmt::format(fmt::runtime(interval.sql), fmt::arg("row", row));
    columns += fmt::format(", {} AS {}{}", sql, prefix, interval.column);
  }
  return columns;
}

// Shared by reports, from r and p.
constexpr std::array<Words, 9> kShared = {{
    {"run_note", kRunNote},
    // The memory that the trainer says the GPU held, and what that counts.
    {"device_bytes", "coalesce(r.device_peak_bytes, r.device_reserved_bytes)"},
    {"device_bytes_kind", R"sql(CASE WHEN r.device_peak_bytes IS NOT NULL THEN r.device_peak_kind
  WHEN r.device_reserved_bytes IS NOT NULL THEN 'reserved' ELSE '' END)sql"},
    // The memory of the GPU if known, else of the process.
    {"observed_peak_bytes", "coalesce(r.device_peak_bytes, r.device_reserved_bytes, r.rss_peak_bytes)"},
    {"out_of_memory", "r.status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')"},
    {"wanted_bytes", R"sql(CASE WHEN r.status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')
  THEN coalesce(CAST(r.evidence ->> '$.wanted_bytes' AS INTEGER), r.planned_peak_bytes) END)sql"},
    {"available_bytes", R"sql(CASE WHEN r.status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')
  THEN CAST(r.evidence ->> '$.available_bytes' AS INTEGER) END)sql"},
    // Fewer than four measured steps do not show how much they vary.
    {"too_few", R"sql(r.status = 'ok' AND r.provenance = 'measured' AND
  json_array_length(r.all_steps_ns) - p.warmup_steps < 4)sql"},
    // Orders policies by how much they recompute, the least first; full/K by its K.
    {"policy_rank", R"sql(CASE p.checkpointing WHEN 'none' THEN 0 WHEN 'selective' THEN 1 WHEN 'full' THEN 2
  ELSE 2 + CAST(substr(p.checkpointing, 6) AS INTEGER) END)sql"},
}};

// The peak of a GPU in the precision of p, in TFLOP/s; NULL if none is known.
std::string PeakSql() {
  std::string sql = "CASE p.gpu";
  for (const Gpu& gpu : Gpus()) {
    std::string of_gpu;
    for (const std::string_view name : kNames<Precision>) {
      if (const auto peak = PeakFlops(gpu.name, *ValueNamed<Precision>(name))) {
        of_gpu += fmt::format(" WHEN '{}' THEN {:.1f}", name, *peak / 1e12);
      }
    }
    if (!of_gpu.empty()) sql += fmt::format(" WHEN '{}' THEN CASE p.precision{} END", gpu.name, of_gpu);
  }
  return sql + " END";
}

// The part of its job that a run is: its time over that of all runs of the job. NULL if a run has no time.
constexpr std::string_view kShareOfJob = R"sql((SELECT CASE WHEN count(*) = 1 THEN 1.0
  WHEN count(*) = count(o.ended_unix_ns - o.started_unix_ns)
  THEN 1.0 * (r.ended_unix_ns - r.started_unix_ns) / nullif(sum(o.ended_unix_ns - o.started_unix_ns), 0) END
  FROM job_points AS jp LEFT JOIN results AS o ON o.point_id = jp.point_id AND o.attempt = jp.attempt
  WHERE jp.job_key = r.job_key))sql";

// What the run's job was billed, in dollars, and what was predicted for the run. Evidence of the job has both
// (driver/cost.h). Most jobs are not billed.
std::string BilledSql() {
  return fmt::format(
      "(SELECT CAST(j.evidence ->> '$.billed_usd' AS REAL) * {} FROM jobs AS j WHERE j.key = r.job_key AND "
      "j.evidence ->> '$.billed_usd' IS NOT NULL)",
      kShareOfJob);
}
constexpr std::string_view kPredictedUsd = R"sql((SELECT json_extract(j.evidence ->> '$.predicted_usd',
  '$[' || jp.ordinal || ']') FROM jobs AS j JOIN job_points AS jp ON jp.job_key = j.key AND jp.point_id = r.point_id
  WHERE j.key = r.job_key AND json_valid(j.evidence ->> '$.predicted_usd')))sql";

// Figures that follow from other figures of a result, from r and p. Figures of a GPU are for runs on GPUs, where each
// rank has one. FLOPs are the model's, without recomputation. "causal" counts attention as the half that the mask
// leaves. An emulated format has no share of its peak.
std::vector<std::pair<std::string, std::string>> DerivedFigures() {
  const auto of_gpu = [](std::string_view value) {
    return fmt::format("iif(p.device = 'cuda' AND r.status = 'ok', {}, NULL)", value);
  };
  const auto tflops = [](std::string_view kind) {
    return fmt::format("r.model_{}_flops_per_step / r.step_median_ns / 1000", kind);
  };
  const auto mfu = [&](std::string_view kind) {
    return of_gpu(fmt::format("iif(r.emulated, NULL, {} / ({}))", tflops(kind), PeakSql()));
  };
  return {
      {"step_mean_ns",
       "(SELECT CAST(round(avg(s.value)) AS INTEGER) FROM json_each(r.all_steps_ns) AS s "
       "WHERE s.key >= p.warmup_steps AND r.status = 'ok')"},
      {"tokens_per_s_per_gpu", of_gpu("r.steady_tokens_per_s / p.ranks")},
      {"tflops_per_gpu", of_gpu(tflops("causal"))},
      {"mfu", mfu("causal")},
      {"tflops_per_gpu_noncausal", of_gpu(tflops("noncausal"))},
      {"mfu_noncausal", mfu("noncausal")},
      {"peak_tflops_per_gpu", of_gpu(PeakSql())},
      // The energy of rank 0's GPU, over its share of the tokens.
      {"energy_j_per_step", "r.gpu_energy_j / r.measured_steps"},
      {"energy_j_per_token", "r.gpu_energy_j / r.measured_steps * p.ranks / r.tokens_per_step"},
      {"billed_usd", BilledSql()},
      {"predicted_usd", std::string(kPredictedUsd)},
      {"disturbed_by_others",
       fmt::format("iif(r.status = 'ok' AND r.cores_others_share > {}, r.cores_others_share, NULL)", kHeadlineShare)},
  };
}

// The figure with the field's name. If it was taken, it counts instead of the field.
const Figure* FigureOf(const Field& field) {
  const auto it =
      std::find_if(Figures().begin(), Figures().end(), [&](const Figure& figure) { return figure.name == field.name; });
  return it == Figures().end() ? nullptr : &*it;
}

// The columns of a measurement, from r (its result), p (its point) and e (where it ran).
std::string MeasurementColumns(Database& database) {
  std::string columns = "p.id AS point_id, r.number AS result";
  for (const Field& field : Fields()) {
    if (field.name != "trainer" && FigureOf(field) == nullptr) {
      columns += fmt::format(", {} AS {}", FieldSql(field), field.name);
    }
  }
  for (const std::string& column : ColumnsOf(database, "results")) {
    if (std::find(kHidden.begin(), kHidden.end(), column) != kHidden.end()) continue;
    const Field* field = FindField(column);
    columns +=
        field == nullptr ? ", r." + column : fmt::format(", ifnull(r.{0}, {1}) AS {0}", column, FieldSql(*field));
  }
  for (const std::string_view category : kCategories) {
    columns += fmt::format(", r.planned_bytes_by_category ->> '$.{0}' AS planned_{0}_bytes", category);
  }
  for (const Words& words : kWords) {
    const std::string sql =
        fmt::format(fmt::runtime(words.sql), fmt::arg("trainer", kTrainer), fmt::arg("parallel", kParallel));
    columns += fmt::format(", {} AS {}", sql, words.column);
  }
  columns += IntervalColumns("r", "");
  for (const Words& shared : kShared) columns += fmt::format(", {} AS {}", shared.sql, shared.column);
  for (const auto& [column, sql] : DerivedFigures()) columns += fmt::format(", {} AS {}", sql, column);
  return columns + fmt::format(", {} AS failure, {} AS trainer", kFailure, kTrainer) +
         ", p.spec ->> '$.own' AS own, r.setup ->> '$.cpus' AS cpus, e.machine, e.version, p.spec, e.environment";
}

// The prediction for each result that was measured or published: of the same point and trainer. For a published figure
// the prediction is for the device that it names, else for any device. The newest counts. Throughputs are compared if
// both or neither were emulated. Memory is compared with what a device held. A difference is the predicted figure over
// the other one, less 1; the "off" columns have no sign.
constexpr std::string_view kForecasts = R"sql(SELECT *, abs(steady_difference_percent) AS steady_off_percent,
  abs(cold_difference_percent) AS cold_off_percent, abs(memory_difference_percent) AS memory_off_percent
FROM (SELECT m.number AS result,
  p.number AS forecast, p.setup ->> '$.predicted_on' AS predicted_on, p.setup ->> '$.trainer[0]' AS predicted_as,
  p.evidence ->> '$.basis' AS predicted_basis,
  p.step_median_ns AS predicted_step_ns,
  CAST(p.evidence ->> '$.step_low_ns' AS REAL) AS predicted_step_ns_low,
  CAST(p.evidence ->> '$.step_high_ns' AS REAL) AS predicted_step_ns_high,
  p.steady_tokens_per_s AS predicted_steady_tokens_per_s, p.cold_tokens_per_s AS predicted_cold_tokens_per_s{intervals},
  p.planned_peak_bytes AS predicted_peak_bytes,
  iif(m.status = 'ok' AND m.emulated = p.emulated,
      100 * (p.steady_tokens_per_s / m.steady_tokens_per_s - 1), NULL) AS steady_difference_percent,
  iif(m.status = 'ok' AND m.emulated = p.emulated,
      100 * (p.cold_tokens_per_s / m.cold_tokens_per_s - 1), NULL) AS cold_difference_percent,
  iif(m.status = 'ok', 100 * (1.0 * p.planned_peak_bytes /
      coalesce(m.device_peak_bytes, m.device_reserved_bytes) - 1), NULL) AS memory_difference_percent,
  row_number() OVER (PARTITION BY m.number ORDER BY
    ifnull(m.setup ->> '$.predicted_on' = p.setup ->> '$.predicted_on', 0) DESC, p.ended_unix_ns DESC, p.number DESC)
    AS nth_forecast
FROM results AS p JOIN points AS t ON t.id = p.point_id JOIN results AS m ON m.point_id = p.point_id
  AND (t.trainer <> 'ridgeline'
       OR m.setup ->> '$.trainer[0]' = ifnull(p.setup ->> '$.trainer[0]', 'ridgeline-train'))
  AND (m.setup ->> '$.predicted_on' IS NULL OR m.setup ->> '$.predicted_on' = p.setup ->> '$.predicted_on')
WHERE p.provenance = 'predicted' AND p.setup ->> '$.predicted_on' IS NOT NULL AND m.provenance <> 'predicted')
WHERE nth_forecast = 1)sql";

// Each view reads tables and the views before it.
constexpr std::array<std::string_view, 9> kViews = {"latest",     "measured", "runs",    "measurements", "sweep_cells",
                                                    "sweep_runs", "series",   "spreads", "forecasts"};

// The statements that make the views.
std::array<std::string, kViews.size()> ViewsSql(Database& database) {
  const std::string columns = MeasurementColumns(database);
  const auto rows_of = [&](std::string_view results) {
    return fmt::format(
        "SELECT {} FROM {} AS r JOIN points AS p ON p.id = r.point_id "
        "LEFT JOIN environments AS e ON e.id = r.environment_id",
        columns, results);
  };
  std::array<std::string, kViews.size()> rows = {
      // The search for a newer measurement ends with the first one. It begins with the campaigns whose names sort last,
      // because nights are named by their dates: after 500 nights each point has 500 measurements.
      fmt::format("SELECT * FROM results AS m WHERE {} AND (SELECT 1 FROM results AS r "
                  "WHERE r.point_id = m.point_id AND r.setup = m.setup AND {} > {} AND {} "
                  "ORDER BY r.campaign DESC LIMIT 1) IS NULL",
                  SpeaksSql("m"), OrderSql("r"), OrderSql("m"), SpeaksSql("r")),
      // A prediction is not a measurement, because nobody ran it.
      fmt::format("SELECT * FROM results AS m WHERE ({} OR {}) AND m.setup ->> '$.predicted_on' IS NULL",
                  StandsSql("m"), SpeaksSql("m")),
      rows_of("latest"),
      rows_of("measured"),
      "SELECT s.sweep, s.ordinal, s.point_id, ifnull(s.setup, w.setup) AS setup "
      "FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep",
      "SELECT s.sweep, s.ordinal, runs.* FROM sweep_cells AS s JOIN runs USING (point_id, setup)",
      SeriesSql(),
      // An index finds the points with more than one result, which are nearly always few.
      "SELECT point_id, setup, device_name, provenance, emulated, count(*) AS times_measured, "
      "min(steady_tokens_per_s) AS steady_min_tokens_per_s, max(steady_tokens_per_s) AS steady_max_tokens_per_s "
      "FROM measured WHERE status = 'ok' AND point_id IN "
      "(SELECT point_id FROM results GROUP BY point_id, setup HAVING count(*) > 1) "
      "GROUP BY point_id, setup, device_name, provenance, emulated HAVING count(*) > 1",
      fmt::format(kForecasts, fmt::arg("intervals", IntervalColumns("p", "predicted_"))),
  };
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = fmt::format("CREATE VIEW {} AS {}", kViews[i], rows[i]);
  return rows;
}

}  // namespace

std::vector<std::string> ColumnsOf(Database& database, const std::string& table) {
  std::vector<std::string> names;
  Statement statement = database.Prepare("SELECT name FROM pragma_table_info(?)");
  statement.Bind(1, table);
  while (statement.Step()) names.push_back(statement.Text(0));
  return names;
}

std::string RunNoteSql() { return std::string(kRunNote); }

std::string DerivedSql(std::string_view column) {
  for (const auto& [name, sql] : DerivedFigures()) {
    if (name == column) return sql;
  }
  throw Error(ErrorKind::kInternal, fmt::format("no figure is called {}", column));
}

std::string FieldSql(const Field& field) {
  if (field.type() == "text") return fmt::format("p.{}", field.name);
  if (field.Has(Field::kOfShape) || field.name == "rope_theta") {
    return fmt::format("iif(p.family = '{1}', nullif(p.{0}, 0), p.{0})", field.name, ModelFamily::kOther);
  }
  return field.Has(Field::kOfHarness) ? fmt::format("nullif(p.{}, 0)", field.name) : fmt::format("p.{}", field.name);
}

std::string StandsSql(std::string_view row) {
  std::string statuses;
  for (const std::string& name : StatusNames()) {
    if (!IsFinal(StatusFromName(name))) continue;
    statuses += (statuses.empty() ? "'" : ", '") + name + "'";
  }
  return fmt::format("({0}.retry = 0 AND {0}.status IN ({1}))", row, statuses);
}

void AddColumns(Database& database) {
  AddFieldColumns(database);
  AddFigureColumns(database);
}

std::vector<std::string> MissingColumns(Database& database) {
  std::vector<std::string> missing;
  const auto look = [&](const std::string& table, const auto& wanted) {
    const std::vector<std::string> present = ColumnsOf(database, table);
    for (const auto& each : wanted) {
      if (!Contains(present, each.name)) missing.emplace_back(each.name);
    }
  };
  look("points", Fields());
  look("results", Figures());
  return missing;
}

void MakeViews(Database& database) {
  for (const std::string_view view : kViews) database.Execute(fmt::format("DROP VIEW IF EXISTS {}", view));
  for (const std::string& sql : ViewsSql(database)) database.Execute(sql);
}

// Shadows all views, because a view of the file would read the file's other views.
void ShadowOtherViews(Database& database) {
  if (OtherViews(database).empty()) return;
  constexpr std::string_view kCreate = "CREATE VIEW ";
  for (const std::string& sql : ViewsSql(database)) {
    database.Execute(fmt::format("CREATE TEMP VIEW {}", sql.substr(kCreate.size())));
  }
}

std::span<const std::string_view> ViewNames() { return kViews; }

std::vector<std::string> OtherViews(Database& database) {
  std::vector<std::string> others;
  Statement made = database.Prepare("SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ? AND sql = ?");
  const auto sql = ViewsSql(database);
  for (size_t i = 0; i < sql.size(); ++i) {
    made.Bind(1, kViews[i]);
    made.Bind(2, sql[i]);
    if (!made.Step()) others.emplace_back(kViews[i]);
    made.Reset();
  }
  return others;
}

}  // namespace ridgeline::store
