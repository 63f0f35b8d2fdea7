// Which of a point's measurements counts, over any number of nights.
#include <sqlite3.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;

void AddNight(Store& store, const std::string& campaign, const RunEnd& end, int64_t ended_unix_ns) {
  const MeasurementKey as = {campaign, DefaultSetup()};
  const std::vector<Point> points = samples::Points(2);
  SweepRecord sweep = samples::Sweep("nights");
  sweep.measured_as = as;
  store.PutSweep(sweep, points);
  std::vector<NewResult> results;
  for (const Point& point : points) {
    RunResult result = samples::Result(point.id, end);
    result.ended_unix_ns = ended_unix_ns;
    results.push_back({std::move(result), "", 0, as});
  }
  store.AddResults(results);
}

// The number of SQLite's steps to find the latest measurement of each point, after so many nights.
int StepsToFindLatest(int nights) {
  const TempDir dir;
  const std::filesystem::path file = dir / "ridgeline.db";
  {
    Store store = Store::Open(file, Store::Mode::kReadWrite);
    store.Transact([&] {
      for (int i = 1; i <= nights; ++i) AddNight(store, fmt::format("night-{:03}", i), RunStatus::kOk, i);
    });
  }
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(handle, sqlite3_close);
  sqlite3_stmt* prepared = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(handle, "SELECT count(*) FROM latest", -1, &prepared, nullptr), SQLITE_OK);
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, sqlite3_finalize);
  EXPECT_EQ(sqlite3_step(prepared), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int64(prepared, 0), 2);
  return sqlite3_stmt_status(prepared, SQLITE_STMTSTATUS_VM_STEP, 0);
}

TEST(Latest, IsTheNewestThatStandsWhateverItsCampaignIsCalled) {
  const TempDir dir;
  Store store = Store::Open(dir / "ridgeline.db", Store::Mode::kReadWrite);
  const auto latest = [&] { return Value(store, "SELECT DISTINCT campaign FROM latest"); };
  AddNight(store, "b", RunStatus::kOk, 20);
  EXPECT_EQ(latest(), Cell("b"));
  AddNight(store, "c", RunStatus::kOk, 10);
  EXPECT_EQ(latest(), Cell("b")) << "it was measured later";
  AddNight(store, "a", RunStatus::kCrashed, 30);
  EXPECT_EQ(latest(), Cell("a")) << "a failure speaks, too";
  AddNight(store, "d", InfrastructureReason::kNode, 40);
  EXPECT_EQ(latest(), Cell("a")) << "what says nothing of the points does not speak for them";
  AddNight(store, "e", RunStatus::kOk, 30);
  EXPECT_EQ(latest(), Cell("e")) << "of those that ended at once the last attempt";
  EXPECT_EQ(Value(store, "SELECT count(*) FROM latest"), Cell(int64_t{2}));
}

// With the square, a database of every night's measurements would take hours for what takes seconds after one night.
TEST(Latest, TakesTimeWithTheNumberOfNightsAndNotWithItsSquare) {
  EXPECT_LT(StepsToFindLatest(120), 8 * StepsToFindLatest(30)) << "with the square it would be 16 times as many";
}

}  // namespace
}  // namespace ridgeline::store
