// Profiles: a launcher's settings in files of their own.
#include "sweep/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    Write("shipped/cluster/net.yaml", "gpus: 8\nenv: {A: a, B: b}\nlist: [1, 2]\nmemory: 64GB\n");
    Write("shipped/cluster/more.yaml", "gpus: 4\nqueue: q\n");
    Write("own.yaml", "queue: mine\n");
  }
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((dir_ / file).parent_path());
    WriteFileAtomic(dir_ / file, text);
  }
  Sweep Read(const std::string& launch) const {
    Sweep sweep = ParseSweep(
        "name: s\ndefaults: {model: llama-10m}\nmatrix: {ranks: [1, 2]}\nlaunch:\n  launcher: cluster\n" + launch,
        dir_ / "sweep.yaml");
    UseProfiles(sweep, dir_ / "shipped");
    return sweep;
  }
  Json Settings(const std::string& mapping) const { return Read("  cluster: " + mapping).launch.config.at("cluster"); }
  std::string Refusal(const std::string& mapping) const {
    try {
      Settings(mapping);
      return "taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message() + " / " + e.hint();
    }
  }

  TempDir dir_;
};

TEST_F(ProfileTest, StandsUnderWhatTheSweepSaysItself) {
  EXPECT_EQ(Settings("{profile: net, env: {B: c}, list: [3], memory: null}"),
            Json::parse(R"({"gpus": 8, "env": {"A": "a", "B": "c"}, "list": [3]})"));
  EXPECT_EQ(
      Settings("{profile: [net, more, ./own.yaml]}"),
      Json::parse(R"({"gpus": 4, "env": {"A": "a", "B": "b"}, "list": [1, 2], "memory": "64GB", "queue": "mine"})"));
  EXPECT_EQ(Settings("{gpus: 1}"), Json({{"gpus", 1}}));
}

TEST_F(ProfileTest, ARuleHasItsOwn) {
  const Sweep sweep = Read(
      "  cluster: {profile: more}\n"
      "  rules: [{when: {ranks: 2}, set: {cluster: {profile: net, gpus: 2}}}]\n");
  const auto points = Expand(sweep);
  EXPECT_EQ(LaunchOf(sweep, points.at(0)).config.at("cluster"), Json::parse(R"({"gpus": 4, "queue": "q"})"));
  const Json of_rule = LaunchOf(sweep, points.at(1)).config.at("cluster");
  EXPECT_EQ(of_rule.at("gpus"), 2);
  EXPECT_EQ(of_rule.at("queue"), "q");
  EXPECT_EQ(of_rule.at("memory"), "64GB");
}

TEST_F(ProfileTest, LeavesAnotherLaunchersProfileAlone) {
  const Sweep sweep = Read("  other: {profile: nothing}\n");
  EXPECT_EQ(sweep.launch.config.at("other"), Json({{"profile", "nothing"}}));
}

TEST_F(ProfileTest, ReportsAWrongProfileAtItsPlace) {
  EXPECT_THAT(Refusal("{profile: nett}"), AllOf(HasSubstr("sweep.yaml:5:"), HasSubstr("no profile 'nett'"),
                                                HasSubstr("did you mean 'net'"), HasSubstr("more, net")));
  EXPECT_THAT(Refusal("{profile: ./nowhere.yaml}"), HasSubstr("nowhere.yaml"));
  EXPECT_THAT(Refusal("{profile: ../../etc}"), HasSubstr("there is no profile"));
  EXPECT_THAT(Refusal("{profile: 3}"), HasSubstr("a name, or a list of names, not 3"));
  Write("list.yaml", "- gpus: 8\n");
  EXPECT_THAT(Refusal("{profile: ./list.yaml}"), AllOf(HasSubstr("list.yaml:1:1"), HasSubstr("a mapping")));
  Write("nested.yaml", "profile: net\n");
  EXPECT_THAT(Refusal("{profile: ./nested.yaml}"), HasSubstr("not based on another profile"));
  Write("broken.yaml", "gpus: [\n");
  EXPECT_THAT(Refusal("{profile: ./broken.yaml}"), HasSubstr("broken.yaml:"));
}

TEST_F(ProfileTest, ReportsAllWrongProfilesAtOnce) {
  Write("list.yaml", "- gpus: 8\n");
  EXPECT_THAT(Refusal("{profile: [nett, ./list.yaml, net]}\n"
                      "  rules: [{when: {ranks: 2}, set: {cluster: {profile: [mor, 3]}}}]"),
              AllOf(HasSubstr("sweep.yaml:5:"), HasSubstr("no profile 'nett'"), HasSubstr("list.yaml:1:1"),
                    HasSubstr("sweep.yaml:7:"), HasSubstr("no profile 'mor'"), HasSubstr("not 3")));
}

}  // namespace
}  // namespace ridgeline::sweep
