// Files of other versions and of other programs.
#include "store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "run/parallelism.h"
#include "store/store.h"
#include "store/views.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::HasSubstr;
using testing::IsEmpty;

// SQLite cannot drop a column that a view names.
const std::string kDropViews =
    "DROP VIEW forecasts; DROP VIEW series; DROP VIEW spreads; DROP VIEW sweep_runs; DROP VIEW sweep_cells; DROP VIEW "
    "runs; "
    "DROP VIEW measurements; DROP VIEW measured; DROP VIEW latest;";

class SchemaTest : public testing::Test {
 protected:
  // The error on opening. The file must stay the same, byte for byte.
  std::string Refused(Store::Mode mode, const StoreLimits& limits = {}) {
    const std::string before = ReadFile(file_);
    try {
      Store::Open(file_, mode, {}, limits);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      EXPECT_FALSE(e.hint().empty());
      EXPECT_EQ(ReadFile(file_), before);
      return e.message();
    }
    return "it was opened";
  }
  // The error of a reader that may take no file into memory.
  std::string RefusedLarge() { return Refused(Store::Mode::kReadOnly, {.most_copied_bytes = 0}); }
  void Sql(const std::string& sql) { Database(file_, Database::Access::kReadWrite).Execute(sql); }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
};

TEST_F(SchemaTest, EveryTableIsStrictAndEveryReferenceIsHeld) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  Database database(file_, Database::Access::kReadWrite);
  EXPECT_EQ(
      database.Integer("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict "
                       "AND name NOT LIKE 'sqlite_%'"),
      7);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM sqlite_master WHERE type = 'table'"), 7);
  EXPECT_EQ(database.Integer("PRAGMA foreign_keys"), 1);
  Statement mode = database.Prepare("PRAGMA journal_mode");
  ASSERT_TRUE(mode.Step());
  EXPECT_EQ(mode.Text(0), "wal");
  EXPECT_THROW(database.Execute("INSERT INTO sweep_points VALUES ('no sweep', 0, 'no point')"), Error);
  EXPECT_THROW(database.Execute("INSERT INTO sweeps VALUES ('s', '', '', '', 'text')"), Error);
}

TEST_F(SchemaTest, EveryFieldIsAColumnOfItsType) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  for (const Field& field : Fields()) {
    const char* type = field.type() == "text" ? "TEXT" : field.type() == "number" ? "REAL" : "INTEGER";
    EXPECT_EQ(
        Value(store, "SELECT type FROM pragma_table_info('points') WHERE name = '" + std::string(field.name) + "'"),
        Cell(type))
        << field.name;
  }
}

TEST_F(SchemaTest, HowRanksShareAModelIsInColumnsAndInWords) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  std::vector<Point> points = samples::Points(3);
  std::vector<Problem> problems;
  for (RunSpec* spec : {&points[1].spec, &points[2].spec}) {
    *spec = BuildSpec({{"model", "mixtral-8x7b"}, {"trainer", "megatron_lm"}}, problems);
    spec->ranks = 32;
    spec->communicator = "gloo";
    spec->tensor_parallel = 2;
    spec->pipeline_parallel = 4;
    spec->expert_parallel = 8;
    spec->trainer = "torchtitan";
    spec->experts = 8;
    spec->experts_per_token = 2;
    spec->expert_ffn = 64;
  }
  points[1].spec.sequence_parallel = false;
  for (Point& point : points) {
    Canonicalize(point.spec);
    point.id = PointId(point.spec);
  }
  store.PutSweep(samples::Sweep("s"), points);
  samples::RunJob(store, "job-1", "s", points, RunStatus::kOk);
  for (const Point& point : points) {
    const std::string words = ParallelWords(point.spec);
    const auto of = [&](const std::string& column) {
      return Value(store, "SELECT " + column + " FROM runs WHERE point_id = '" + point.id + "'");
    };
    EXPECT_EQ(of("parallel_words"), Cell(words.empty() ? "" : ", " + words));
    EXPECT_EQ(of("sequence_parallel"), Cell(int64_t{point.spec.sequence_parallel.value_or(false)}));
    EXPECT_EQ(of("context_parallel"), Cell(int64_t{1}));
  }
  EXPECT_THAT(store.Check(), testing::IsEmpty());
}

TEST_F(SchemaTest, OpeningAgainChangesNothing) {
  { Store::Open(file_, Store::Mode::kReadWrite); }
  const std::string before = ReadFile(file_);
  { Store::Open(file_, Store::Mode::kReadWrite); }
  { Store::Open(file_, Store::Mode::kReadOnly); }
  EXPECT_EQ(ReadFile(file_), before);
}

TEST_F(SchemaTest, ANewerSchemaIsRefusedWithASentence) {
  { Store::Open(file_, Store::Mode::kReadWrite); }
  Sql("PRAGMA user_version = 99");
  for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
    const std::string message = Refused(mode);
    EXPECT_THAT(message, HasSubstr("schema version 99"));
    EXPECT_THAT(message, HasSubstr("newer than the " + std::to_string(Migrations().size())));
  }
}

TEST_F(SchemaTest, AnOlderSchemaIsBroughtUpToDateWithItsData) {
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), samples::Points(3));
  }
  std::vector<std::string_view> newer(Migrations().begin(), Migrations().end());
  newer.emplace_back("CREATE TABLE notes (text TEXT NOT NULL) STRICT; INSERT INTO notes SELECT name FROM sweeps;");
  newer.emplace_back("ALTER TABLE results ADD COLUMN kelvin REAL;");
  {
    Database database(file_, Database::Access::kReadOnly);
    EXPECT_EQ(GapOf(database, newer)->version, Migrations().size());
  }
  {
    Database database(file_, Database::Access::kReadWrite);
    Migrate(database, newer);
    EXPECT_EQ(database.Integer("PRAGMA user_version"), static_cast<int64_t>(newer.size()));
    EXPECT_EQ(database.Integer("SELECT count(*) FROM notes WHERE text = 's'"), 1);
    EXPECT_EQ(database.Integer("SELECT count(*) FROM points"), 3);
    EXPECT_EQ(database.Integer("SELECT count(*) FROM pragma_table_info('runs') WHERE name = 'kelvin'"), 1);
    EXPECT_FALSE(GapOf(database, newer));
  }
  EXPECT_THAT(Refused(Store::Mode::kReadOnly), HasSubstr("newer"));
}

TEST_F(SchemaTest, AMigrationThatFailsChangesNothing) {
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), samples::Points(3));
  }
  std::vector<std::string_view> newer(Migrations().begin(), Migrations().end());
  newer.emplace_back("DELETE FROM sweep_points; ALTER TABLE no_such_table ADD COLUMN a TEXT;");
  {
    Database database(file_, Database::Access::kReadWrite);
    EXPECT_THROW(Migrate(database, newer), Error);
  }
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(store.Progress("s").points, 3);
  EXPECT_THAT(store.Check(), IsEmpty());
}

TEST_F(SchemaTest, AFieldThatIsNewBecomesAColumnWithItsValues) {
  const std::vector<Point> points = samples::Points(3);
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points);
    samples::RunJob(store, "rl-1", "s", points, RunStatus::kOk);
  }
  Sql(kDropViews +
      "ALTER TABLE points DROP COLUMN seed; ALTER TABLE points DROP COLUMN "
      "tied_head; ALTER TABLE points DROP COLUMN learning_rate");
  EXPECT_EQ(RefusedLarge(),
            file_.string() + " lacks columns that this ridgeline keeps: learning_rate, seed, tied_head");
  const std::string bytes = ReadFile(file_);
  {
    Store read = Store::Open(file_, Store::Mode::kReadOnly);
    EXPECT_EQ(Value(read, "SELECT sum(seed) FROM runs"), Cell(int64_t{3})) << "a reader has a copy that is up to date";
  }
  EXPECT_EQ(ReadFile(file_), bytes) << "and leaves the file as it is";
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(Value(store, "SELECT sum(seed) FROM runs"), Cell(int64_t{3}));
  EXPECT_THAT(store.Check(), IsEmpty());
}

// docs/gpu.md tells readers to draw reports of it.
TEST_F(SchemaTest, TheCommittedResultsOfACardCanBeRead) {
  const std::filesystem::path file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "bench/results/h200/gpu.db";
  Store store = Store::Open(file, Store::Mode::kReadOnly);
  EXPECT_EQ(Value(store, "SELECT count(*) > 20 FROM runs WHERE steady_tokens_per_s > 0"), Cell(int64_t{1}));
}

TEST_F(SchemaTest, AFigureThatIsNewBecomesAColumnThatOlderResultsHaveNothingIn) {
  const std::vector<Point> points = samples::Points(1);
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points);
    samples::RunJob(store, "rl-1", "s", points, RunStatus::kOk);
  }
  Sql(kDropViews +
      "ALTER TABLE results DROP COLUMN rss_peak_bytes; ALTER TABLE results DROP COLUMN grad_norm;"
      "ALTER TABLE results DROP COLUMN planned_bytes_by_category;");
  EXPECT_EQ(RefusedLarge(),
            file_.string() +
                " lacks columns that this ridgeline keeps: grad_norm, planned_bytes_by_category, rss_peak_bytes");
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(Value(store, "SELECT ifnull(rss_peak_bytes, 'none') || grad_norm || planned_bytes_by_category FROM runs"),
            Cell("none[]{}"));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM series"), Cell(int64_t{6}));
  EXPECT_THAT(store.Check(), IsEmpty());
}

TEST_F(SchemaTest, FiguresThatANewerRidgelineKeepsStay) {
  const std::vector<Point> points = samples::Points(2);
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points);
    samples::RunJob(store, "rl-1", "s", {points[0]}, RunStatus::kOk);
  }
  {
    Database newer(file_, Database::Access::kReadWrite);
    newer.Execute(
        "ALTER TABLE results ADD COLUMN kelvin REAL; ALTER TABLE results ADD COLUMN kelvins TEXT NOT NULL DEFAULT '[]';"
        "UPDATE results SET kelvin = 300.5, kelvins = '[300.5]'");
    MakeViews(newer);
  }
  const std::string before = ReadFile(file_);
  EXPECT_THAT(Store::Open(file_, Store::Mode::kReadOnly).Check(), IsEmpty());
  EXPECT_EQ(ReadFile(file_), before);
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  samples::RunJob(store, "rl-2", "s", {points[1]}, RunStatus::kOk);
  EXPECT_THAT(store.Check(), IsEmpty());
  EXPECT_EQ(Value(store,
                  "SELECT group_concat(ifnull(kelvin, 'none') || kelvins, ' ') FROM "
                  "(SELECT * FROM runs ORDER BY seed)"),
            Cell("300.5[300.5] none[]"));
}

TEST_F(SchemaTest, AnotherProgramsDatabaseIsLeftAlone) {
  Sql("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x')");
  EXPECT_THAT(Refused(Store::Mode::kReadWrite), HasSubstr("another program"));
  EXPECT_THAT(Refused(Store::Mode::kReadOnly), HasSubstr("another program"));
}

TEST_F(SchemaTest, AnEmptyFileIsFilledByAWriterAndRefusedByAReader) {
  WriteFileAtomic(file_, "");
  EXPECT_THAT(Refused(Store::Mode::kReadOnly), HasSubstr("no results yet"));
  EXPECT_THAT(Store::Open(file_, Store::Mode::kReadWrite).Check(), IsEmpty());
}

TEST_F(SchemaTest, AFileThatIsNotThereIsMadeByAWriterOnly) {
  try {
    Store::Open(file_, Store::Mode::kReadOnly);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr(file_.string()));
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_THROW(Store::Open(dir_ / "no" / "folder" / "ridgeline.db", Store::Mode::kReadWrite), Error);
  EXPECT_THROW(Store::Open(dir_.path(), Store::Mode::kReadWrite), Error);
}

}  // namespace
}  // namespace ridgeline::store
