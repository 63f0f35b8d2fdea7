#include "base/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/user_folders.h"
#include "tests/base/no_files_left.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  ForEachEntry(folder, [&](const fs::directory_entry& entry) { names.push_back(entry.path().filename()); });
  return names;
}

// The message if no more files can be opened.
template <typename Ask>
std::string WithoutFiles(Ask ask) {
  try {
    const NoFilesLeft none;
    ask();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    return e.what();
  }
  return "";
}

TEST(Folders, OneThatIsMissingIsEmpty) {
  const TempDir dir;
  WriteFile(dir.path() / "a", "");
  EXPECT_THAT(NamesIn(dir.path()), testing::ElementsAre("a"));
  EXPECT_THAT(NamesIn(dir.path() / "missing"), testing::IsEmpty());
  EXPECT_THAT(NamesIn(dir.path() / "a"), testing::IsEmpty());
}

TEST(Folders, OneThatCannotBeReadIsNotEmpty) {
  const TempDir dir;
  WriteFile(dir.path() / "a.yaml", "");
  for (const std::string& said :
       {WithoutFiles([&] { NamesIn(dir.path()); }), WithoutFiles([&] { NamedFiles({dir.path()}); })}) {
    EXPECT_THAT(said, HasSubstr("cannot read the folder " + dir.path().string() + ": Too many open files"));
    EXPECT_THAT(said, HasSubstr("ulimit -n"));
  }
}

TEST(Folders, ALogThatCannotBeReadSaysWhy) {
  const TempDir dir;
  WriteFile(dir.path() / "log.txt", "one\ntwo\n");
  EXPECT_EQ(ReadLogTail(dir.path() / "log.txt", 4), "two\n");
  EXPECT_EQ(ReadLogTail(dir.path() / "none.txt", 4), "");
  const NoFilesLeft none;
  EXPECT_EQ(ReadLogTail(dir.path() / "log.txt", 4), "[this log cannot be read: Too many open files]");
}

}  // namespace
}  // namespace ridgeline
