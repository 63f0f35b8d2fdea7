// A lock that another process holds is waited for, with a message and with a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LockTest : public testing::Test {
 protected:
  LockTest() { Store::Open(file_, Store::Mode::kReadWrite); }
  Patience Waiting(std::chrono::milliseconds note_after, std::chrono::milliseconds give_up_after) {
    return {note_after, give_up_after, [this](const std::string& words) { said_.push_back(words); }};
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
  std::vector<std::string> said_;
};

TEST_F(LockTest, ReportsThatItWaitsForALock) {
  Database other(file_, Database::Access::kReadWrite);
  Database ours(file_, Database::Access::kReadWrite, Waiting(50ms, 60s));
  other.Begin();
  std::jthread releases([&] {
    std::this_thread::sleep_for(300ms);
    other.Rollback();
  });
  ours.Begin();
  ours.Commit();
  EXPECT_THAT(said_, ElementsAre(file_.string() + " is locked by another process, which is waited for"));
}

TEST_F(LockTest, DoesNotReportAShortWait) {
  Database other(file_, Database::Access::kReadWrite);
  Database ours(file_, Database::Access::kReadWrite, Waiting(60s, 60s));
  other.Begin();
  std::jthread releases([&] {
    std::this_thread::sleep_for(50ms);
    other.Rollback();
  });
  ours.Begin();
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LockTest, EndsInWordsWhereItIsNotGivenBack) {
  Database other(file_, Database::Access::kReadWrite);
  Database ours(file_, Database::Access::kReadWrite, Waiting(1ms, 100ms));
  other.Begin();
  try {
    ours.Begin();
    FAIL() << "two have the lock";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr(file_.string() + ": another process has kept it locked"));
    EXPECT_THAT(e.hint(), HasSubstr("wait for the other command to end"));
  }
  other.Rollback();
  ours.Begin();  // nothing of it is left
}

// Other programs on a slow disk hold the lock for 20 s and more.
TEST_F(LockTest, WaitsAsLongAsOthersHoldALock) {
  EXPECT_GE(Patience().give_up_after, 40s);
  EXPECT_LE(Patience().note_after, 2s);
}

TEST_F(LockTest, DisturbsNoReader) {
  Database other(file_, Database::Access::kReadWrite);
  other.Begin();
  other.Execute("INSERT INTO sweeps (name, description, file, text, created_unix_ns) VALUES ('s', '', '', '', 1)");
  Store store =
      Store::Open(file_, Store::Mode::kReadOnly, [this](const std::string& words) { said_.push_back(words); });
  EXPECT_THAT(store.Sweeps(), IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace ridgeline::store
