// Anything in the place of a trainer's or a job's file is opened without waiting, read within limits, or refused by
// name.
#include "ridgeline/foreign_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using State = ForeignFile::State;
using testing::HasSubstr;

constexpr size_t kMost = 1000;

void MakeSocket(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.native().size(), sizeof address.sun_path);
  std::strcpy(static_cast<char*>(address.sun_path), path.c_str());  // NOLINT: it fits
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

// Things that are no readable file, and the messages about them.
std::vector<std::pair<std::function<void(const fs::path&)>, std::string>> Unfit() {
  return {
      {[](const fs::path& path) { ::mkfifo(path.c_str(), 0600); }, "is a named pipe, not a regular file"},
      {[](const fs::path& path) { fs::create_directory(path); }, "is a folder, not a regular file"},
      {[](const fs::path& path) { fs::create_symlink("/dev/zero", path); }, "is a symbolic link, not a regular file"},
      {[](const fs::path& path) { fs::create_symlink("nowhere", path); }, "is a symbolic link, not a regular file"},
      {[](const fs::path& path) { fs::create_symlink(path, path); }, "is a symbolic link, not a regular file"},
      {MakeSocket, "is a socket, not a regular file"},
  };
}

TEST(ForeignFile, OnlyARegularFileIsOpened) {
  for (const auto& [make, says] : Unfit()) {
    const TempDir dir;
    make(dir / "file");
    ForeignFile file(dir / "file");
    EXPECT_EQ(file.state(), State::kUnfit) << says;
    EXPECT_EQ(file.problem(), says);
    EXPECT_EQ(file.Read(kMost), std::nullopt) << says;
    EXPECT_EQ(file.ReadTail(kMost), std::nullopt) << says;
  }
  EXPECT_EQ(ForeignFile("/dev/zero").problem(), "is a device, not a regular file");
}

TEST(ForeignFile, SaysWhatIsMissingOrUnreadable) {
  const TempDir dir;
  WriteFile(dir / "a", "text");
  EXPECT_EQ(ForeignFile(dir / "missing").state(), State::kMissing);
  EXPECT_EQ(ForeignFile(dir / "a" / "below").state(), State::kMissing);
  fs::create_symlink("loop", dir / "loop");
  const ForeignFile file(dir / "loop" / "a");
  EXPECT_EQ(file.state(), State::kUnreadable);
  EXPECT_THAT(file.problem(), HasSubstr("cannot be read: "));
}

TEST(ForeignFile, IsReadWholeOrNotAtAll) {
  const TempDir dir;
  for (const size_t size : {size_t{0}, size_t{1}, kMost - 1, kMost}) {
    const std::string bytes(size, 'x');
    WriteFile(dir / "a", bytes);
    EXPECT_EQ(ForeignFile(dir / "a").Read(kMost), bytes);
  }
  WriteFile(dir / "a", std::string(kMost + 1, 'x'));
  ForeignFile file(dir / "a");
  EXPECT_EQ(file.Read(kMost), std::nullopt);
  EXPECT_EQ(file.state(), State::kUnfit);
  EXPECT_EQ(file.problem(), "has 1001 bytes, and may have 1000");
}

TEST(ForeignFile, AGiantThatTakesNoRoomOnTheDiskTakesNoneHere) {
  const TempDir dir;
  WriteFile(dir / "a", "");
  fs::resize_file(dir / "a", std::uintmax_t{1} << 40);
  ForeignFile file(dir / "a");
  EXPECT_EQ(file.ReadTail(5), std::string(5, '\0'));
  EXPECT_EQ(file.Read(kMost), std::nullopt);
  EXPECT_EQ(file.problem(), "has 1099511627776 bytes, and may have 1000");
}

TEST(ForeignFile, StopsReadingAGrowingFileAtTheLimit) {
  const TempDir dir;
  WriteFile(dir / "a", "short");
  ForeignFile file(dir / "a");
  std::ofstream(dir / "a", std::ios::app) << std::string(5000, 'x');
  EXPECT_EQ(file.Read(kMost), std::nullopt);
  EXPECT_THAT(file.problem(), HasSubstr("may have 1000"));
  ForeignFile made_up("/proc/self/status");  // reports a size of zero bytes
  EXPECT_EQ(made_up.size(), 0);
  EXPECT_THAT(made_up.Read(1 << 20).value_or(""), HasSubstr("VmHWM"));
}

TEST(ForeignFile, ALinkOfAPersonMayBeFollowed) {
  const TempDir dir;
  WriteFile(dir / "a", "text");
  fs::create_symlink("a", dir / "link");
  EXPECT_EQ(ForeignFile(dir / "link").Read(kMost), std::nullopt);
  EXPECT_EQ(ForeignFile(dir / "link", ForeignFile::Links::kFollowed).Read(kMost), "text");
  fs::create_symlink("nowhere", dir / "dangling");
  EXPECT_EQ(ForeignFile(dir / "dangling", ForeignFile::Links::kFollowed).state(), State::kMissing);
  fs::create_symlink("/dev/zero", dir / "zero");
  EXPECT_EQ(ForeignFile(dir / "zero", ForeignFile::Links::kFollowed).problem(), "is a device, not a regular file");
}

TEST(ForeignFile, TheReadersOfThisRoomNameIt) {
  for (const auto& [make, says] : Unfit()) {
    const TempDir dir;
    make(dir / "file");
    EXPECT_EQ(ReadTail(dir / "file", 10), "") << says;
    for (const auto& read : {std::function([&] { ReadForeignFile(dir / "file", kMost); }),
                             std::function([&] { FileReader reader(dir / "file"); })}) {
      try {
        read();
        ADD_FAILURE() << says;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
        EXPECT_EQ(e.message(), (dir / "file").string() + " " + says);
      }
    }
  }
  const TempDir dir;
  EXPECT_EQ(ReadForeignFile(dir / "missing", kMost), std::nullopt);
  WriteFile(dir / "a", "text");
  EXPECT_EQ(ReadForeignFile(dir / "a", kMost), "text");
}

}  // namespace
}  // namespace ridgeline
