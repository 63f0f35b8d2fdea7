#include "store/schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "store/views.h"

namespace ridgeline::store {
namespace {

// Views.cc adds, from the field table, a column of `points` for each field of RunSpec, and the views' columns. A point
// of a sweep has a setup of its own if it differs from the sweep's.
constexpr std::string_view kVersion5 = R"sql(
CREATE TABLE sweeps (
  name            TEXT PRIMARY KEY,
  description     TEXT NOT NULL,
  file            TEXT NOT NULL,
  text            TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL,
  campaign        TEXT NOT NULL DEFAULT 'default',
  setup           TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE points (
  id   TEXT PRIMARY KEY,
  spec TEXT NOT NULL
) STRICT;

CREATE TABLE sweep_points (
  sweep    TEXT NOT NULL REFERENCES sweeps (name),
  ordinal  INTEGER NOT NULL,
  point_id TEXT NOT NULL REFERENCES points (id),
  setup    TEXT,
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
  evidence          TEXT NOT NULL,
  started_unix_ns   INTEGER,
  campaign          TEXT NOT NULL DEFAULT 'default',
  setup             TEXT NOT NULL DEFAULT ''
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
  environment TEXT NOT NULL,
  machine     TEXT,
  version     TEXT
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
  skipped_steps                  INTEGER,
  campaign                       TEXT NOT NULL DEFAULT 'default',
  setup                          TEXT NOT NULL DEFAULT '',
  UNIQUE (point_id, attempt),
  FOREIGN KEY (job_key, point_id) REFERENCES job_points (job_key, point_id)
) STRICT;
CREATE INDEX results_by_measurement ON results (point_id, setup, campaign, attempt, retry, status, ended_unix_ns);
)sql";

// All ends that say nothing about the point have one status, with a reason.
constexpr std::string_view kVersion6 = R"sql(
ALTER TABLE results ADD COLUMN reason TEXT NOT NULL DEFAULT '';
UPDATE results SET reason = iif(status = 'node_failed', 'node', status), status = 'infrastructure'
  WHERE status IN ('preempted', 'node_failed', 'lost');
)sql";

// Each brings a file from its place in the list to the next version. Files of versions 1 to 4 were never released, and
// are refused.
constexpr std::array<std::string_view, 6> kMigrations = {kVersion5, "", "", "", "", kVersion6};

// The names in a file of the newest version. SQLite's own names begin with "sqlite_".
constexpr std::string_view kTables[] = {"sweeps",     "points",       "sweep_points", "jobs",
                                        "job_points", "environments", "results"};
constexpr std::string_view kIndexes[] = {"sweep_points_by_point", "live_jobs", "results_by_measurement"};

std::string SqlTexts(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", name);
  return list;
}

// The tables that have a name of ours but are not made as ours. Reading such a table may run what a stranger wrote.
std::vector<std::string> FalseTables(Database& database) {
  Statement each = database.Prepare(
      fmt::format("SELECT name FROM sqlite_master WHERE name IN ({}) AND (type <> 'table' OR sql NOT "
                  "LIKE 'CREATE TABLE %' OR EXISTS "
                  "(SELECT 1 FROM pragma_table_xinfo(sqlite_master.name) WHERE hidden <> 0)) ORDER BY name",
                  SqlTexts(kTables)));
  std::vector<std::string> names;
  while (each.Step()) names.push_back(each.Text(0));
  return names;
}

void RequireOurTables(Database& database) {
  const std::vector<std::string> wrong = FalseTables(database);
  if (wrong.empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} was not made by Ridgeline: not a table as Ridgeline makes it: {}", database.file(),
                          PrintableLine(Join(wrong, ", "))),
              "name another file with --db");
}

// Returns PRAGMA user_version; 0 for an empty file. Throws for files of other programs, and of versions that no
// migration brings up to date.
size_t VersionOf(Database& database, std::span<const std::string_view> migrations) {
  const size_t newest = migrations.size();
  const int64_t version = database.Integer("PRAGMA user_version");
  const bool empty = version == 0 && database.Integer("SELECT count(*) FROM sqlite_master") == 0;
  if (!empty && database.Integer("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorKind::kInvalidInput,
                database.file() + " is an SQLite database of another program; it was left unchanged",
                "name another file with --db");
  }
  if (version > static_cast<int64_t>(newest)) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has schema version {}, newer than the {} this ridgeline knows; it was left unchanged",
                            database.file(), version, newest),
                "use the newer ridgeline that wrote it, or name another file with --db");
  }
  RequireOurTables(database);
  const auto found = static_cast<size_t>(std::max<int64_t>(version, 0));
  if (found > 0 && found < newest && migrations[found].empty()) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has schema version {}, older than any that this ridgeline reads; it was left unchanged",
                            database.file(), version),
                "measure again into another file: --db FILE");
  }
  return found;
}

}  // namespace

std::span<const std::string_view> Migrations() { return kMigrations; }

std::vector<std::string> Strangers(Database& database) {
  Statement each = database.Prepare(fmt::format(
      "SELECT type || ' ' || name FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_' AND NOT "
      "(type = 'table' AND name IN ({}) OR type = 'index' AND name IN ({}) OR type = 'view' AND name IN ({})) "
      "ORDER BY type, name",
      SqlTexts(kTables), SqlTexts(kIndexes), SqlTexts(ViewNames())));
  std::vector<std::string> strangers;
  while (each.Step()) strangers.push_back(each.Text(0));
  return strangers;
}

void Migrate(Database& database, std::span<const std::string_view> migrations) {
  const auto up_to_date = [&] {
    return VersionOf(database, migrations) == migrations.size() && MissingColumns(database).empty() &&
           OtherViews(database).empty();
  };
  if (up_to_date()) return;
  // The file keeps both settings. Results are wide: large pages halve the calls that writing 100,000 results takes.
  database.Execute("PRAGMA page_size = 16384");
  database.ChooseJournal();
  database.Begin();
  try {
    // Reads the version again under the lock, because another process may have migrated the file meanwhile.
    for (size_t version = VersionOf(database, migrations); version < migrations.size(); ++version) {
      database.Execute(std::string(migrations[version]));
    }
    AddColumns(database);
    MakeViews(database);
    database.Execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, migrations.size()));
    database.Commit();
  } catch (...) {
    database.Rollback();
    throw;
  }
}

std::optional<SchemaGap> GapOf(Database& database, std::span<const std::string_view> migrations) {
  const size_t version = VersionOf(database, migrations);
  if (version < migrations.size()) return SchemaGap{version};
  std::vector<std::string> missing = MissingColumns(database);
  if (missing.empty()) return std::nullopt;
  return SchemaGap{version, std::move(missing)};
}

void RefuseGap(const Database& database, const SchemaGap& gap) {
  if (gap.version == 0) {
    throw Error(ErrorKind::kInvalidInput, database.file() + " holds no results yet",
                "`ridgeline run SWEEP --db FILE` fills it");
  }
  if (!gap.columns.empty()) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} lacks columns that this ridgeline keeps: {}", database.file(), Join(gap.columns, ", ")),
                "`ridgeline db vacuum --db FILE` adds them, and keeps everything else");
  }
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} was written by an older ridgeline (schema version {}, this one reads {})",
                          database.file(), gap.version, Migrations().size()),
              "`ridgeline db vacuum --db FILE` brings it up to date, and all that is there stays");
}

}  // namespace ridgeline::store
