// `ridgeline history`: every point over commits, with the options that people use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/cli.h"
#include "tests/regress/nights.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;

TEST(HistoryProgram, ShowsEveryCommitAndItsChanges) {
  Cli cli;
  {
    store::Store store = store::Store::Open(cli.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
    testing::Nights nights(store, 1);
    for (int i = 1; i <= 12; ++i) {
      nights.Add("night-" + std::to_string(i), [&](const Point& point) {
        return testing::Timed(point, testing::ThreeRuns(i > 7 ? 110 : 100),
                              std::string(39, 'a') + static_cast<char>('a' + i % 6));
      });
    }
  }
  const auto all = cli.Run({"history"});
  EXPECT_EQ(all.status.exit_code, 0) << all.err;
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 13) << "a line of heads, twelve nights";
  EXPECT_THAT(all.out, HasSubstr("10.0 % slower"));
  const Json changes = ParseJson(cli.Run({"history", "night-*", "--changes", "-o", "json"}).out, "changes");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].at("commit"), std::string(39, 'a') + "c") << "night-8's";
  const auto none = cli.Run({"history", "night-1", "--changes"});
  EXPECT_THAT(none.out, HasSubstr("no change is found"));
  EXPECT_EQ(cli.Run({"history", "week-*"}).status.exit_code, 2);
}

}  // namespace
}  // namespace ridgeline::cli
