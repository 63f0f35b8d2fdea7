#include "store/schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "run/fields.h"
#include "run/figures.h"

namespace ridgeline {
namespace {

// `points` gets a column for each of RunSpec's fields, and the view `runs` its columns, from the field table.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE sweeps (
  name            TEXT PRIMARY KEY,
  description     TEXT NOT NULL,
  file            TEXT NOT NULL,
  text            TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE points (
  id   TEXT PRIMARY KEY,
  spec TEXT NOT NULL
) STRICT;

CREATE TABLE sweep_points (
  sweep    TEXT NOT NULL REFERENCES sweeps (name),
  ordinal  INTEGER NOT NULL,
  point_id TEXT NOT NULL REFERENCES points (id),
  PRIMARY KEY (sweep, ordinal),
  UNIQUE (sweep, point_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_points_by_point ON sweep_points (point_id);

CREATE TABLE jobs (
  number            INTEGER PRIMARY KEY,
  key               TEXT NOT NULL UNIQUE,
  sweep             TEXT NOT NULL REFERENCES sweeps (name),
  launcher          TEXT NOT NULL,
  native_id         TEXT NOT NULL,
  job_dir           TEXT NOT NULL,
  state             TEXT NOT NULL
                    CHECK (state IN ('intent', 'submitted', 'running', 'ended', 'lost', 'cancelled')),
  created_unix_ns   INTEGER NOT NULL,
  submitted_unix_ns INTEGER,
  ended_unix_ns     INTEGER,
  evidence          TEXT NOT NULL
) STRICT;
CREATE INDEX live_jobs ON jobs (state) WHERE state IN ('intent', 'submitted', 'running');

CREATE TABLE job_points (
  job_key  TEXT NOT NULL REFERENCES jobs (key),
  ordinal  INTEGER NOT NULL,
  point_id TEXT NOT NULL REFERENCES points (id),
  attempt  INTEGER NOT NULL CHECK (attempt > 0),
  PRIMARY KEY (job_key, point_id),
  UNIQUE (point_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE environments (
  id          TEXT PRIMARY KEY,
  environment TEXT NOT NULL
) STRICT;

CREATE TABLE results (
  number                         INTEGER PRIMARY KEY,
  point_id                       TEXT NOT NULL REFERENCES points (id),
  attempt                        INTEGER NOT NULL CHECK (attempt > 0),
  job_key                        TEXT,
  retry                          INTEGER NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  status                         TEXT NOT NULL,
  message                        TEXT NOT NULL,
  hint                           TEXT NOT NULL,
  evidence                       TEXT NOT NULL,
  provenance                     TEXT NOT NULL,
  emulated                       INTEGER NOT NULL CHECK (emulated IN (0, 1)),
  device_name                    TEXT NOT NULL,
  communicator_name              TEXT NOT NULL,
  parameters                     INTEGER,
  tokens_per_step                INTEGER,
  steady_tokens_per_s            REAL,
  cold_tokens_per_s              REAL,
  step_median_ns                 INTEGER,
  step_p95_ns                    INTEGER,
  step_cv                        REAL,
  all_steps_ns                   TEXT NOT NULL,
  loss                           TEXT NOT NULL,
  grad_norm                      TEXT NOT NULL,
  planned_peak_bytes             INTEGER,
  planned_bytes_by_category      TEXT NOT NULL,
  rss_peak_bytes                 INTEGER,
  model_causal_flops_per_step    REAL,
  model_noncausal_flops_per_step REAL,
  executed_flops_per_step        REAL,
  started_unix_ns                INTEGER,
  ended_unix_ns                  INTEGER,
  command                        TEXT NOT NULL,
  environment_id                 TEXT NOT NULL REFERENCES environments (id),
  UNIQUE (point_id, attempt),
  FOREIGN KEY (job_key, point_id) REFERENCES job_points (job_key, point_id)
) STRICT;

CREATE VIEW latest AS
  SELECT * FROM results AS r
  WHERE r.attempt = (SELECT max(attempt) FROM results WHERE point_id = r.point_id);
)sql";

constexpr std::string_view kVersion2 = "ALTER TABLE results ADD COLUMN skipped_steps INTEGER;";

constexpr std::string_view kVersion3 = "ALTER TABLE jobs ADD COLUMN started_unix_ns INTEGER;";

constexpr std::array<std::string_view, 3> kMigrations = {kVersion1, kVersion2, kVersion3};

// The engine's memory categories (docs/store.md); a trainer may have others, all are in planned_bytes_by_category.
constexpr std::array<std::string_view, 6> kCategories = {"parameters",  "gradients", "optimizer",
                                                         "activations", "workspace", "logits"};

std::vector<std::string> ColumnsOf(Database& database, const std::string& table) {
  std::vector<std::string> names;
  Statement statement = database.Prepare("SELECT name FROM pragma_table_info(?)");
  statement.Bind(1, table);
  while (statement.Step()) names.push_back(statement.Text(0));
  return names;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A figure that the file's `results` have not yet becomes a column; of older results it was not taken.
void AddFigureColumns(Database& database) {
  const std::vector<std::string> present = ColumnsOf(database, "results");
  for (const Figure& figure : Figures()) {
    if (Contains(present, figure.name)) continue;
    const std::string_view empty = figure.is_series()           ? " NOT NULL DEFAULT '[]'"
                                   : figure.type() == "amounts" ? " NOT NULL DEFAULT '{}'"
                                   : figure.type() == "text"    ? " NOT NULL DEFAULT ''"
                                                                : "";
    database.Execute(fmt::format("ALTER TABLE results ADD COLUMN {} {}{}", figure.name, figure.sql_type(), empty));
  }
}

// A field that the file's `points` have not yet becomes a column, filled from the specs that name it.
void AddFieldColumns(Database& database) {
  const std::vector<std::string> present = ColumnsOf(database, "points");
  for (const Field& field : Fields()) {
    if (Contains(present, field.name)) continue;
    static constexpr std::string_view kTypes[] = {"INTEGER", "REAL", "INTEGER", "TEXT"};  // by Field::Member's index
    database.Execute(
        fmt::format("ALTER TABLE points ADD COLUMN {0} {1};"
                    "UPDATE points SET {0} = spec ->> '$.{0}'",
                    field.name, kTypes[field.member.index()]));
  }
}

// A row for each step of each figure that has one a step. The figure is called as in a result's JSON.
std::string SeriesSql() {
  std::string sql;
  for (const Figure& figure : Figures()) {
    if (!figure.is_series()) continue;
    sql += fmt::format("{}SELECT point_id, '{}' AS figure, key + 1 AS step, value FROM latest, json_each({})",
                       sql.empty() ? "" : " UNION ALL ", figure.key.substr(0, figure.key.find('.')), figure.name);
  }
  return sql;
}

// Of each point its fields and its latest result; the same for each sweep it is in; and the steps of the results.
void MakeViews(Database& database) {
  std::string columns = "p.id AS point_id";
  for (const Field& field : Fields()) columns += fmt::format(", p.{}", field.name);
  for (const std::string& column : ColumnsOf(database, "results")) {
    if (column == "number" || column == "point_id" || column == "environment_id") continue;
    columns += ", r." + column;
  }
  for (const std::string_view category : kCategories) {
    columns += fmt::format(", r.planned_bytes_by_category ->> '$.{0}' AS planned_{0}_bytes", category);
  }
  database.Execute(fmt::format(
      "DROP VIEW IF EXISTS sweep_runs; DROP VIEW IF EXISTS runs; DROP VIEW IF EXISTS series;"
      "CREATE VIEW runs AS SELECT {}, p.spec, e.environment FROM latest AS r JOIN points AS p ON p.id = r.point_id "
      "LEFT JOIN environments AS e ON e.id = r.environment_id;"
      "CREATE VIEW sweep_runs AS SELECT s.sweep, s.ordinal, runs.* FROM sweep_points AS s "
      "JOIN runs ON runs.point_id = s.point_id;"
      "CREATE VIEW series AS {}",
      columns, SeriesSql()));
}

// PRAGMA user_version; 0 for an empty file. Throws for files that are not ours to touch.
size_t VersionOf(Database& database, size_t newest) {
  const int64_t version = database.Integer("PRAGMA user_version");
  const bool empty = version == 0 && database.Integer("SELECT count(*) FROM sqlite_master") == 0;
  if (!empty && database.Integer("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorKind::kInvalidInput,
                database.file() + " is an SQLite database of another program; it was left as it is",
                "name another file with --db");
  }
  if (version > static_cast<int64_t>(newest)) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has schema version {}, newer than the {} this ridgeline knows; it was left as it is",
                            database.file(), version, newest),
                "use the newer ridgeline that wrote it, or name another file with --db");
  }
  return static_cast<size_t>(std::max<int64_t>(version, 0));
}

bool HasEveryColumn(Database& database) {
  const std::vector<std::string> points = ColumnsOf(database, "points");
  const std::vector<std::string> results = ColumnsOf(database, "results");
  return std::all_of(Fields().begin(), Fields().end(), [&](const Field& f) { return Contains(points, f.name); }) &&
         std::all_of(Figures().begin(), Figures().end(), [&](const Figure& f) { return Contains(results, f.name); });
}

}  // namespace

std::span<const std::string_view> Migrations() { return kMigrations; }

void Migrate(Database& database, std::span<const std::string_view> migrations) {
  const auto up_to_date = [&] {
    return VersionOf(database, migrations.size()) == migrations.size() && HasEveryColumn(database);
  };
  if (up_to_date()) return;
  // Both are kept in the file. Results are wide: large pages halve the calls that writing 100,000 takes. With a
  // write-ahead log readers never wait for the writer, nor it for them.
  database.Execute("PRAGMA page_size = 16384; PRAGMA journal_mode = WAL");
  database.Begin();
  try {
    // Asked again under the lock: another process may have been quicker.
    for (size_t version = VersionOf(database, migrations.size()); version < migrations.size(); ++version) {
      database.Execute(std::string(migrations[version]));
    }
    AddFieldColumns(database);
    AddFigureColumns(database);
    MakeViews(database);
    database.Execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, migrations.size()));
    database.Commit();
  } catch (...) {
    database.Rollback();
    throw;
  }
}

void RequireSchema(Database& database, std::span<const std::string_view> migrations) {
  const size_t version = VersionOf(database, migrations.size());
  if (version == migrations.size() && HasEveryColumn(database)) return;
  if (version == 0) {
    throw Error(ErrorKind::kInvalidInput, database.file() + " holds no results yet",
                "`ridgeline run SWEEP --db FILE` fills it");
  }
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} was written by an older ridgeline (schema version {}, this one reads {})",
                          database.file(), version, migrations.size()),
              "the next `ridgeline run SWEEP --db FILE` brings it up to date");
}

}  // namespace ridgeline
