#include "run/measurement.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline {
namespace {

TEST(Setup, IsTheProgramsNameItsArgumentsAndTheCores) {
  EXPECT_EQ(SetupOf({}, 0), R"({"cpus":0,"trainer":["ridgeline-train"]})");
  EXPECT_EQ(SetupOf({"/usr/bin/ridgeline-train"}, 0), SetupOf({}, 0)) << "wherever it lies";
  EXPECT_NE(SetupOf({}, 2), SetupOf({}, 0));
  EXPECT_EQ(SetupOf({}, 2, 1, {}), SetupOf({}, 2)) << "one node is not named";
  EXPECT_NE(SetupOf({}, 2, 4), SetupOf({}, 2));
  EXPECT_NE(SetupOf({}, 2, 1, {{"A", "b"}}), SetupOf({}, 2));
  EXPECT_NE(SetupOf({"a", "b c"}, 0), SetupOf({"a", "b", "c"}, 0));
  EXPECT_EQ(MeasurementKey().setup, SetupOf({}, 0));
}

TEST(Campaign, NamesAreShortAndPlain) {
  for (const char* name : {"default", "night-2", "2026-11-23T03:00:00Z", "v1.2+3", "feature/x_y"}) {
    EXPECT_EQ(CampaignProblem(name), "") << name;
  }
  for (const std::string& name : {std::string(), std::string(81, 'x'), std::string("a b"), std::string("a\n"),
                                  std::string("'"), std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    EXPECT_NE(CampaignProblem(name), "") << name;
  }
}

TEST(Origin, IsWhatAResultSaysOfItsMachineAndVersion) {
  const Facts facts = {{"cpu", "Example CPU"},   {"cpu_flags", "avx2 fma"}, {"cores", "2"},
                       {"memory", "24 GiB"},     {"hostname", "node1"},     {"version", "0.1.0"},
                       {"git_commit", "0123abc"}};
  EXPECT_EQ(MachineOf(facts), "Example CPU; avx2 fma; 2 cores; 24 GiB");
  EXPECT_EQ(VersionOf(facts), "0.1.0 (0123abc)");
  EXPECT_EQ(MachineOf({{"gpus", "Example GPU x 8"}, {"cores", "1"}}), "1 core; Example GPU x 8");
  EXPECT_EQ(MachineOf({}), "");
  EXPECT_EQ(VersionOf({}), "");
  EXPECT_EQ(VersionOf({{"version", "7"}}), "7");
  EXPECT_EQ(VersionOf({{"git_commit", "0123abc"}}), "0123abc");
  EXPECT_EQ(VersionOf({{"git_commit", std::string(40, 'a') + "-dirty"}}), std::string(12, 'a') + "-dirty");
}

TEST(Origin, AgreesAsFarAsBothSayAnything) {
  const Facts here = {{"cpu", "a"}, {"cores", "8"}, {"version", "1"}};
  EXPECT_TRUE(AgreeOnOrigin(here, {}));
  EXPECT_TRUE(AgreeOnOrigin(here, {{"cpu", "a"}, {"cores", "2"}, {"memory", "4 GiB"}}));
  EXPECT_FALSE(AgreeOnOrigin(here, {{"cpu", "b"}}));
  EXPECT_FALSE(AgreeOnOrigin(here, {{"cpu", "a"}, {"version", "2"}}));
}

}  // namespace
}  // namespace ridgeline
