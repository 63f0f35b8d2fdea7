// Merges another store's measurements into this one.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "store/impl.h"
#include "store/views.h"

namespace ridgeline::store {
namespace {
namespace fs = std::filesystem;

// A copy of a store; removed with this object. The original may have an older schema, and may be in use.
class Copy {
 public:
  Copy(const fs::path& of, fs::path at) : at_(std::move(at)) {
    Remove();
    Database source(of, Database::Access::kReadOnly);
    Statement copy = source.Prepare("VACUUM INTO ?");
    copy.Bind(1, at_.string());
    copy.Run();
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { Remove(); }

 private:
  void Remove() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::error_code ignored;
      fs::remove(at_.string() + suffix, ignored);
    }
  }
  fs::path at_;
};

// Keeps a file attached as `other` while this object lives.
class Attached {
 public:
  Attached(Database& database, const fs::path& file) : database_(database) {
    Statement attach = database.Prepare("ATTACH ? AS other");
    attach.Bind(1, file.string());
    attach.Run();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    try {
      database_.Execute("DETACH other");
    } catch (const Error&) {  // it is detached with the connection
    }
  }

 private:
  Database& database_;
};

// The columns of a table in `first` that the same table in `second` lacks. Both files may have such columns, because an
// older ridgeline keeps columns that it does not know.
std::vector<std::string> ColumnsOnlyOf(const std::string& first, const std::string& second, Database& database,
                                       const std::string& table) {
  Statement each = database.Prepare(
      "SELECT name FROM pragma_table_info(?1, ?2) WHERE name NOT IN (SELECT name FROM pragma_table_info(?1, ?3))");
  each.Bind(1, table);
  each.Bind(2, first);
  each.Bind(3, second);
  std::vector<std::string> names;
  while (each.Step()) names.push_back(each.Text(0));
  return names;
}

// Returns the table's columns as "a, b", each with `prefix`, without those in `left_out` and those that only this store
// has.
std::string Columns(Database& database, const std::string& table, std::vector<std::string> left_out,
                    const std::string& prefix) {
  const std::vector<std::string> ours = ColumnsOnlyOf("main", "other", database, table);
  left_out.insert(left_out.end(), ours.begin(), ours.end());
  std::string list;
  for (const std::string& name : ColumnsOf(database, table)) {
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    list += (list.empty() ? "" : ", ") + prefix + name;
  }
  return list;
}

// Adds the rows whose id is not here yet. Returns their number.
int64_t AddMissing(Database& database, const std::string& table, const std::string& id) {
  const std::string columns = Columns(database, table, {}, "");
  database.Execute(fmt::format("INSERT INTO {0} ({1}) SELECT {1} FROM other.{0} WHERE {2} NOT IN (SELECT {2} FROM {0})",
                               table, columns, id));
  return database.Changes();
}

// Two jobs are the same if their key and the time of their intent are. Two stores that began as one may have given one
// key to two jobs; then the other store's job gets both as its key here.
constexpr std::string_view kMapJobs = R"sql(
CREATE TEMP TABLE job_map AS
SELECT o.key AS old,
  CASE WHEN EXISTS (SELECT 1 FROM main.jobs AS m WHERE m.key = o.key AND m.created_unix_ns <> o.created_unix_ns)
       THEN o.key || '.' || o.created_unix_ns ELSE o.key END AS new
FROM other.jobs AS o;
DELETE FROM temp.job_map WHERE new IN (SELECT key FROM main.jobs);
)sql";

// New results are all results of new jobs, and results without a job that are not here. Attempts of a point are
// numbered on from those that it has here.
constexpr std::string_view kMapAttempts = R"sql(
CREATE TEMP TABLE new_results AS
SELECT o.number, o.point_id, o.attempt FROM other.results AS o
WHERE o.job_key IN (SELECT old FROM temp.job_map) OR (o.job_key IS NULL AND NOT EXISTS
  (SELECT 1 FROM main.results AS m WHERE m.point_id = o.point_id AND m.job_key IS NULL AND m.campaign = o.campaign
   AND m.setup = o.setup AND m.status = o.status AND m.environment_id = o.environment_id
   AND m.started_unix_ns IS o.started_unix_ns AND m.ended_unix_ns IS o.ended_unix_ns));
CREATE TEMP TABLE attempt_map AS
SELECT point_id, attempt AS old, row_number() OVER (PARTITION BY point_id ORDER BY attempt)
  + max(ifnull((SELECT max(attempt) FROM main.results AS r WHERE r.point_id = n.point_id), 0),
        ifnull((SELECT max(attempt) FROM main.job_points AS j WHERE j.point_id = n.point_id), 0)) AS new
FROM (SELECT point_id, attempt FROM temp.new_results UNION
      SELECT point_id, attempt FROM other.job_points WHERE job_key IN (SELECT old FROM temp.job_map)) AS n;
)sql";

// The last attempt counts among results measured as the same. Makes that the result that stands and ended last.
void LetTheNewestSpeak(Database& database) {
  struct Speaker {
    int64_t number;
    std::string point_id;
    std::string job_key;
  };
  std::vector<Speaker> speakers;
  Statement each = database.Prepare(fmt::format(
      "SELECT number, point_id, job_key, attempt, last FROM (SELECT r.number, r.point_id, r.job_key, r.attempt, "
      "max(r.attempt) OVER same AS last, row_number() OVER (same ORDER BY {} DESC, ifnull(r.ended_unix_ns, 0) DESC, "
      "r.attempt DESC) AS rank FROM main.results AS r WHERE r.point_id IN (SELECT point_id FROM temp.new_results) "
      "WINDOW same AS (PARTITION BY r.point_id, r.setup, r.campaign)) WHERE rank = 1 AND attempt <> last",
      StandsSql()));
  while (each.Step()) speakers.push_back({each.Integer(0), each.Text(1), each.Text(2)});
  const std::string last =
      "1 + max((SELECT max(attempt) FROM main.results WHERE point_id = ?1), "
      "ifnull((SELECT max(attempt) FROM main.job_points WHERE point_id = ?1), 0))";
  Statement of_job =
      database.Prepare("UPDATE main.job_points SET attempt = " + last + " WHERE point_id = ?1 AND job_key = ?2");
  Statement of_result = database.Prepare(
      "UPDATE main.results SET attempt = ifnull((SELECT attempt FROM main.job_points WHERE point_id = ?1 AND "
      "job_key = ?2), " +
      last + ") WHERE number = ?3");
  for (const Speaker& speaker : speakers) {
    of_job.Bind(1, speaker.point_id);
    of_job.Bind(2, speaker.job_key);
    of_job.Run();
    of_result.Bind(1, speaker.point_id);
    of_result.Bind(2, speaker.job_key);
    of_result.Bind(3, speaker.number);
    of_result.Run();
  }
}

MergeSummary AddAll(Database& database) {
  MergeSummary summary;
  summary.points = AddMissing(database, "points", "id");
  // The points of a sweep that is here already stay as they are: one name means one sweep.
  database.Execute(
      "CREATE TEMP TABLE new_sweeps AS SELECT name FROM other.sweeps WHERE name NOT IN "
      "(SELECT name FROM main.sweeps)");
  summary.sweeps = AddMissing(database, "sweeps", "name");
  database.Execute(
      "INSERT INTO sweep_points (sweep, ordinal, point_id, setup) SELECT sweep, ordinal, point_id, setup FROM "
      "other.sweep_points "
      "WHERE sweep IN (SELECT name FROM temp.new_sweeps)");
  AddMissing(database, "environments", "id");
  database.Execute(std::string(kMapJobs));
  database.Execute(std::string(kMapAttempts));
  const std::vector<std::string> keys = {"number", "key"};
  database.Execute(fmt::format(
      "INSERT INTO main.jobs (key, {}) SELECT j.new, {} FROM other.jobs AS o JOIN temp.job_map AS j ON j.old = o.key "
      "ORDER BY o.number",
      Columns(database, "jobs", keys, ""), Columns(database, "jobs", keys, "o.")));
  summary.jobs = database.Changes();
  database.Execute(
      "INSERT INTO main.job_points (job_key, ordinal, point_id, attempt) SELECT j.new, o.ordinal, o.point_id, a.new "
      "FROM other.job_points AS o JOIN temp.job_map AS j ON j.old = o.job_key "
      "JOIN temp.attempt_map AS a ON a.point_id = o.point_id AND a.old = o.attempt");
  const std::vector<std::string> mapped = {"number", "job_key", "attempt"};
  database.Execute(
      fmt::format("INSERT INTO main.results (job_key, attempt, {}) SELECT j.new, a.new, {} FROM other.results AS o "
                  "JOIN temp.new_results AS n ON n.number = o.number LEFT JOIN temp.job_map AS j ON j.old = o.job_key "
                  "JOIN temp.attempt_map AS a ON a.point_id = o.point_id AND a.old = o.attempt ORDER BY o.number",
                  Columns(database, "results", mapped, ""), Columns(database, "results", mapped, "o.")));
  summary.results = database.Changes();
  summary.known_results = database.Integer("SELECT count(*) FROM other.results") - summary.results;
  LetTheNewestSpeak(database);
  for (const char* table : {"new_sweeps", "job_map", "new_results", "attempt_map"}) {
    database.Execute(fmt::format("DROP TABLE temp.{}", table));
  }
  return summary;
}

// Refuses a store that is damaged or has live jobs.
void RequireMergeable(Store& other, const fs::path& file) {
  if (const std::vector<std::string> problems = other.Check(); !problems.empty()) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} is damaged: {}", file.string(), problems.front()),
                fmt::format("`ridgeline db check --db {}` says all that is wrong", file.string()));
  }
  if (const std::vector<JobRecord> live = other.LiveJobs(); !live.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has {}, such as {} of the sweep {}", file.string(), CountOf(live.size(), "live job"),
                            live.front().key, live.front().sweep),
                fmt::format("let `ridgeline run --db {0}` end, or `ridgeline cancel --db {0}` them", file.string()));
  }
}

// Refuses a store with columns that are missing here, because their content would be lost.
void RequireColumnsFor(const fs::path& other, Database& database) {
  std::vector<std::string> unknown;
  for (const char* table : {"points", "sweeps", "environments", "jobs", "results"}) {
    for (std::string& name : ColumnsOnlyOf("other", "main", database, table)) unknown.push_back(std::move(name));
  }
  if (unknown.empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} has columns that {} lacks: {}", other.string(), database.file(), Join(unknown, ", ")),
              "merge with the newer ridgeline that wrote it");
}

}  // namespace

MergeSummary Store::Merge(const fs::path& other) {
  Database& database = impl_->database;
  std::error_code ec;
  if (!fs::exists(other, ec)) throw Error(ErrorKind::kUsage, "there is no database " + other.string());
  if (fs::equivalent(other, database.file(), ec)) {
    throw Error(ErrorKind::kUsage, other.string() + " is the database that it would be merged into");
  }
  const fs::path at = database.file() + ".merge";
  const Copy copy(other, at);
  {
    Store theirs = Store::Open(at, Mode::kReadWrite);
    RequireMergeable(theirs, other);
  }
  const Attached attached(database, at);
  RequireColumnsFor(other, database);
  MergeSummary summary;
  Transact([&] { summary = AddAll(database); });
  return summary;
}

}  // namespace ridgeline::store
