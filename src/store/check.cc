#include "store/check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "run/figures.h"
#include "run/result.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

constexpr size_t kMaxOfAKind = 20;  // problems of one kind that are listed

// Adds one problem a row of `sql`: the words before the first column's text, and after.
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
  return std::visit(
      [&](auto member) {
        const auto& value = spec.*member;
        using T = std::decay_t<decltype(value)>;
        using Stored = std::conditional_t<std::is_same_v<T, bool>, int64_t, T>;
        const auto* stored = std::get_if<Stored>(&cell);
        return stored != nullptr && *stored == static_cast<Stored>(value);
      },
      field.member);
}

// Empty, or what is wrong with the point whose fields follow `id` and `spec` in the row.
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

// Of `results`.
std::vector<std::string> JsonColumns() {
  std::vector<std::string> columns = {"evidence"};
  for (const Figure& figure : Figures()) {
    if (figure.is_series() || figure.type() == "amounts") columns.emplace_back(figure.name);
  }
  return columns;
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
    AddRows(database, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'", "file: ", "",
            problems);
    if (!problems.empty()) return problems;  // what is read from a damaged file means nothing
    AddRows(database, R"(SELECT "table" || ' row ' || coalesce(rowid, '?') || ' names a missing row of ' || parent
                       FROM pragma_foreign_key_check)",
            "", "", problems);
    CheckPoints(database, problems);
    for (const std::string& column : JsonColumns()) {
      AddRows(database, fmt::format("SELECT point_id FROM results WHERE NOT json_valid({})", column),
              "result of point ", ": its " + column + " is not JSON", problems);
    }
    AddRows(database, "SELECT key FROM jobs WHERE NOT json_valid(evidence)", "job ", ": its evidence is not JSON",
            problems);
    AddRows(database, "SELECT id FROM environments WHERE NOT json_valid(environment)", "environment ", " is not JSON",
            problems);
    AddRows(database, fmt::format("SELECT point_id FROM results WHERE status NOT IN ({})", Quoted(StatusNames())),
            "result of point ", ": its status is none of the contract's", problems);
    AddRows(database,
            fmt::format(
                "SELECT point_id FROM results WHERE iif(status = 'infrastructure', reason NOT IN ({}), reason <> '')",
                Quoted(ReasonNames())),
            "result of point ", ": its reason is none that its status has", problems);
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
            "point ", " has no result, though the job ended", problems);
    AddRows(database,
            R"(SELECT r.point_id FROM results AS r LEFT JOIN job_points AS jp
                 ON jp.job_key = r.job_key AND jp.point_id = r.point_id
               WHERE r.job_key IS NOT NULL AND jp.attempt IS NOT r.attempt)",
            "result of point ", ": its attempt is not its job's", problems);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput) throw;
    problems.push_back(e.message());  // damage that stopped the looking
  }
  return problems;
}

}  // namespace ridgeline
