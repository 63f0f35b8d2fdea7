#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::HasSubstr;

std::set<std::string> Names(const fs::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

// The Error that `action` throws.
Error Caught(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::kInternal, ""};
}

// A process that runs `body` and does not report to gtest.
pid_t Fork(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(99);
    }
    ::_exit(0);
  }
  return pid;
}

void KillAndReap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(WriteFile, AReaderMeanwhileGetsTheWholeOldContent) {
  const TempDir dir;
  for (const auto& write : {WriteFile, WriteFileAtomic}) {
    write(dir / "file", "old bytes");
    std::ifstream reader(dir / "file");
    write(dir / "file", "new");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old bytes");
    EXPECT_EQ(ReadFile(dir / "file"), "new");
  }
  EXPECT_THAT(Names(dir.path()), ElementsAre("file"));
}

// A file that is mounted by itself must be written so.
TEST(WritePrivateFile, IsReadableByItsOwnerAloneWhateverWasThereBefore) {
  const TempDir dir;
  const mode_t before = ::umask(0);
  WriteFile(dir / "f", "all may read");
  WritePrivateFile(dir / "f", "a secret");
  ::umask(before);
  EXPECT_EQ(ReadFile(dir / "f"), "a secret");
  EXPECT_EQ(fs::status(dir / "f").permissions(), fs::perms(0600));
  EXPECT_THAT(Names(dir.path()), ElementsAre("f"));
}

TEST(OverwriteFile, StaysTheSameFile) {
  const TempDir dir;
  WriteFile(dir / "file", "old bytes");
  fs::create_hard_link(dir / "file", dir / "link");
  OverwriteFile(dir / "file", "new");
  EXPECT_EQ(ReadFile(dir / "link"), "new");
}

TEST(Files, ReadsWhatWasWritten) {
  const TempDir dir;
  std::string bytes("a\0b\r\n\xff", 6);
  for (int i = 0; i < 20; ++i) bytes += bytes;  // several megabytes: more than one read
  WriteFileAtomic(dir / "a", bytes);
  EXPECT_EQ(ReadFile(dir / "a"), bytes);
  WriteFileAtomic(dir / "a", "");
  EXPECT_EQ(ReadFile(dir / "a"), "");
}

TEST(Files, ReadNamesWhatItCannotRead) {
  const TempDir dir;
  for (const fs::path& path : {dir / "missing", dir.path()}) {
    const Error error = Caught([&] { ReadFile(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
}

TEST(Files, OnlyWhatIsNotThereReadsAsNothing) {
  const TempDir dir;
  WriteFileAtomic(dir / "a", "text");
  EXPECT_EQ(ReadFileIfThere(dir / "a"), "text");
  EXPECT_EQ(ReadFileIfThere(dir / "missing"), std::nullopt);
  EXPECT_EQ(ReadFileIfThere(dir / "missing" / "a"), std::nullopt);
  EXPECT_EQ(Caught([&] { ReadFileIfThere(dir.path()); }).kind(), ErrorKind::kInfrastructure);
}

TEST(Files, TailIsTheEnd) {
  const TempDir dir;
  WriteFileAtomic(dir / "log", "0123456789");
  EXPECT_EQ(ReadTail(dir / "log", 4), "6789");
  EXPECT_EQ(ReadTail(dir / "log", 10), "0123456789");
  EXPECT_EQ(ReadTail(dir / "log", 1000), "0123456789");
  EXPECT_EQ(ReadTail(dir / "log", 0), "");
  EXPECT_EQ(ReadTail(dir / "missing", 4), "");
  WriteFileAtomic(dir / "log", "");
  EXPECT_EQ(ReadTail(dir / "log", 4), "");
}

TEST(Files, AtomicWriteLeavesNothingElseBehind) {
  const TempDir dir;
  WriteFileAtomic(dir / "a", "1");
  WriteFileAtomic(dir / "a", "22");
  EXPECT_EQ(Names(dir.path()), std::set<std::string>{"a"});
  struct stat status {};
  ASSERT_EQ(::stat((dir / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
}

TEST(Files, AtomicWriteTakesABareName) {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  WriteFileAtomic("bare", "1");
  fs::current_path(before);
  EXPECT_EQ(ReadFile(dir / "bare"), "1");
}

TEST(Files, AtomicWriteReplacesALinkNotItsTarget) {
  const TempDir dir;
  WriteFileAtomic(dir / "target", "kept");
  fs::create_symlink(dir / "target", dir / "link");
  WriteFileAtomic(dir / "link", "new");
  EXPECT_EQ(ReadFile(dir / "target"), "kept");
  EXPECT_EQ(ReadFile(dir / "link"), "new");
}

TEST(Files, ADeviceIsWrittenToAndStaysOne) {
  TempDir dir;
  const fs::path device = dir / "null";
  if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "making devices takes root";
  if (const int fd = ::open(device.c_str(), O_WRONLY | O_CLOEXEC); fd < 0 || ::close(fd) != 0) {
    GTEST_SKIP() << "no devices may be opened here";
  }
  WriteFileAtomic(device, "gone");
  WriteFile(device, "gone");
  EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_TRUE(IsDevice("/dev/stdout") || !fs::exists("/dev/stdout"));
  EXPECT_FALSE(IsDevice(dir.path()));
}

TEST(Files, AtomicWriteIntoAMissingFolderIsAnError) {
  const TempDir dir;
  const Error error = Caught([&] { WriteFileAtomic(dir / "no/a", "1"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr((dir / "no").string()));
}

TEST(Files, AtomicWriteOverAFolderIsAnErrorAndLeavesNoTemporary) {
  const TempDir dir;
  fs::create_directories(dir / "a/b");
  EXPECT_THAT(Caught([&] { WriteFileAtomic(dir / "a", "1"); }).message(), HasSubstr((dir / "a").string()));
  EXPECT_EQ(Names(dir.path()), std::set<std::string>{"a"});
}

// Killed at any moment, the file holds the old bytes or the new ones, whole.
TEST(Files, AtomicWriteUnderKill) {
  const TempDir dir;
  const fs::path path = dir / "result.json";
  const std::string even(300'000, 'e');
  const std::string odd(200'000, 'o');
  WriteFileAtomic(path, even);
  SystemClock clock;
  for (int round = 0; round < 25; ++round) {
    const pid_t writer = Fork([&] {
      for (;;) {
        WriteFileAtomic(path, odd);
        WriteFileAtomic(path, even);
      }
    });
    clock.SleepNs(300'000 + round * 1'500'000);
    KillAndReap(writer);
    const std::string bytes = ReadFile(path);
    ASSERT_TRUE(bytes == even || bytes == odd) << "round " << round << ": " << bytes.size() << " bytes";
  }
}

TEST(Files, AReaderNeverSeesHalfAFile) {
  const TempDir dir;
  const fs::path path = dir / "result.json";
  const std::string even(100'000, 'e');
  const std::string odd(50'000, 'o');
  WriteFileAtomic(path, even);
  const pid_t writer = Fork([&] {
    for (;;) {
      WriteFileAtomic(path, odd);
      WriteFileAtomic(path, even);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = ReadFile(path);
    EXPECT_TRUE(bytes == even || bytes == odd) << bytes.size() << " bytes";
  }
  KillAndReap(writer);
}

// A file-size limit fails a write half-way on any machine, as a full disk does.
TEST(Files, AWriteThatFailsHalfWayKeepsTheOldBytes) {
  const TempDir dir;
  WriteFileAtomic(dir / "a", "old");
  const pid_t pid = Fork([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    try {
      WriteFileAtomic(dir / "a", std::string(100'000, 'x'));
    } catch (const Error& error) {
      ::_exit(error.kind() == ErrorKind::kInfrastructure ? 42 : 3);
    }
  });
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(ReadFile(dir / "a"), "old");
  EXPECT_EQ(Names(dir.path()), std::set<std::string>{"a"});
}

TEST(Files, AFullDiskKeepsTheOldBytesAndSaysSo) {
  const TempDir dir;
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0) GTEST_SKIP() << "a small tmpfs needs root";
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "this container may not mount";
  }
  WriteFileAtomic(dir / "a", "old");
  const Error error = Caught([&] { WriteFileAtomic(dir / "a", std::string(1'000'000, 'x')); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr((dir / "a").string()));
  EXPECT_THAT(error.hint(), HasSubstr("full"));
  EXPECT_EQ(ReadFile(dir / "a"), "old");
  EXPECT_EQ(Names(dir.path()), std::set<std::string>{"a"});
  WriteFileAtomic(dir / "a", "new");  // the space of the failed write was given back
  EXPECT_EQ(ReadFile(dir / "a"), "new");
  ::umount(dir.path().c_str());
}

TEST(FileWriter, AppendsToANewFileOnly) {
  const TempDir dir;
  {
    FileWriter file(dir / "a");
    file.Append("one ");
    file.Append("");
    file.Append("two");
    file.Sync();
  }
  EXPECT_EQ(ReadFile(dir / "a"), "one two");
  EXPECT_THROW(FileWriter(dir / "a"), Error);
  EXPECT_THROW(FileWriter(dir / "no folder" / "a"), Error);
  EXPECT_EQ(ReadFile(dir / "a"), "one two");
}

TEST(FileReader, ReadsAnywhereInIt) {
  const TempDir dir;
  WriteFileAtomic(dir / "a", "0123456789");
  const FileReader file(dir / "a");
  EXPECT_EQ(file.size(), 10);
  std::string four(4, ' ');
  file.ReadAt(3, four);
  EXPECT_EQ(four, "3456");
  EXPECT_THROW(file.ReadAt(8, four), Error);  // beyond the end of the file
  EXPECT_THROW(FileReader(dir / "b"), Error);
}

TEST(SyncFolder, NamesAFolderThatIsNotThere) {
  const TempDir dir;
  EXPECT_NO_THROW(SyncFolder(dir.path()));
  EXPECT_THROW(SyncFolder(dir / "nowhere"), Error);
}

TEST(Files, AreAsPrivateAsTheUmaskSays) {
  const TempDir dir;
  const auto mode_of = [&](const char* name) {
    struct stat info {};
    EXPECT_EQ(::stat((dir / name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  };
  for (const mode_t mask : {mode_t{077}, mode_t{027}, mode_t{022}, mode_t{002}, mode_t{0}}) {
    const mode_t before = ::umask(mask);
    for (const char* name : {"atomic", "plain", "over", "synced", "lock"}) fs::remove(dir / name);
    WriteFileAtomic(dir / "atomic", "x");
    WriteFile(dir / "plain", "x");
    OverwriteFile(dir / "over", "x");
    WriteSynced(dir / "synced", "x");
    const auto lock = FileLock::Try(dir / "lock");
    ::umask(before);
    for (const char* name : {"atomic", "plain", "over", "synced", "lock"}) {
      EXPECT_EQ(mode_of(name), 0666U & ~mask) << name << " under the umask " << std::oct << mask;
    }
  }
}

TEST(Files, ReadsOfAFileAtMostWhatIsAskedFor) {
  const TempDir dir;
  WriteFile(dir / "file", std::string(200'000, 'x'));
  EXPECT_EQ(ReadFileIfThere(dir / "file", 10)->size(), 10U);
  EXPECT_EQ(ReadFileIfThere(dir / "file", 100'001)->size(), 100'001U);
  EXPECT_EQ(ReadFileIfThere(dir / "file", 200'001)->size(), 200'000U);
  EXPECT_EQ(ReadFileIfThere("/dev/zero", 1 << 20)->size(), size_t{1} << 20);
}

TEST(Files, TheTailOfAPipeIsEmptyAndNotWaitedFor) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadTail(dir / "pipe", 100), "");
}

TEST(Files, MakeDirsMakesParentsAndIsContentWithWhatIsThere) {
  const TempDir dir;
  MakeDirs(dir / "a/b/c");
  EXPECT_TRUE(fs::is_directory(dir / "a/b/c"));
  EXPECT_NO_THROW(MakeDirs(dir / "a/b/c"));
}

TEST(Files, MakeDirsNamesWhatIsInTheWay) {
  const TempDir dir;
  WriteFileAtomic(dir / "file", "");
  const Error error = Caught([&] { MakeDirs(dir / "file/sub"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr((dir / "file/sub").string()));
  EXPECT_THROW(MakeDirs(dir / "file"), Error);
  std::filesystem::create_symlink("loop", dir / "loop");
  EXPECT_THROW(MakeDirs(dir / "loop"), Error);
}

TEST(FileLock, IsExclusiveAndGivenBack) {
  const TempDir dir;
  {
    const auto lock = FileLock::Try(dir / "lock");
    ASSERT_TRUE(lock.has_value());
    EXPECT_FALSE(FileLock::Try(dir / "lock").has_value());
    EXPECT_TRUE(FileLock::Try(dir / "other").has_value());
  }
  EXPECT_TRUE(FileLock::Try(dir / "lock").has_value());
}

TEST(FileLock, MovesWithItsObject) {
  const TempDir dir;
  auto first = FileLock::Try(dir / "lock");
  ASSERT_TRUE(first.has_value());
  std::optional<FileLock> second(std::move(*first));
  first.reset();
  EXPECT_FALSE(FileLock::Try(dir / "lock").has_value());
  second.reset();
  EXPECT_TRUE(FileLock::Try(dir / "lock").has_value());
}

TEST(FileLock, AnotherProcessHoldsItUntilItIsKilled) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = Fork([&] {
    const auto lock = FileLock::Try(dir / "lock");
    const char held = lock.has_value() ? 'y' : 'n';
    if (::write(ready[1], &held, 1) == 1) ::pause();
  });
  char held = 0;
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_FALSE(FileLock::Try(dir / "lock").has_value());
  KillAndReap(holder);
  EXPECT_TRUE(FileLock::Try(dir / "lock").has_value());
  ::close(ready[0]);
  ::close(ready[1]);
}

// This way a job that outlives its driver keeps the job's lock.
TEST(FileLock, AChildThatInheritsItHoldsIt) {
  const TempDir dir;
  auto lock = FileLock::Try(dir / "lock");
  ASSERT_TRUE(lock.has_value());
  SpawnOptions options;
  options.inherit_fds = {lock->fd()};
  options.die_with_parent = true;
  Child heir = Child::Spawn({"sleep", "600"}, options);
  lock.reset();
  EXPECT_FALSE(FileLock::Try(dir / "lock").has_value());
  heir.Signal(SIGKILL);
  heir.Wait();
  EXPECT_TRUE(FileLock::Try(dir / "lock").has_value());
}

TEST(FileLock, AChildDoesNotInheritItUnasked) {
  const TempDir dir;
  auto lock = FileLock::Try(dir / "lock");
  ASSERT_TRUE(lock.has_value());
  SpawnOptions options;
  options.die_with_parent = true;
  Child stranger = Child::Spawn({"sleep", "600"}, options);
  lock.reset();
  EXPECT_TRUE(FileLock::Try(dir / "lock").has_value());
  stranger.Signal(SIGKILL);
  stranger.Wait();
}

// A link would make us create a file that someone else chose, and a pipe would wait for a reader.
TEST(FileLock, IsARegularFileAndNothingElse) {
  const TempDir dir;
  fs::create_symlink(dir / "elsewhere", dir / "link");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_directory(dir / "folder");
  for (const char* name : {"link", "pipe", "folder"}) {
    const Error error = Caught([&] { FileLock::Try(dir / name); });
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(error.message(), HasSubstr((dir / name).string()));
  }
  EXPECT_FALSE(fs::exists(dir / "elsewhere"));
}

TEST(FileLock, NamesTheFileItCannotOpen) {
  const TempDir dir;
  const Error error = Caught([&] { FileLock::Try(dir / "no/lock"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr((dir / "no/lock").string()));
}

TEST(DataDir, RidgelineHomeComesFirst) {
  const TempDir dir;
  ::setenv("RIDGELINE_HOME", dir.path().c_str(), 1);
  EXPECT_EQ(DataDir("reports"), dir / "reports");
  ::unsetenv("RIDGELINE_HOME");
}

TEST(DataDir, SaysWhatItLookedForAndWhatToDo) {
  ::unsetenv("RIDGELINE_HOME");
  const Error error = Caught([] { DataDir("no-such-data"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.message(), HasSubstr("no-such-data"));
  EXPECT_THAT(error.hint(), HasSubstr("RIDGELINE_HOME"));
}

TEST(DataDir, ProgramDirHoldsThisProgram) { EXPECT_TRUE(fs::exists(ProgramDir() / "test_base")); }

}  // namespace
}  // namespace ridgeline
