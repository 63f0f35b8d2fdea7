// `ridgeline gate`: how nights are named, what is written, and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/cli.h"
#include "tests/regress/nights.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GateProgram : public ::testing::Test {
 protected:
  // Seven nights and `tonight`, which takes this long.
  void MeasureNights(double tonight_ms) {
    Store store = Store::Open(cli_.dir.path() / "ridgeline.db", Store::Mode::kReadWrite);
    testing::Nights nights(store);
    nights.AddSeveral(7);
    nights.Add("tonight", tonight_ms);
  }

  Cli cli_;
};

TEST_F(GateProgram, PassesANightLikeTheOthers) {
  MeasureNights(100);
  const auto shown = cli_.Run({"gate", "tonight"});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("PASS: 4 pass; of what passes, a slowdown of"));
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--baseline", "night-*", "--pinned", "night-1"}).status.exit_code, 0);
  EXPECT_THAT(cli_.Run({"gate", "tonight", "--pinned", "night-1"}).out, HasSubstr("step time since pinned"));
}

TEST_F(GateProgram, EndsInconclusiveWithASuspect) {
  MeasureNights(110);
  const auto shown = cli_.Run({"gate", "tonight", "--annotations"});
  EXPECT_EQ(shown.status.exit_code, 4) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("INCONCLUSIVE: 2 inconclusive, 2 pass"));
  EXPECT_THAT(shown.out, HasSubstr("\n::warning title=INCONCLUSIVE"));
}

TEST_F(GateProgram, WritesEveryForm) {
  MeasureNights(110);
  const auto shown =
      cli_.Run({"gate", "tonight", "--baseline", "night-*", "--junit", "gate.xml", "--summary", "summary.md",
                "--comment", "comment.md", "--metrics", "metrics.txt", "--to", "gate.json"});
  EXPECT_EQ(shown.status.exit_code, 4) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("gate.json: INCONCLUSIVE"));
  const auto text = [&](const char* name) { return ReadFile(cli_.dir.path() / name); };
  EXPECT_EQ(ParseJson(text("gate.json"), "the gate").at("baseline"), "night-*");
  EXPECT_THAT(text("gate.xml"), HasSubstr("<testsuite name=\"ridgeline gate\" tests=\"4\""));
  EXPECT_THAT(text("summary.md"), StartsWith("### Ridgeline gate: INCONCLUSIVE"));
  EXPECT_EQ(text("summary.md"), text("comment.md"));
  EXPECT_THAT(text("metrics.txt"), HasSubstr("ridgeline_gate_findings{answer=\"inconclusive\"} 2\n"));
}

TEST_F(GateProgram, TakesBaselinesOfOtherDatabases) {
  MeasureNights(100);
  std::filesystem::copy_file(cli_.dir.path() / "ridgeline.db", cli_.dir.path() / "other.db");
  for (const char* baseline : {"other.db", "other.db:night-*"}) {
    const auto shown = cli_.Run({"gate", "tonight", "--baseline", baseline});
    EXPECT_EQ(shown.status.exit_code, 0) << shown.err << shown.out;
  }
  const auto one = cli_.Run({"gate", "other.db:tonight", "--baseline", "night-7"});
  EXPECT_EQ(one.status.exit_code, 4) << "a night has three runs";
  EXPECT_THAT(one.out, HasSubstr("3 runs of the 20"));
}

TEST_F(GateProgram, LaterRunsAreNoHistory) {
  MeasureNights(100);
  EXPECT_THAT(cli_.Run({"gate", "night-2"}).out, HasSubstr("3 runs of the 20"));
}

TEST_F(GateProgram, RefusesWhatNamesNothing) {
  MeasureNights(100);
  EXPECT_EQ(cli_.Run({"gate"}).status.exit_code, 2);
  EXPECT_THAT(cli_.Run({"gate"}).err, HasSubstr("which campaign"));
  const auto unknown = cli_.Run({"gate", "tonigh"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("gate: 'tonigh' is no campaign of ridgeline.db, and no database, did you mean "
                                     "'tonight'?"));
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--baseline", "week-*"}).status.exit_code, 2);
  EXPECT_THAT(cli_.Run({"gate", "tonight", "--baseline", "tonight"}).err, HasSubstr("are the same"));
  EXPECT_THAT(cli_.Run({"gate", "ridgeline.db"}).err, HasSubstr("no night or commit of it"));
  EXPECT_THAT(cli_.Run({"gate", "night-*"}).err, HasSubstr("is no campaign")) << "head is one";
}

TEST_F(GateProgram, ANightThatMeasuredNothingIsInfrastructures) {
  {
    Store store = Store::Open(cli_.dir.path() / "ridgeline.db", Store::Mode::kReadWrite);
    testing::Nights nights(store);
    nights.AddSeveral(7);
    nights.Add("tonight", [](const Point& point) { return samples::Result(point.id, InfrastructureReason::kNode); });
  }
  const auto shown = cli_.Run({"gate", "tonight", "--junit", "gate.xml"});
  EXPECT_EQ(shown.status.exit_code, 3);
  EXPECT_THAT(shown.out, HasSubstr("its node failed"));
  EXPECT_THAT(ReadFile(cli_.dir.path() / "gate.xml"), Not(HasSubstr("errors=\"0\"")));
}

}  // namespace
}  // namespace ridgeline
