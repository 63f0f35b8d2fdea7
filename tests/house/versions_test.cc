// docs/versioning.md and CHANGELOG.md name the versions that the code has.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/files.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

// What the pattern's one group matches in a file of the sources.
std::string Matched(const std::string& file, const std::string& pattern) {
  const std::string text = ReadFile(SourceDir() / file);
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(pattern))) << file << " has no " << pattern;
  return match.empty() ? "" : match[1].str();
}

// The version of an interface in docs/versioning.md's table.
std::string Documented(const std::string& interface) {
  return Matched("docs/versioning.md", R"(\n\| )" + interface + R"( \| ([0-9.]+) \|)");
}

TEST(Versions, InThePageAreTheCodes) {
  const std::string contract = "include/ridgeline/run.h";
  EXPECT_EQ(Documented("trainer contract: RunSpec"), Matched(contract, R"(kRunSpecVersion = (\d+);)"));
  EXPECT_EQ(Documented("trainer contract: RunResult"), Matched(contract, R"(kRunResultVersion = (\d+);)"));
  EXPECT_EQ(Documented("launcher ABI"),
            Matched("include/ridgeline/launcher.h", R"(#define RIDGELINE_LAUNCHER_ABI_VERSION (\d+)u)"));
  EXPECT_EQ(Documented("database schema"),
            Matched("src/store/schema.cc", R"(std::array<std::string_view, (\d+)> kMigrations)"));
  EXPECT_EQ(Documented("report definition"), Matched("src/report/load.cc", R"(kReportVersion = (\d+);)"));
  const std::string own = Matched("CMakeLists.txt", R"(project\(ridgeline VERSION ([0-9.]+) )");
  EXPECT_EQ(Documented("sweep language"), own);
  EXPECT_EQ(Documented("metrics"), own);
}

TEST(Versions, InTheNewestChangesAreTheCodes) {
  EXPECT_EQ(Matched("CHANGELOG.md", R"(\n## ([0-9.]+))"),
            Matched("CMakeLists.txt", R"(project\(ridgeline VERSION ([0-9.]+) )"));
  EXPECT_EQ(Matched("CHANGELOG.md", R"(Trainer contract (\d+),)"), Documented("trainer contract: RunSpec"));
  EXPECT_EQ(Matched("CHANGELOG.md", R"(launcher ABI (\d+),)"), Documented("launcher ABI"));
  EXPECT_EQ(Matched("CHANGELOG.md", R"(schema (\d+),)"), Documented("database schema"));
  EXPECT_EQ(Matched("CHANGELOG.md", R"(report definition (\d+)\.)"), Documented("report definition"));
}

}  // namespace
}  // namespace ridgeline
