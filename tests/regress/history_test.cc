#include "regress/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/regress/nights.h"

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One point over `commits` commits of two runs each, 5 % slower from the commit `slower` on.
std::vector<MeasuredCell> HistoryWith(int commits, int slower) {
  MeasuredCell cell{"id", R"({"model": "m"})", "{}", "a machine", {}};
  for (int i = 0; i < commits; ++i) {
    MeasuredRuns runs;
    runs.commit = "commit-" + std::to_string(i);
    runs.ended_unix_ns = 1000 + i;
    const double level = std::log(1e8) + (i >= slower ? std::log(1.05) : 0);
    runs.log_step_times = {level + 0.001, level - 0.001};
    cell.measurements.push_back(runs);
  }
  return {cell};
}

TEST(HistoryTables, HaveARowForEachCommit) {
  const Table table = HistoryTable(HistoryWith(20, 12));
  ASSERT_EQ(table.rows.size(), 20U);
  EXPECT_EQ(CellText(table.rows[0][0]), "model=m");
  EXPECT_EQ(CellText(table.rows[19][1]), "commit-19");
  EXPECT_EQ(std::get<int64_t>(table.rows[3][3]), 2);
  EXPECT_NEAR(std::get<double>(table.rows[3][4]), 1e8, 1);
  EXPECT_NEAR(std::get<double>(table.rows[19][4]), 1.05e8, 1);
}

TEST(HistoryTables, DateAChangeToItsCommit) {
  const Table changes = HistoryTable(HistoryWith(20, 12), true);
  ASSERT_EQ(changes.rows.size(), 1U);
  EXPECT_EQ(CellText(changes.rows[0][1]), "commit-12");
  EXPECT_NEAR(std::get<double>(changes.rows[0][5]), 0.05, 1e-3);
  const Table for_people = ShortHistoryTable(HistoryWith(20, 12), true);
  EXPECT_EQ(CellText(for_people.rows.at(0).at(5)), "5.0 % slower");
  EXPECT_THAT(HistoryTable(HistoryWith(20, 20), true).rows, IsEmpty());
}

TEST(HistoryTables, PutTogetherWhatFollowsOfACommit) {
  std::vector<MeasuredCell> cells = HistoryWith(3, 3);
  cells[0].measurements[1].commit = cells[0].measurements[0].commit;
  MeasuredRuns failed;
  failed.failure = "crashed";
  failed.commit = "commit-9";
  cells[0].measurements.push_back(failed);
  cells[0].measurements.push_back(cells[0].measurements[0]);
  std::vector<std::string> rows;
  for (const auto& row : HistoryTable(cells).rows) rows.push_back(CellText(row[1]) + " " + CellText(row[3]));
  EXPECT_THAT(rows, ElementsAre("commit-0 4", "commit-2 2", "commit-0 2"));
}

TEST(HistoryTables, TellMachinesApart) {
  std::vector<MeasuredCell> cells = HistoryWith(1, 1);
  EXPECT_THAT(ShortHistoryTable(cells).columns,
              ElementsAre("point", "commit", "measured", "runs", "step time", "since then"));
  cells.push_back(cells[0]);
  cells[1].machine = "another";
  EXPECT_EQ(ShortHistoryTable(cells).columns.back(), "machine");
}

}  // namespace
}  // namespace ridgeline::regress
