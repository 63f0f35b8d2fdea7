// A person's SQL can read the store, and do nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class QueryTest : public testing::TestWithParam<Store::Mode> {
 protected:
  QueryTest() {
    const std::vector<Point> points = samples::Points(3);
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points);
    samples::RunJob(store, "rl-1", "s", points, RunStatus::kOk);
    Store other = Store::Open(dir_ / "other.db", Store::Mode::kReadWrite);
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
};
INSTANTIATE_TEST_SUITE_P(Modes, QueryTest, testing::Values(Store::Mode::kReadOnly, Store::Mode::kReadWrite));

TEST_P(QueryTest, GivesColumnsAndTypedValues) {
  Store store = Store::Open(file_, GetParam());
  const Table table = store.Query(
      "SELECT seed, steady_tokens_per_s AS tps, status, NULL AS none, x'41' FROM runs "
      "ORDER BY seed DESC;  -- and a comment\n ; ");
  EXPECT_THAT(table.columns, ElementsAre("seed", "tps", "status", "none", "x'41'"));
  ASSERT_THAT(table.rows, SizeIs(3));
  EXPECT_THAT(table.rows[0], ElementsAre(Cell(int64_t{2}), Cell(1000.5), Cell("ok"), Cell(), Cell("A")));
}

TEST_P(QueryTest, ReadsInEveryWayThatReads) {
  Store store = Store::Open(file_, GetParam());
  EXPECT_EQ(Value(store,
                  "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) "
                  "SELECT sum(i) FROM n"),
            Cell(int64_t{45}));
  EXPECT_THAT(store.Query("VALUES (1), (2)").rows, SizeIs(2));
  EXPECT_THAT(store.Query("SELECT value FROM runs, json_each(runs.loss)").rows, SizeIs(9));
  EXPECT_THAT(store.Query("SELECT name FROM pragma_table_info('runs') WHERE name = 'seed'").rows, SizeIs(1));
  EXPECT_THAT(store.Query("EXPLAIN QUERY PLAN SELECT * FROM runs").columns, SizeIs(4));
  EXPECT_THAT(store.Query("SELECT sql FROM sqlite_master WHERE name = 'runs'").rows, SizeIs(1));
}

TEST_P(QueryTest, RefusesEverythingElse) {
  Store store = Store::Open(file_, GetParam());
  const std::string other = (dir_ / "other.db").string();
  const std::string made = (dir_ / "made.db").string();
  for (const std::string& sql : {
           std::string("DELETE FROM results"),
           std::string("DELETE FROM results RETURNING *"),
           std::string("UPDATE results SET status = 'ok'"),
           std::string("INSERT INTO sweeps VALUES ('a', '', '', '', 1)"),
           std::string("UPDATE sqlite_master SET type = 'view'"),
           std::string("WITH x AS (SELECT 1) DELETE FROM results"),
           std::string("DROP TABLE results"),
           std::string("CREATE TABLE t (a)"),
           std::string("CREATE TEMP TABLE t (a)"),
           std::string("CREATE VIRTUAL TABLE t USING fts5(a)"),
           std::string("ALTER TABLE results RENAME TO r"),
           std::string("REINDEX"),
           std::string("ANALYZE"),
           std::string("VACUUM"),
           "VACUUM INTO '" + made + "'",
           "ATTACH '" + other + "' AS o",
           std::string("DETACH main"),
           std::string("PRAGMA journal_mode = DELETE"),
           std::string("PRAGMA user_version = 7"),
           std::string("PRAGMA writable_schema = ON"),
           std::string("PRAGMA foreign_keys = OFF"),
           std::string("PRAGMA query_only"),
           std::string("SELECT * FROM pragma_user_version"),
           std::string("SELECT load_extension('/tmp/x.so')"),
           std::string("BEGIN"),
           std::string("BEGIN EXCLUSIVE"),
           std::string("SAVEPOINT s"),
           std::string("SELECT 1; DELETE FROM results"),
           std::string("SELECT 1; SELECT 2"),
           std::string("SELECT 1; not sql"),
           std::string("EXPLAIN DELETE FROM results"),
           std::string(""),
           std::string(" ; -- nothing"),
           std::string("SELECT nonsense FROM runs"),
           std::string("SELECT * FROM no_such_table"),
           std::string("SELEC"),
           std::string("SELECT json_extract('{', '$')"),
       }) {
    try {
      store.Query(sql);
      ADD_FAILURE() << "not refused: " << sql;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage) << sql << ": " << e.message();
      EXPECT_FALSE(e.message().empty());
    }
  }
  EXPECT_EQ(Value(store, "SELECT count(*) FROM runs"), Cell(int64_t{3}));
  EXPECT_FALSE(std::filesystem::exists(made));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM sweeps"), Cell(int64_t{1}));
}

TEST(Query, WritingStillWorksAfterARefusal) {
  const TempDir dir;
  Store store = Store::Open(dir / "ridgeline.db", Store::Mode::kReadWrite);
  EXPECT_THROW(store.Query("DELETE FROM results"), Error);
  store.PutSweep(samples::Sweep("t"), samples::Points(1));
  EXPECT_EQ(store.Progress("t").points, 1);
}

TEST_P(QueryTest, NamesWhatIsWrong) {
  Store store = Store::Open(file_, GetParam());
  try {
    store.Query("SELECT tokens FROM runs");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("no such column: tokens"));
    EXPECT_THAT(e.hint(), HasSubstr("pragma_table_info"));
  }
}

}  // namespace
}  // namespace ridgeline::store
