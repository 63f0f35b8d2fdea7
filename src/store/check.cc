#include "store/check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "run/figures.h"
#include "run/presets.h"
#include "run/result.h"
#include "run/spec.h"
#include "store/schema.h"
#include "store/views.h"

namespace ridgeline::store {
namespace {

constexpr size_t kMaxOfAKind = 20;  // most listed problems of one kind

// Adds one problem for each row of `sql`: `before`, the first column's text, `after`.
void AddRows(Database& database, const std::string& sql, const std::string& before, const std::string& after,
             std::vector<std::string>& problems) {
  Statement statement = database.Prepare(sql);
  for (size_t found = 0; statement.Step(); ++found) {
    if (found == kMaxOfAKind) {
      problems.push_back(before + "…: and more of the same");
      return;
    }
    problems.push_back(before + statement.Text(0) + after);
  }
}

bool ColumnAgrees(const RunSpec& spec, const Field& field, const Cell& cell) {
  // A row from before the column `model` has the name from the spec's text.
  if (field.name == "model" && cell == Cell(NameInText(spec))) return true;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        using Stored = std::conditional_t<std::is_same_v<T, bool>, int64_t, T>;
        const auto* stored = std::get_if<Stored>(&cell);
        return stored != nullptr && *stored == static_cast<Stored>(value);
      },
      ValueOf(spec, field));
}

// Returns the problem of a point, or nothing. The row has the point's id, its spec, then its fields.
std::string PointProblem(const Statement& row) {
  const std::string id = row.Text(0);
  try {
    const RunSpec spec = DecodeSpec(ParseJson(row.Text(1), "spec"), "spec");
    if (EncodeSpec(spec) != row.Text(1)) return fmt::format("point {}: its spec is not canonical", id);
    if (PointId(spec) != id) return fmt::format("point {}: its spec hashes to {}", id, PointId(spec));
    int column = 2;
    for (const Field& field : Fields()) {
      if (!ColumnAgrees(spec, field, row.Value(column++))) {
        return fmt::format("point {}: its column {} is not what its spec says", id, field.name);
      }
    }
  } catch (const Error& e) {
    return fmt::format("point {}: {}", id, e.message());
  }
  return {};
}

void CheckPoints(Database& database, std::vector<std::string>& problems) {
  std::string columns;
  for (const Field& field : Fields()) columns += fmt::format(", {}", field.name);
  Statement row = database.Prepare(fmt::format("SELECT id, spec{} FROM points ORDER BY id", columns));
  for (size_t found = 0; row.Step();) {
    std::string problem = PointProblem(row);
    if (problem.empty()) continue;
    if (++found > kMaxOfAKind) {
      problems.emplace_back("point …: and more of the same");
      return;
    }
    problems.push_back(std::move(problem));
  }
}

// The columns of `results` that hold JSON.
std::vector<std::string> JsonColumns() {
  std::vector<std::string> columns = {"evidence"};
  for (const Figure& figure : Figures()) {
    if (figure.is_series() || figure.is_object()) columns.emplace_back(figure.name);
  }
  return columns;
}

// SQL that is true if `column` of `r` does not fit the figure's type and range. A figure that was not taken is NULL.
std::string WrongFigureSql(const Figure& figure) {
  const std::string range = fmt::format("BETWEEN {} AND {}", figure.min, figure.max);
  if (figure.type() == "integer" || figure.type() == "number") return fmt::format("r.{} NOT {}", figure.name, range);
  if (figure.type() == "true or false") return fmt::format("r.{} NOT IN (0, 1)", figure.name);
  if (figure.type() == "text") return "0";
  if (figure.type() == "figures") {
    return fmt::format(
        "CASE WHEN json_valid(r.{0}) THEN json_type(r.{0}) <> 'object' OR EXISTS (SELECT 1 FROM json_each(r.{0}) AS e "
        "WHERE (json_type(e.value, '$.value') IN ('integer', 'real') AND json_type(e.value, '$.unit') = 'text') IS NOT "
        "TRUE) ELSE 0 END",
        figure.name);
  }
  const bool amounts = figure.type() == "amounts";
  const std::string_view types = amounts || figure.type() == "integers" ? "'integer'" : "'integer', 'real'";
  // A number that is not finite is stored as null.
  const std::string_view nothing = figure.type() == "numbers" ? "e.type <> 'null' AND " : "";
  return fmt::format(
      "CASE WHEN json_valid(r.{0}) THEN json_type(r.{0}) <> '{1}' OR EXISTS (SELECT 1 FROM json_each(r.{0}) AS e WHERE "
      "{2}NOT (e.type IN ({3}) AND e.value {4})) ELSE 0 END",
      figure.name, amounts ? "object" : "array", nothing, types, range);
}

void CheckFigures(Database& database, std::vector<std::string>& problems) {
  for (const Figure& figure : Figures()) {
    AddRows(database, fmt::format("SELECT r.point_id FROM results AS r WHERE {}", WrongFigureSql(figure)),
            "result of point ",
            fmt::format(": its {} is not of the type '{}' from {} to {}", figure.name, figure.type(), figure.min,
                        figure.max),
            problems);
  }
  // Combinations that no run can have, whoever measured it.
  constexpr std::pair<std::string_view, std::string_view> kNonsense[] = {
      {"r.ended_unix_ns < r.started_unix_ns", "it ended before it began"},
      {"r.step_p95_ns < r.step_median_ns", "its step_p95_ns is below its step_median_ns"},
      {"r.repeat > p.repeats", "its repeat is beyond those of its point"},
      {"r.status = 'skipped_predicted_oom' AND r.provenance <> 'predicted'",
       "it was skipped, and says it was measured"},
  };
  for (const auto& [condition, words] : kNonsense) {
    AddRows(
        database,
        fmt::format("SELECT r.point_id FROM results AS r JOIN points AS p ON p.id = r.point_id WHERE {}", condition),
        "result of point ", fmt::format(": {}", words), problems);
  }
}

void CheckViews(Database& database, std::vector<std::string>& problems) {
  for (const std::string& view : OtherViews(database)) {
    problems.push_back(fmt::format(
        "view {}: it is missing, or not as this ridgeline makes it; the next `ridgeline run` makes it", view));
  }
  for (const std::string_view view : ViewNames()) {
    try {
      database.Prepare(fmt::format("SELECT * FROM {} LIMIT 1", view)).Step();
    } catch (const Error& e) {
      problems.push_back(fmt::format("view {}: it cannot be queried: {}", view, e.message()));
    }
  }
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

}  // namespace

std::vector<std::string> CheckStore(Database& database) {
  std::vector<std::string> problems;
  try {
    for (const std::string& stranger : Strangers(database)) {
      problems.push_back(PrintableLine(stranger) + ": Ridgeline makes none of this name");
      if (problems.size() > kMaxOfAKind) break;
    }
    if (!problems.empty()) return problems;  // reading on could run what a stranger wrote
    AddRows(database, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'", "file: ", "",
            problems);
    if (!problems.empty()) return problems;  // data read from a damaged file means nothing
    AddRows(database, R"(SELECT "table" || ' row ' || coalesce(rowid, '?') || ' names a missing row of ' || parent
                       FROM pragma_foreign_key_check)",
            "", "", problems);
    CheckPoints(database, problems);
    CheckFigures(database, problems);
    CheckViews(database, problems);
    for (const std::string& column : JsonColumns()) {
      AddRows(database, fmt::format("SELECT point_id FROM results WHERE NOT json_valid({})", column),
              "result of point ", ": its " + column + " is not JSON", problems);
    }
    AddRows(database, "SELECT key FROM jobs WHERE NOT json_valid(evidence)", "job ", ": its evidence is not JSON",
            problems);
    AddRows(database, "SELECT id FROM environments WHERE NOT json_valid(environment)", "environment ", " is not JSON",
            problems);
    AddRows(database, fmt::format("SELECT point_id FROM results WHERE status NOT IN ({})", Quoted(StatusNames())),
            "result of point ", ": its status is not one of the trainer contract's", problems);
    AddRows(database,
            fmt::format(
                "SELECT point_id FROM results WHERE iif(status = 'infrastructure', reason NOT IN ({}), reason <> '')",
                Quoted(ReasonNames())),
            "result of point ", ": its reason does not go with its status", problems);
    AddRows(database,
            fmt::format("SELECT point_id FROM results WHERE provenance NOT IN ('{}', '{}', '{}')",
                        ProvenanceName(Provenance::kMeasured), ProvenanceName(Provenance::kPredicted),
                        ProvenanceName(Provenance::kPublished)),
            "result of point ", ": its provenance is not one of the trainer contract's", problems);
    AddRows(database, "SELECT point_id FROM latest GROUP BY point_id, setup HAVING count(*) <> 1", "point ",
            " has more than one latest result", problems);
    AddRows(database,
            "SELECT r.point_id FROM results AS r JOIN jobs AS j ON j.key = r.job_key "
            "WHERE r.campaign <> j.campaign OR r.setup <> j.setup",
            "result of point ", ": its campaign or setup is not its job's", problems);
    AddRows(database,
            R"(SELECT jp.point_id || ' of job ' || jp.job_key FROM job_points AS jp JOIN jobs AS j ON j.key = jp.job_key
               WHERE j.state IN ('ended', 'lost') AND NOT EXISTS
                 (SELECT 1 FROM results AS r WHERE r.point_id = jp.point_id AND r.attempt = jp.attempt))",
            "point ", " has no result, but the job ended", problems);
    AddRows(database,
            R"(SELECT r.point_id FROM results AS r LEFT JOIN job_points AS jp
                 ON jp.job_key = r.job_key AND jp.point_id = r.point_id
               WHERE r.job_key IS NOT NULL AND jp.attempt IS NOT r.attempt)",
            "result of point ", ": its attempt is not its job's", problems);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput) throw;
    problems.push_back(e.message());  // damage that stopped the check
  }
  return problems;
}

}  // namespace ridgeline::store
