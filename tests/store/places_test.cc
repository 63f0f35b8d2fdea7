// Where a database may be: on a network file system, in a team's folder, and in a place without the right to write.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/base/network_folder.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {
namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// Runs `work` in another process. Returns its result, or the words of its error.
std::string InAnotherProcess(const std::function<std::string()>& work) {
  int pipe[2];
  if (::pipe(pipe) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said;
    try {
      said = work();
    } catch (const Error& e) {
      said = e.message();
    }
    [[maybe_unused]] const ssize_t n = ::write(pipe[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string said;
  char bytes[4096];
  for (ssize_t n = 0; (n = ::read(pipe[0], bytes, sizeof bytes)) > 0;) said.append(bytes, static_cast<size_t>(n));
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

// What a reader without the right to write reads. As root, this is the user nobody. Else it is we, in a read-only
// folder.
std::string AsAReader(const fs::path& folder, const std::function<std::string()>& work) {
  ::chmod(folder.c_str(), ::geteuid() == 0 ? 0755 : 0555);
  const std::string said = InAnotherProcess([&]() -> std::string {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return "cannot become nobody";
    return work();
  });
  ::chmod(folder.c_str(), 0755);
  return said;
}

std::string SweepsIn(const fs::path& file) {
  return CellText(Store::Open(file, Store::Mode::kReadOnly).Query("SELECT count(*) FROM sweeps").rows.at(0).at(0));
}

std::string JournalOf(const fs::path& file) {
  Database database(file, Database::Access::kReadWrite);
  Statement mode = database.Prepare("PRAGMA journal_mode");
  mode.Step();
  return mode.Text(0);
}

class PlacesTest : public testing::Test {
 protected:
  ~PlacesTest() override { network_folder.clear(); }
  TempDir dir_;
  fs::path file_ = dir_ / "ridgeline.db";
};

TEST_F(PlacesTest, OnANetworkFileSystemARollbackJournalIsUsedAndElsewhereALog) {
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(JournalOf(file_), "wal");
  network_folder = dir_.path();
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(JournalOf(file_), "delete");
  Store::Open(dir_ / "new.db", Store::Mode::kReadWrite);
  EXPECT_EQ(JournalOf(dir_ / "new.db"), "delete");
  network_folder.clear();
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(JournalOf(file_), "wal");
}

TEST_F(PlacesTest, OpeningADatabaseAgainKeepsItsLocks) {
  network_folder = dir_.path();
  Store::Open(file_, Store::Mode::kReadWrite);
  Database ours(file_, Database::Access::kReadWrite);
  ours.Begin();
  Database(file_, Database::Access::kReadOnly);
  EXPECT_THAT(InAnotherProcess([&]() -> std::string {
                Patience patience;
                patience.give_up_after = std::chrono::milliseconds(1);
                Database theirs(file_, Database::Access::kReadWrite, patience);
                theirs.Begin();
                return "both write";
              }),
              HasSubstr("another process has kept it locked"));
}

TEST_F(PlacesTest, AUserWithoutWriteAccessCanRead) {
  {
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("first"), {});
    EXPECT_EQ(AsAReader(dir_.path(), [&] { return SweepsIn(file_); }), "1") << "beside who writes";
  }
  ASSERT_FALSE(fs::exists(dir_ / "ridgeline.db-wal"));
  EXPECT_EQ(AsAReader(dir_.path(), [&] { return SweepsIn(file_); }), "1");
  EXPECT_FALSE(fs::exists(dir_ / "ridgeline.db-wal"));
  ::chmod(file_.c_str(), 0444);
  EXPECT_EQ(SweepsIn(file_), "1") << "a file that is read-only, in a folder that is not";
  ::chmod(file_.c_str(), 0644);
  network_folder = dir_.path();
  Store::Open(file_, Store::Mode::kReadWrite);
  EXPECT_EQ(AsAReader(dir_.path(), [&] { return SweepsIn(file_); }), "1") << "with a rollback journal";
}

TEST_F(PlacesTest, AReadOnlyMountIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root mounts";
  const std::string said = InAnotherProcess([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=16m") != 0) {
      return "cannot mount";
    }
    {
      Store store = Store::Open(file_, Store::Mode::kReadWrite);
      store.PutSweep(samples::Sweep("first"), {});
    }
    if (::mount("none", dir_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return "cannot remount";
    return SweepsIn(file_);
  });
  if (said == "cannot mount") GTEST_SKIP() << said;
  EXPECT_EQ(said, "1");
}

TEST_F(PlacesTest, ALogThatCannotBeReadIsNamed) {
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  store.PutSweep(samples::Sweep("first"), {});
  TempDir copies;
  fs::copy_file(file_, copies / "a.db");
  fs::copy_file(dir_ / "ridgeline.db-wal", copies / "a.db-wal");
  EXPECT_THAT(AsAReader(copies.path(), [&] { return SweepsIn(copies / "a.db"); }),
              HasSubstr("has changes in " + (copies / "a.db-wal").string()))
      << "what it says without its log may be of any moment";
  ::chmod((copies / "a.db-wal").c_str(), 0);
  if (::geteuid() != 0) return;
  EXPECT_THAT(AsAReader(copies.path(), [&] { return SweepsIn(copies / "a.db"); }),
              HasSubstr("a.db-wal, which you may not read"));
}

TEST_F(PlacesTest, AFileThatChangesAlthoughItShouldNotIsNotReadOn) {
  Store::Open(file_, Store::Mode::kReadWrite);
  const auto changed = [&]() -> std::string {
    Store store = Store::Open(file_, Store::Mode::kReadOnly);
    fs::last_write_time(file_, fs::file_time_type::clock::now() + std::chrono::hours(1));
    return CellText(store.Query("SELECT count(*) FROM sweeps").rows.at(0).at(0));
  };
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file_.c_str(), kNobody, kNobody), 0);
  }
  EXPECT_THAT(AsAReader(dir_.path(), changed), HasSubstr("was written to while it was read"));
}

TEST_F(PlacesTest, ATeamSharesWhatIsMade) {
  ::chmod(dir_.path().c_str(), 02770);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir_.path().c_str(), 0, kNobody), 0);
  }
  ::chmod(dir_.path().c_str(), 02770);
  const mode_t before = ::umask(002);
  Store store = Store::Open(file_, Store::Mode::kReadWrite);
  store.PutSweep(samples::Sweep("first"), {});
  ::umask(before);
  struct stat folder {};
  ::stat(dir_.path().c_str(), &folder);
  for (const char* name : {"ridgeline.db", "ridgeline.db-wal", "ridgeline.db-shm"}) {
    struct stat info {};
    ASSERT_EQ(::stat((dir_ / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0664U) << name;
    EXPECT_EQ(info.st_gid, folder.st_gid) << name;
  }
}

}  // namespace
}  // namespace ridgeline::store
