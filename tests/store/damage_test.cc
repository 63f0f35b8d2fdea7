// Damaged files, full disks, and processes that are killed at any moment.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "run/result.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class DamageTest : public testing::Test {
 protected:
  // A store with one sweep, all in a single file.
  void Fill(size_t count) {
    const std::vector<Point> points = samples::Points(count);
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points);
    samples::RunJob(store, "rl-1", "s", points, RunStatus::kOk);
  }
  void Sql(const std::string& sql) {
    Database database(file_, Database::Access::kReadWrite);
    database.Execute("PRAGMA foreign_keys = OFF; " + sql);
  }
  std::vector<std::string> Problems() { return Store::Open(file_, Store::Mode::kReadOnly).Check(); }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
};

TEST_F(DamageTest, GarbageIsRefusedAndLeftAsItIs) {
  for (const std::string& bytes : {std::string("x"), std::string("this is a text file\n"), std::string(100'000, 'z'),
                                   std::string(8192, '\0'), std::string("SQLite format 3") + '\0' + "and no more"}) {
    WriteFileAtomic(file_, bytes);
    for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
      try {
        Store::Open(file_, mode);
        ADD_FAILURE() << "opened " << bytes.substr(0, 30);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput) << e.what();
        EXPECT_THAT(e.message(), HasSubstr(file_.string()));
        EXPECT_THAT(e.message(), HasSubstr("left unchanged"));
      }
      EXPECT_EQ(ReadFile(file_), bytes);
    }
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_.path())) ++files;
    EXPECT_EQ(files, 1U) << "something was left beside it";
  }
}

TEST_F(DamageTest, ATruncatedFileIsRefusedAndLeftAsItIs) {
  Fill(200);
  const std::string whole = ReadFile(file_);
  for (const double part : {0.1, 0.5, 0.99}) {
    const std::string cut = whole.substr(0, static_cast<size_t>(static_cast<double>(whole.size()) * part));
    WriteFileAtomic(file_, cut);
    for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
      try {
        Store::Open(file_, mode);
        ADD_FAILURE() << "opened " << part << " of a file";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput) << e.what();
        EXPECT_THAT(e.message(), HasSubstr("damaged"));
      }
      EXPECT_EQ(ReadFile(file_), cut);
    }
  }
}

TEST_F(DamageTest, AFlippedPageIsFoundWhereverItIs) {
  Fill(200);
  const std::string whole = ReadFile(file_);
  constexpr size_t kPage = 16384;
  ASSERT_GT(whole.size(), 20 * kPage);
  for (size_t page = 1; page < whole.size() / kPage; page += 2) {
    std::string bad = whole;
    for (size_t i = 0; i < kPage; ++i) bad[page * kPage + i] = static_cast<char>(~bad[page * kPage + i]);
    WriteFileAtomic(file_, bad);
    std::vector<std::string> problems;
    try {
      problems = Problems();
    } catch (const Error& e) {  // a page that is read on opening
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput) << e.what();
      problems = {e.message()};
    }
    EXPECT_THAT(problems, Not(IsEmpty())) << "page " << page;
    EXPECT_EQ(ReadFile(file_), bad);
  }
}

TEST_F(DamageTest, CheckFindsWhatSqliteCannotKnow) {
  Fill(3);
  EXPECT_THAT(Problems(), IsEmpty());
  const std::string whole = ReadFile(file_);
  const auto set = [](const std::string& value) { return "UPDATE results SET " + value + " WHERE number = 1"; };
  const std::pair<std::string, const char*> cases[] = {
      {"UPDATE points SET seed = 77 WHERE seed = 1", "column seed"},
      {"UPDATE points SET spec = replace(spec, '\"seed\":1,', '\"seed\":7,') WHERE seed = 1", "hashes to"},
      {"UPDATE points SET spec = spec || ' ' WHERE seed = 1", "not canonical"},
      {"UPDATE points SET spec = '{' WHERE seed = 1", "not JSON"},
      {"UPDATE results SET loss = '[1,' WHERE number = 1", "loss is not JSON"},
      {"UPDATE results SET evidence = 'x' WHERE number = 1", "evidence is not JSON"},
      {"UPDATE results SET status = 'fine' WHERE number = 1", "status"},
      {"UPDATE results SET attempt = 9 WHERE number = 1", "attempt is not its job's"},
      {"UPDATE jobs SET evidence = ''", "evidence is not JSON"},
      {"UPDATE environments SET environment = '?'", "is not JSON"},
      // Figures: types and ranges, according to the table of figures, and combinations that are impossible.
      {set("parameters = -1"), "its parameters is not of the type 'integer' from 0 to 9e+18"},
      {set("steady_tokens_per_s = -0.5"), "its steady_tokens_per_s is not of the type 'number' from 0 to 1e+300"},
      {set("step_cv = 9e999"), "its step_cv is not of the type 'number'"},
      {set("cores_busy_share = 1.5"), "its cores_busy_share is not of the type 'number' from 0 to 1"},
      {set("repeat = 1001"), "its repeat is not of the type 'integer' from 0 to 1000"},
      {set("loss = '[1, \"2\"]'"), "its loss is not of the type 'numbers'"},
      {set("loss = '{\"a\": 1}'"), "its loss is not of the type 'numbers'"},
      {set("all_steps_ns = '[1, null]'"), "its all_steps_ns is not of the type 'integers'"},
      {set("all_steps_ns = '[-1]'"), "its all_steps_ns is not of the type 'integers'"},
      {set("planned_bytes_by_category = '{\"a\": 1.5}'"), "its planned_bytes_by_category is not of the type 'amounts'"},
      {set("planned_bytes_by_category = '[1]'"), "its planned_bytes_by_category is not of the type 'amounts'"},
      {set("provenance = 'guessed'"), "its provenance is not one of the trainer contract's"},
      {set("ended_unix_ns = started_unix_ns - 1"), "it ended before it began"},
      {set("step_p95_ns = step_median_ns - 1"), "its step_p95_ns is below its step_median_ns"},
      {set("repeat = 2"), "its repeat is beyond those of its point"},
      {set("status = 'skipped_predicted_oom'"), "it was skipped, and says it was measured"},
      // Views.
      {"DROP VIEW spreads", "view spreads: it is missing, or not as this ridgeline makes it"},
      {"DROP VIEW spreads; CREATE VIEW spreads AS SELECT 1", "view spreads: it is missing, or not as this"},
      {"PRAGMA legacy_alter_table = ON; ALTER TABLE results RENAME COLUMN message TO words",
       "view runs: it is missing, or not as"},
      {"DELETE FROM results WHERE number = 2", "has no result, but the job ended"},
      {"DELETE FROM environments", "missing row of environments"},
      {"DELETE FROM job_points WHERE ordinal = 1", "missing row of job_points"},
  };
  for (const auto& [sql, problem] : cases) {
    WriteFileAtomic(file_, whole);
    Sql(sql);
    EXPECT_THAT(Problems(), testing::Contains(HasSubstr(problem))) << sql;
  }
}

TEST_F(DamageTest, ALossThatWasNotFiniteIsNoDamage) {
  Fill(1);
  Sql("UPDATE results SET loss = '[9.5, null]', cores_busy_share = 1, skipped_steps = NULL");
  EXPECT_THAT(Problems(), IsEmpty());
}

// The views of another version of Ridgeline.
TEST_F(DamageTest, OtherViewsAreMadeAnewByWhoWrites) {
  Fill(1);
  Sql("DROP VIEW spreads; DROP VIEW series; CREATE VIEW series AS SELECT 1 AS point_id");
  EXPECT_THAT(Problems(), SizeIs(2));
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(DamageTest, CheckStopsListingAfterTwenty) {
  Fill(200);
  Sql("UPDATE results SET loss = '['; UPDATE points SET steps = steps + 1");
  EXPECT_THAT(Problems(), SizeIs(42));
}

// A small disk for the test, if this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& where) : where_(where) {
    std::filesystem::create_directory(where);
    mounted_ = ::mount("tmpfs", where.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path where_;
  bool mounted_ = false;
};

TEST_F(DamageTest, AFullDiskLosesNothing) {
  const SmallDisk disk(dir_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  const std::filesystem::path file = dir_ / "disk" / "ridgeline.db";
  const std::vector<Point> points = samples::Points(2000);
  size_t kept = 0;
  {
    Store store = Store::Open(file, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), std::span(points).first(50));
    try {
      for (; kept < 2000; kept += 10) {
        std::vector<NewResult> results;
        for (size_t i = kept; i < kept + 10; ++i) {
          NewResult& item = results.emplace_back(NewResult{samples::Result(points[i % 50].id), "", 0});
          SetEnd(InfrastructureReason::kLost, item.result);  // each counts as a new attempt
          item.result.message = std::string(2000, 'm');
        }
        store.AddResults(results);
      }
      FAIL() << "1 MB held everything";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure) << e.what();
      EXPECT_THAT(e.message(), HasSubstr("full"));
      EXPECT_THAT(e.hint(), HasSubstr("free"));
    }
    EXPECT_GT(kept, 0U);
    EXPECT_EQ(Value(store, "SELECT count(*) FROM results"), Cell(static_cast<int64_t>(kept)));
  }
  {
    Store store = Store::Open(file, Store::Mode::kReadOnly);
    EXPECT_THAT(store.Check(), IsEmpty());
    EXPECT_EQ(Value(store, "SELECT count(*) FROM results"), Cell(static_cast<int64_t>(kept)));
  }
  ASSERT_EQ(::mount("tmpfs", (dir_ / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  Store store = Store::Open(file, Store::Mode::kReadWrite);  // with space again, writing works
  const NewResult more{samples::Result(points[0].id), "", 0};
  EXPECT_THAT(store.AddResults({&more, 1}), SizeIs(1));
  EXPECT_THAT(store.Check(), IsEmpty());
}

TEST_F(DamageTest, ADiskTooFullToBeginIsAnErrorToo) {
  const SmallDisk disk(dir_ / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  std::ofstream(dir_ / "disk" / "ballast") << std::string(1 << 20, 'b');
  try {
    Store::Open(dir_ / "disk" / "ridgeline.db", Store::Mode::kReadWrite);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure) << e.what();
  }
}

// Repeats forever what a driver does: intent, submitted, results, ended.
[[noreturn]] void WriteUntilKilled(const std::filesystem::path& file, const std::vector<Point>& points, int round) {
  try {
    Store store = Store::Open(file, Store::Mode::kReadWrite);
    for (int i = 0;; ++i) {
      const std::string key = "rl-" + std::to_string(round) + "-" + std::to_string(i);
      store.PutSweep(samples::Sweep("s"), points);
      for (const JobRecord& job : store.LiveJobs()) {  // jobs of the process that was killed before
        std::vector<NewResult> results;
        for (const JobRecord::Point& point : job.points) {
          if (!point.has_result)
            results.push_back({samples::Result(point.id, InfrastructureReason::kLost), job.key, point.attempt});
        }
        store.AddResults(results);
        store.SetJobState(job.key, JobRecord::State::kEnded, {}, 40);
      }
      samples::RunJob(store, key, "s", points, InfrastructureReason::kLost);
    }
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(2);
}

TEST_F(DamageTest, AWriterKilledAtAnyMomentLeavesAWholeStore) {
  const std::vector<Point> points = samples::Points(5);
  std::mt19937 random(20260101);
  int64_t results = 0;
  for (int round = 0; round < 25 || results == 0; ++round) {
    ASSERT_LT(round, 100) << "no writer lives long enough to write a result";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteUntilKilled(file_, points, round);
    ::usleep(random() % (round < 25 ? 20'000 : 1'000'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed: " << status;

    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    ASSERT_THAT(store.Check(), IsEmpty());
    const int64_t now = std::get<int64_t>(Value(store, "SELECT count(*) FROM results"));
    ASSERT_GE(now, results) << "a result was lost";
    results = now;
    ASSERT_LE(store.LiveJobs().size(), 1U);
    ASSERT_EQ(Value(store,
                    "SELECT count(*) FROM job_points AS j WHERE NOT EXISTS (SELECT 1 FROM results AS r "
                    "WHERE r.point_id = j.point_id AND r.attempt = j.attempt)"),
              Cell(static_cast<int64_t>(store.LiveJobs().empty() || store.LiveJobs()[0].points[0].has_result ? 0 : 5)));
  }
}

// A file from somebody else may hold queries that never end, and triggers that run with each change.
constexpr std::string_view kEndless =
    "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS ordinal FROM "
    "n";

TEST_F(DamageTest, AStrangersViewIsNeverRun) {
  Fill(2);
  Sql("DROP VIEW runs; " + std::string(kEndless));
  Store store = Store::Open(file_, Store::Mode::kReadOnly);
  EXPECT_EQ(Value(store, "SELECT count(*) FROM runs"), Cell(int64_t{2})) << "read through a view of our own";
  EXPECT_EQ(Value(store, "SELECT count(*) FROM sweep_runs"), Cell(int64_t{2})) << "which the others ask, too";
  EXPECT_THAT(Problems(), testing::Contains(HasSubstr("view runs: it is missing, or not as this ridgeline makes it")));
}

TEST_F(DamageTest, NamesForeignObjectsWithoutReadingThem) {
  Fill(2);
  Sql("CREATE TRIGGER steal AFTER INSERT ON results BEGIN DELETE FROM points; END; CREATE TABLE notes (a); "
      "CREATE VIEW endless AS SELECT 1; CREATE VIRTUAL TABLE found USING fts5(x); ANALYZE");
  const std::vector<std::string> problems = Problems();
  EXPECT_THAT(problems, testing::IsSupersetOf({"table found: Ridgeline makes none of this name",
                                               "table notes: Ridgeline makes none of this name",
                                               "trigger steal: Ridgeline makes none of this name",
                                               "view endless: Ridgeline makes none of this name"}));
}

TEST_F(DamageTest, ATriggerOfTheFileDoesNotRun) {
  Fill(2);
  Sql("CREATE TRIGGER steal AFTER INSERT ON sweeps BEGIN DELETE FROM job_points; END");
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  store.PutSweep(samples::Sweep("other"), samples::Points(2));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM job_points"), Cell(int64_t{2}));
}

TEST_F(DamageTest, ATableOfOursThatIsNoneIsRefused) {
  for (const std::string& sql : {std::string("DROP TABLE results; CREATE VIEW results AS SELECT * FROM points"),
                                 std::string("ALTER TABLE results ADD COLUMN more TEXT AS (hex(zeroblob(1000000)))"),
                                 std::string("DROP TABLE results; CREATE VIRTUAL TABLE results USING fts5(x)")}) {
    std::filesystem::remove(file_);
    Fill(1);
    Sql(sql);
    for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
      try {
        Store::Open(file_, mode);
        ADD_FAILURE() << sql;
      } catch (const Error& e) {
        EXPECT_THAT(e.message(), HasSubstr("was not made by Ridgeline: not a table as Ridgeline makes it: results"));
      }
    }
  }
}

TEST_F(DamageTest, AQuestionWithoutEndIsStopped) {
  Fill(1);
  Database database(file_, Database::Access::kReadOnly, {.longest_look = std::chrono::milliseconds(50)});
  constexpr char kForEver[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
  for (const auto& ask : {std::function<void()>([&] { database.Integer(kForEver); }),
                          std::function<void()>([&] { database.Select(kForEver); })}) {
    try {
      ask();
      ADD_FAILURE() << "it ended";
    } catch (const Error& e) {
      EXPECT_THAT(e.message(), HasSubstr("took too long, and was stopped"));
    }
  }
  EXPECT_EQ(database.Integer("SELECT count(*) FROM points"), 1) << "the next one is answered";
  Database writes(file_, Database::Access::kReadWrite, {.longest_look = std::chrono::milliseconds(50)});
  EXPECT_THROW(writes.Select(kForEver), Error) << "a person's question is bounded in a program that writes, too";
}

TEST_F(DamageTest, AnAnswerWithoutEndTakesNoMoreThanSoMuchMemory) {
  Fill(1);
  Database database(file_, Database::Access::kReadOnly, {.most_answer_bytes = 1'000'000});
  const auto refusal = [&](const std::string& sql) {
    try {
      database.Select(sql);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("an answer");
  };
  EXPECT_THAT(refusal("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"),
              HasSubstr("an answer of more than 1 MB"));
  EXPECT_THAT(refusal("SELECT length(zeroblob(1000000000))"), HasSubstr("too big"));
  EXPECT_EQ(refusal("SELECT length(zeroblob(1000000))"), "an answer") << "the next one is answered";
}

TEST_F(DamageTest, AnAnswerLargerThanMayBeHeldIsRefused) {
  Fill(1);
  Store store = Store::Open(file_, Store::Mode::kReadOnly, {}, {.most_answer_bytes = 1'000'000});
  static constexpr char kRows[] =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT hex(zeroblob(5000)) FROM n";
  try {
    store.Query(fmt::format(kRows, 1'000'000));
    ADD_FAILURE() << "it is held";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("an answer of more than 1 MB"));
  }
  EXPECT_THAT(store.Query(fmt::format(kRows, 10)).rows, SizeIs(10));
}

TEST_F(DamageTest, AFifoIsRefusedAndNotWaitedFor) {
  Fill(1);
  for (const char* suffix : {"-journal", "-wal", ""}) {
    const std::string fifo = file_.string() + suffix;
    std::filesystem::remove(fifo);
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
      try {
        Store::Open(file_, mode);
        ADD_FAILURE() << fifo;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
        EXPECT_THAT(e.message(), HasSubstr(fifo + " is not a regular file"));
      }
    }
    std::filesystem::remove(fifo);
  }
}

}  // namespace
}  // namespace ridgeline::store
