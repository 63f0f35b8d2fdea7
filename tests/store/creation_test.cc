// A process makes a store and is killed at each of its changes to a file.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kKilled = 9;

// SQLite changes files through these functions. The last write that is let through may be cut to half.
int changes_left = 0;
bool half_written = false;

bool Ends() { return --changes_left <= 0; }

ssize_t WriteAt(int fd, const void* bytes, size_t count, off_t offset) {
  if (Ends()) {
    if (half_written) [[maybe_unused]]
      const ssize_t n = ::pwrite(fd, bytes, count / 2, offset);
    ::_exit(kKilled);
  }
  return ::pwrite(fd, bytes, count, offset);
}
int Truncate(int fd, off_t size) {
  if (Ends()) ::_exit(kKilled);
  return ::ftruncate(fd, size);
}
int Unlink(const char* path) {
  if (Ends()) ::_exit(kKilled);
  return ::unlink(path);
}
int Open(const char* path, int flags, int mode) {
  if ((flags & O_CREAT) != 0 && ::access(path, F_OK) != 0 && Ends()) ::_exit(kKilled);
  return ::open(path, flags, mode);
}

// Makes a store with one sweep, and is killed at the n-th change. Returns whether it was killed.
bool MakeUntilKilled(const std::filesystem::path& file, int n, bool half) {
  const pid_t child = ::fork();
  if (child == 0) {
    changes_left = n;
    half_written = half;
    sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
    const auto replace = [&](const char* name, auto* function) {
      if (vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(function)) != SQLITE_OK) ::_exit(1);
    };
    replace("pwrite", WriteAt);
    replace("pwrite64", WriteAt);
    replace("ftruncate", Truncate);
    replace("unlink", Unlink);
    replace("open", Open);
    try {
      Store store = Store::Open(file, Store::Mode::kReadWrite);
      store.PutSweep(samples::Sweep("s"), samples::Points(3));
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_THAT(WEXITSTATUS(status), AnyOf(0, kKilled)) << "change " << n;
  return WEXITSTATUS(status) == kKilled;
}

class CreationTest : public testing::TestWithParam<bool> {
 protected:
  void Begin() {
    for (const char* end : {"", "-journal", "-wal", "-shm"}) std::filesystem::remove(file_.string() + end);
  }

  // Whatever is left, a reader gets a message, and the next run can use the file.
  void ExpectTaken() {
    try {
      EXPECT_THAT(Store::Open(file_, Store::Mode::kReadOnly).Check(), IsEmpty());
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
      EXPECT_THAT(e.message(), AnyOf(HasSubstr("there is no database"), HasSubstr("holds no results yet"),
                                     HasSubstr("was being changed by a program that was ended")));
    }
    Store store = Store::Open(file_, Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), samples::Points(3));
    EXPECT_EQ(samples::Value(store, "SELECT count(*) FROM sweep_points"), Cell(int64_t{3}));
    EXPECT_THAT(store.Check(), IsEmpty());
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
};
INSTANTIATE_TEST_SUITE_P(LastWriteWholeOrHalf, CreationTest, testing::Bool());

TEST_P(CreationTest, ContinuesWhereverItWasKilled) {
  int n = 1;
  for (; n < 1000; ++n) {
    SCOPED_TRACE(n);
    Begin();
    const bool killed = MakeUntilKilled(file_, n, GetParam());
    ExpectTaken();
    if (!killed || HasFatalFailure() || HasNonfatalFailure()) break;
  }
  EXPECT_GT(n, 10) << "a store is made by more changes than that";
  EXPECT_LT(n, 1000);
}

// Killed again and again, each time one change later.
TEST_P(CreationTest, ContinuesHoweverOftenItIsKilled) {
  Begin();
  for (int n = 1; n < 30; ++n) MakeUntilKilled(file_, n, GetParam());
  ExpectTaken();
}

TEST_F(CreationTest, AnEmptyFileIsTaken) {
  WriteFileAtomic(file_, "");
  ExpectTaken();
}

}  // namespace
}  // namespace ridgeline::store
