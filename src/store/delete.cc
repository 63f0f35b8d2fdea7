// Deletes what a person names.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "store/impl.h"
#include "store/store.h"

namespace ridgeline::store {
namespace {

// SQL of the rows of results that are deleted; `?1` is the name. A run goes with the repeats that led to it. A point's
// id, or its first eight digits or more, stands for all its runs. A sweep goes with the results of its points, except
// points that another sweep has too.
std::string GoingOf(Deletion::What what) {
  switch (what) {
    case Deletion::What::kRun:
      return "SELECT r.number FROM results AS r JOIN results AS n ON n.point_id = r.point_id AND n.setup = r.setup AND "
             "n.campaign = r.campaign WHERE (n.number = ?1 OR n.point_id || '.' || n.ended_unix_ns = ?1 OR "
             "(length(?1) >= 8 AND ?1 NOT GLOB '*[^0-9a-f]*' AND n.point_id GLOB ?1 || '*')) "
             "AND (r.number = n.number OR (r.retry = 1 AND r.attempt < n.attempt))";
    case Deletion::What::kCampaign:
      return "SELECT number FROM results WHERE campaign = ?1";
    case Deletion::What::kSweep:
      return "SELECT r.number FROM results AS r LEFT JOIN jobs AS j ON j.key = r.job_key WHERE (j.sweep = ?1 OR "
             "r.point_id IN (SELECT point_id FROM sweep_points WHERE sweep = ?1)) AND r.point_id NOT IN "
             "(SELECT point_id FROM sweep_points WHERE sweep <> ?1)";
  }
  return {};
}

struct Undone {};

}  // namespace

Deletion Store::Delete(Deletion::What what, const std::string& name, bool dry_run) {
  Deletion deleted;
  Database& database = impl_->database;
  const auto run = [&](const std::string& sql) {
    Statement statement = database.Prepare(sql);
    if (sql.find("?1") != std::string::npos) statement.Bind(1, name);
    statement.Run();
    return database.Changes();
  };
  const auto count = [&](const std::string& sql) {
    Statement statement = database.Prepare(sql);
    statement.Bind(1, name);
    return statement.Step() ? statement.Integer(0) : 0;
  };
  const std::string going = GoingOf(what);
  try {
    Transact([&] {
      const std::string live = fmt::format("SELECT count(*) FROM jobs AS j WHERE j.state IN {} AND ", kLive);
      const std::string of_it = what == Deletion::What::kSweep ? "j.sweep = ?1"
                                : what == Deletion::What::kCampaign
                                    ? "j.campaign = ?1"
                                    : "j.key IN (SELECT job_key FROM results WHERE number IN (" + going + "))";
      if (const int64_t jobs = count(live + of_it); jobs > 0) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("{} of '{}' {} not ended yet", CountOf(jobs, "job"), PrintableLine(name),
                                jobs == 1 ? "has" : "have"),
                    "wait for the end, or `ridgeline cancel` the sweep first");
      }
      const bool is_known =
          count("SELECT EXISTS (" + going + ")") != 0 ||
          (what == Deletion::What::kSweep && count("SELECT EXISTS (SELECT 1 FROM sweeps WHERE name = ?1)") != 0);
      if (!is_known) {
        throw Error(
            ErrorKind::kUsage, fmt::format("{} has no such measurements: '{}'", database.file(), PrintableLine(name)),
            "`ridgeline status` lists sweeps, `ridgeline plan SWEEP` the ids of points, and `ridgeline query \"SELECT "
            "result, point_id, campaign FROM measurements\"` runs");
      }
      deleted.results = run("DELETE FROM results WHERE number IN (" + going + ")");
      if (what == Deletion::What::kSweep) {
        // A job that also measured a point of another sweep now belongs to that sweep.
        run("UPDATE jobs SET sweep = (SELECT s.sweep FROM sweep_points AS s JOIN results AS r ON r.point_id = "
            "s.point_id "
            "WHERE r.job_key = jobs.key AND s.sweep <> ?1 LIMIT 1) WHERE sweep = ?1 AND EXISTS "
            "(SELECT 1 FROM results AS r WHERE r.job_key = jobs.key)");
        run("DELETE FROM job_points WHERE job_key IN (SELECT key FROM jobs WHERE sweep = ?1)");
        deleted.jobs = run("DELETE FROM jobs WHERE sweep = ?1");
        run("DELETE FROM sweep_points WHERE sweep = ?1");
        deleted.sweeps = run("DELETE FROM sweeps WHERE name = ?1");
      } else {
        deleted.jobs = DropEmptyJobs();
      }
      // What is left of a job keeps the number of an attempt, and has no result any more.
      run("UPDATE jobs SET state = 'cancelled' WHERE state IN ('ended', 'lost') AND EXISTS (SELECT 1 FROM job_points "
          "AS p WHERE "
          "p.job_key = jobs.key AND NOT EXISTS (SELECT 1 FROM results AS r WHERE r.job_key = p.job_key AND "
          "r.point_id = p.point_id))");
      run("DELETE FROM points WHERE id NOT IN (SELECT point_id FROM sweep_points) AND id NOT IN "
          "(SELECT point_id FROM job_points) AND id NOT IN (SELECT point_id FROM results)");
      run("DELETE FROM environments WHERE id NOT IN (SELECT environment_id FROM results)");
      if (dry_run) throw Undone();
    });
  } catch (const Undone&) {  // everything was counted and rolled back
  }
  return deleted;
}

}  // namespace ridgeline::store
