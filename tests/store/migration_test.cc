// A store that an earlier version wrote (tests/store/kept) is migrated without loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::IsEmpty;
using testing::SizeIs;

std::filesystem::path Kept(size_t version) {
  return std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/store/kept" /
         ("version" + std::to_string(version) + ".sql");
}

const std::string kOwn = R"({"cpus":2,"trainer":["train.sh","--fast"]})";

// Two sweeps: `engine` with seeds 1 to 3, and `own`, with its own trainer, with seeds 3 and 4. Seed 1 ended ok. Seed 2
// was lost and then crashed. Seed 3 was skipped, and is in a job that is about to be submitted for `own`. Seed 4 ended
// ok with the other trainer.
class MigrationTest : public testing::TestWithParam<size_t> {
 protected:
  MigrationTest() {
    Database database(file_, Database::Access::kReadWrite);
    database.Execute(ReadFile(Kept(GetParam())));
  }
  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
};

TEST_P(MigrationTest, KeepsEveryResult) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_THAT(store.Check(), IsEmpty());
  EXPECT_EQ(Value(store,
                  "SELECT group_concat(seed || ' ' || status || ' ' || attempt, ', ') FROM "
                  "(SELECT * FROM runs ORDER BY seed)"),
            Cell("1 ok 1, 2 crashed 2, 3 skipped_predicted_oom 1, 4 ok 1"));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM results"), Cell(int64_t{5}));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM measurements"), Cell(int64_t{4}));
  EXPECT_EQ(Value(store, "SELECT group_concat(reason) FROM results WHERE status = 'infrastructure'"), Cell("lost"));
  EXPECT_EQ(Value(store,
                  "SELECT steady_tokens_per_s || loss || all_steps_ns || planned_parameters_bytes FROM runs "
                  "WHERE seed = 1"),
            Cell("1000.5[9.5,9.25,9.0][900,500,510]100"));
  EXPECT_EQ(Value(store, "SELECT count(*) FROM series"), Cell(int64_t{18}));
}

TEST_P(MigrationTest, SaysWhatIsKnownOfWhereResultsComeFrom) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(Value(store, "SELECT group_concat(DISTINCT campaign) FROM runs"), Cell("default"));
  EXPECT_EQ(
      Value(store, "SELECT group_concat(trainer || ' on ' || cpus, ', ') FROM (SELECT * FROM runs ORDER BY seed)"),
      Cell("ridgeline-train on 0, ridgeline-train on 0, ridgeline-train on 0, train.sh --fast on 2"));
  EXPECT_EQ(Value(store, "SELECT machine FROM runs WHERE seed = 1"), Cell("Example CPU; avx2 fma; 2 cores"));
  EXPECT_EQ(Value(store, "SELECT version FROM runs WHERE seed = 4"), Cell("0.1.0 (0123abc)"));
  EXPECT_EQ(Value(store, "SELECT machine || version FROM runs WHERE seed = 2"), Cell(""));
}

TEST_P(MigrationTest, PaysForNothingTwice) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_THAT(store.FinishedPoints("engine"), SizeIs(3));
  EXPECT_THAT(store.FinishedPoints("own"), SizeIs(1)) << "what the engine was predicted to need is not its trainer's";
  EXPECT_EQ(store.Progress("own").sweep.measured_as, (MeasurementKey{kDefaultCampaign, kOwn}));
  const std::vector<JobRecord> live = store.LiveJobs("own");
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_EQ(live[0].measured_as.setup, kOwn);
  EXPECT_EQ(live[0].points.at(0).attempt, 2);
  EXPECT_EQ(store.Progress("own").live, 1);
}

TEST_P(MigrationTest, LeavesTheFileAsItIsForAReader) {
  const std::string before = ReadFile(file_);
  {
    Store store = Store::Open(file_, Store::Mode::kReadOnly);
    EXPECT_THAT(store.Check(), IsEmpty());
    EXPECT_EQ(Value(store, "SELECT count(*) FROM measurements"), Cell(int64_t{4}));
  }
  EXPECT_EQ(ReadFile(file_), before);
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_THAT(Store::Open(file_, Store::Mode::kReadOnly).Check(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, MigrationTest, testing::Values(size_t{5}));

TEST(Migrations, TestsKeepAStoreOfEveryVersionThatIsRead) {
  for (size_t version = 1; version < Migrations().size(); ++version) {
    EXPECT_EQ(std::filesystem::exists(Kept(version)), !Migrations()[version].empty()) << version;
  }
}

TEST(Migrations, AnOlderFileIsRefusedAndLeftAsItIs) {
  const TempDir dir;
  const std::filesystem::path file = dir / "old.db";
  {
    Database database(file, Database::Access::kReadWrite);
    database.Execute(ReadFile(Kept(5)));
    database.Execute("PRAGMA user_version = 4");
  }
  const std::string before = ReadFile(file);
  for (const Store::Mode mode : {Store::Mode::kReadOnly, Store::Mode::kReadWrite}) {
    try {
      Store::Open(file, mode);
      ADD_FAILURE() << "taken";
    } catch (const Error& e) {
      EXPECT_THAT(e.message(), testing::HasSubstr("schema version 4, older than any that this ridgeline reads"));
    }
  }
  EXPECT_EQ(ReadFile(file), before);
}

}  // namespace
}  // namespace ridgeline::store
