// What runs were billed, and what was predicted for them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "store/sqlite.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;

// Runs of one job share its bill by their times. A figure that is not known is none.
TEST(Bills, AreSharedByTheRunsOfAJob) {
  const TempDir dir;
  const std::filesystem::path file = dir / "ridgeline.db";
  Store store = Store::Open(file, Store::Mode::kReadWrite);
  const std::vector<Point> points = samples::Points(4);
  store.PutSweep(samples::Sweep("s"), points);
  samples::RunJob(store, "rl-1", "s", {points[0]}, RunStatus::kOk);
  samples::RunJob(store, "rl-2", "s", {points[1], points[2]}, RunStatus::kOk);
  samples::RunJob(store, "rl-3", "s", {points[3]}, RunStatus::kOk);
  const std::string bills =
      "SELECT group_concat(ifnull(billed_usd, '-') || '/' || ifnull(predicted_usd, '-'), ' ') FROM "
      "(SELECT * FROM runs ORDER BY seed)";
  EXPECT_EQ(Value(store, bills), Cell("-/- -/- -/- -/-"));
  const auto end = [&](const char* key, const std::map<std::string, std::string>& evidence) {
    store.SetJobState(key, JobRecord::State::kEnded, evidence, 30);
  };
  end("rl-1", {{"billed_usd", "1.5"}, {"predicted_usd", "[1.25]"}});
  end("rl-2", {{"billed_usd", "3"}, {"predicted_usd", "[2.5,null]"}});
  end("rl-3", {{"predicted_usd", "no list"}});
  EXPECT_EQ(Value(store, bills), Cell("1.5/1.25 1.5/2.5 1.5/- -/-")) << "both runs of rl-2 took as long";
  {
    Database database(file, Database::Access::kReadWrite);
    database.Execute(
        "UPDATE results SET ended_unix_ns = started_unix_ns + 3 * (ended_unix_ns - started_unix_ns) WHERE "
        "job_key = 'rl-2' AND point_id = '" +
        points[1].id + "'");
  }
  EXPECT_EQ(Value(store, bills), Cell("1.5/1.25 2.25/2.5 0.75/- -/-"));
  {
    Database database(file, Database::Access::kReadWrite);
    database.Execute("UPDATE results SET started_unix_ns = NULL WHERE job_key IN ('rl-1', 'rl-2') AND point_id <> '" +
                     points[1].id + "'");
  }
  EXPECT_EQ(Value(store, bills), Cell("1.5/1.25 -/2.5 -/- -/-"));
}

}  // namespace
}  // namespace ridgeline::store
