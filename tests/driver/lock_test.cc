#include "driver/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "driver/places.h"
#include "tests/base/network_folder.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::driver {
namespace {

using ::testing::HasSubstr;

TEST(DriverLock, ASecondDriverIsToldWhoHoldsIt) {
  const TempDir dir;
  const DriverLock lock = DriverLock::Take(dir / "a.db", "first sweep");
  try {
    DriverLock::Take(dir / "a.db", "second");
    FAIL() << "two drivers";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr(std::to_string(::getpid())));
    EXPECT_THAT(e.message(), HasSubstr("first sweep"));
  }
  EXPECT_NO_THROW(DriverLock::Take(dir / "b.db", "second"));
}

TEST(DriverLock, IsFreeAgainWhenItsHolderIsGoneAndTheNextNamesItself) {
  const TempDir dir;
  { const DriverLock lock = DriverLock::Take(dir / "a.db", "a sweep with a long name"); }
  const DriverLock lock = DriverLock::Take(dir / "a.db", "s");
  EXPECT_EQ(RunningDriver(dir / "a.db")->sweep, "s");
}

// Who opened the file before its holder removed it must not hold the lock beside one who made a new file.
TEST(DriverLock, RemovesItsFileAndIsStillHeldByOne) {
  const TempDir dir;
  const std::filesystem::path file = DriverLockFile(dir / "a.db");
  std::optional<DriverLock> first = DriverLock::Take(dir / "a.db", "first");
  EXPECT_EQ(FileLock::Try(file), std::nullopt);
  std::filesystem::remove(file);  // as its holder does at the end
  const DriverLock second = DriverLock::Take(dir / "a.db", "second");
  EXPECT_EQ(FileLock::Try(file), std::nullopt);
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(DriverLock, SaysWhoseItIsAndOnWhichHost) {
  const TempDir dir;
  const DriverLock lock = DriverLock::Take(dir / "a.db", "s");
  const auto driver = RunningDriver(dir / "a.db");
  ASSERT_TRUE(driver);
  EXPECT_TRUE(driver->is_here());
  EXPECT_EQ(driver->host, HostName());
  EXPECT_NE(driver->user, "");
  EXPECT_THAT(driver->Text(), HasSubstr("on " + HostName() + ", of " + driver->user));
}

TEST(DriverLock, AnotherHostsLockCountsOnlyOnANetworkFileSystem) {
  const TempDir dir;
  std::ofstream(DriverLockFile(dir / "a.db")) << "7\ntheirs\nlogin1\nanother-boot\nada\n";
  EXPECT_FALSE(RunningDriver(dir / "a.db")) << "on a disk of this host: it was called otherwise before";
  network_folder = dir.path();
  const auto driver = RunningDriver(dir / "a.db");
  ASSERT_TRUE(driver);
  EXPECT_FALSE(driver->is_here());
  try {
    DriverLock::Take(dir / "a.db", "ours");
    ADD_FAILURE() << "two hosts write";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("(process 7 on login1, of ada, sweep theirs)"));
    EXPECT_THAT(e.hint(), HasSubstr("work on login1"));
  }
  std::ofstream(DriverLockFile(dir / "a.db")) << "7\ntheirs\n" << HostName() << "\nanother-boot\nada\n";
  { const DriverLock lock = DriverLock::Take(dir / "a.db", "ours"); }
  EXPECT_FALSE(std::filesystem::exists(DriverLockFile(dir / "a.db"))) << "who ends takes its name out";
  network_folder.clear();
}

TEST(DriverLock, SaysWhoseTheFileIsIfYouMayNotWriteIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another";
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  std::ofstream(DriverLockFile(dir / "a.db")) << "";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    try {
      DriverLock::Take(dir / "a.db", "ours");
    } catch (const Error& e) {
      ::_exit(e.message().find("is root's, and you may not write to it") != std::string::npos &&
                      !DriverLock::TakeForAMoment(dir / "a.db")
                  ? 0
                  : 2);
    }
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DriverLock, WaitsForAForkedChildOfADriverThatWasKilled) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t driver = ::fork();
  if (driver == 0) {
    const DriverLock lock = DriverLock::Take(dir / "a.db", "theirs");
    const pid_t child = ::fork();  // has not reached exec yet, so it still holds the lock, too
    if (child == 0) {
      ::usleep(200'000);
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t n = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(driver, SIGKILL);
  ::waitpid(driver, nullptr, 0);
  EXPECT_NO_THROW(DriverLock::Take(dir / "a.db", "ours"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(DriverLock, WaitsForAProcessThatOnlyLooksAndIsNoDriver) {
  const TempDir dir;
  std::optional<DriverLock> looking = DriverLock::TakeForAMoment(dir / "a.db");
  ASSERT_TRUE(looking);
  EXPECT_FALSE(DriverLock::TakeForAMoment(dir / "a.db")) << "one at a time";
  EXPECT_FALSE(RunningDriver(dir / "a.db"));
  std::thread end([&] {
    ::usleep(200'000);
    looking.reset();
  });
  EXPECT_NO_THROW(DriverLock::Take(dir / "a.db", "ours"));
  end.join();
}

TEST(RunningDriver, FindsADriverOfAnotherProcess) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const DriverLock lock = DriverLock::Take(dir / "a.db", "theirs");
    [[maybe_unused]] const ssize_t n = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto driver = RunningDriver(dir / "a.db");
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->pid, child);
  EXPECT_EQ(driver->sweep, "theirs");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(RunningDriver(dir / "a.db"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunningDriver, NeverTakesAnotherProgramForADriver) {
  const TempDir dir;
  EXPECT_FALSE(RunningDriver(dir / "a.db"));
  const std::string others = "\nsweep\n" + HostName() + "\n" + ReadFile("/proc/sys/kernel/random/boot_id") + "ada\n";
  const std::string parent = std::to_string(::getppid());
  for (const std::string& text : {parent + others, "1" + others, "0" + others, "-1" + others, "x" + others,
                                  parent + "\nsweep\n", std::string(), std::string("12"), std::string("12\n")}) {
    std::ofstream(DriverLockFile(dir / "a.db")) << text;
    EXPECT_FALSE(RunningDriver(dir / "a.db")) << text;
  }
}

}  // namespace
}  // namespace ridgeline::driver
