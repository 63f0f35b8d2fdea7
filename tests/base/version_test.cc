#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace ridgeline {
namespace {

TEST(Version, IsThreeNumbers) { EXPECT_THAT(std::string(kVersion), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+")); }

TEST(Version, TheCommitIsAHashOrSaidToBeUnknown) {
  std::string commit(GitCommit());
  if (commit == "unknown") return;
  const std::string dirty = "-dirty";
  if (commit.ends_with(dirty)) commit.resize(commit.size() - dirty.size());
  EXPECT_EQ(commit.size(), 40U);
  EXPECT_EQ(commit.find_first_not_of("0123456789abcdef"), std::string::npos) << commit;
}

TEST(Version, TheCommitWasMadeBeforeNow) {
  EXPECT_LE(GitCommitUnixS(), ::time(nullptr));
  if (GitCommitUnixS() != 0) {
    EXPECT_GT(GitCommitUnixS(), 1'700'000'000);
  }
}

}  // namespace
}  // namespace ridgeline
