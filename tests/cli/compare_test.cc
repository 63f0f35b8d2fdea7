// `ridgeline compare`: the names of sides, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/cli.h"
#include "tests/regress/measured.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kCommit(40, 'a');

class Compare : public ::testing::Test {
 protected:
  // A campaign of two points. Each step of their runs takes this long.
  void MeasureCampaign(const std::string& db, const std::string& campaign, int64_t ms, const std::string& commit = {},
                       size_t points = 2) {
    store::Store store = store::Store::Open(cli_.dir.path() / db, store::Store::Mode::kReadWrite);
    testing::Measure(store, campaign, testing::FewStepPoints(points), [&](const Point& point) {
      return testing::Timed(point, {ms * 1'000'000, (ms + 1) * 1'000'000}, commit);
    });
  }

  Cli cli_;
};

TEST_F(Compare, ShowsTwoCampaigns) {
  MeasureCampaign("ridgeline.db", "monday", 100);
  MeasureCampaign("ridgeline.db", "tuesday", 300);
  const auto shown = cli_.Run({"compare", "monday", "tuesday"});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("point "));
  EXPECT_THAT(shown.out, HasSubstr("slower"));
  const auto json = cli_.Run({"compare", "monday", "tuesday", "-o", "json"});
  const Json rows = ParseJson(json.out, "rows");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].at("point"), "seed=0");
  EXPECT_NEAR(rows[0].at("ratio").get<double>(), 2.995, 0.01);
  const auto written = cli_.Run({"compare", "monday", "tuesday", "--to", "compared.md"});
  EXPECT_EQ(written.out, "compared.md: 2 points\n");
  EXPECT_THAT(ReadFile(cli_.dir.path() / "compared.md"), HasSubstr("| seed=0 |"));
}

TEST_F(Compare, TakesCommitsAndOtherDatabases) {
  MeasureCampaign("ridgeline.db", "monday", 100, kCommit);
  MeasureCampaign("other.db", "tuesday", 300, std::string(40, 'b'));
  for (const auto& [base, head] : {std::pair("commit:aaaaaaa", "other.db:commit:bbbbbbbb"),
                                   {"ridgeline.db", "other.db"},
                                   {"ridgeline.db:monday", "other.db:tuesday"}}) {
    const auto shown = cli_.Run({"compare", base, head});
    EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("slower")) << base;
  }
}

TEST_F(Compare, RefusesASideThatIsNone) {
  MeasureCampaign("ridgeline.db", "monday", 100, kCommit);
  const auto unknown = cli_.Run({"compare", "monday", "monda"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("'monda' is neither a campaign of ridgeline.db nor a database, did you mean 'monday'?"));
  const auto in_other = cli_.Run({"compare", "monday", "ridgeline.db:tuesday"});
  EXPECT_EQ(in_other.status.exit_code, 2);
  EXPECT_THAT(in_other.err, HasSubstr("'tuesday' is neither a campaign of ridgeline.db"));
  EXPECT_THAT(cli_.Run({"compare", "monday", "commit:xyzxyzx"}).err, HasSubstr("'commit:xyzxyzx' names no commit"));
  EXPECT_THAT(cli_.Run({"compare", "monday", "commit:aaaa"}).err, HasSubstr("7 or more"));
  EXPECT_THAT(cli_.Run({"compare", "monday", "commit:bbbbbbb"}).err, HasSubstr("no commit that begins with bbbbbbb"));
  MeasureCampaign("ridgeline.db", "tuesday", 100, kCommit.substr(1) + "b");
  EXPECT_THAT(cli_.Run({"compare", "monday", "commit:aaaaaaa"}).err, HasSubstr("more than one commit"));
  EXPECT_EQ(cli_.Run({"compare", "monday"}).status.exit_code, 2);
}

TEST_F(Compare, EndsWith3IfNothingCanBeCompared) {
  MeasureCampaign("ridgeline.db", "monday", 100);
  store::Store::Open(cli_.dir.path() / "empty.db", store::Store::Mode::kReadWrite);
  const auto shown = cli_.Run({"compare", "monday", "empty.db"});
  EXPECT_EQ(shown.status.exit_code, 3);
  EXPECT_THAT(shown.err, HasSubstr("have no comparable point"));
}

TEST_F(Compare, SaysWhatIsMissing) {
  MeasureCampaign("ridgeline.db", "monday", 100);
  MeasureCampaign("ridgeline.db", "tuesday", 100, {}, 1);
  const auto shown = cli_.Run({"compare", "monday", "tuesday"});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("missing in head"));
}

}  // namespace
}  // namespace ridgeline::cli
