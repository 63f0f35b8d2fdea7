#include "node/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace ridgeline::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunSpec Spec(int64_t ranks, const std::string& communicator) {
  RunSpec spec;
  spec.ranks = ranks;
  spec.communicator = communicator;
  return spec;
}

TEST(RanksHere, AnyOtherPointIsOneProcessWithAllCores) {
  for (const RunSpec& spec : {Spec(1, "self"), Spec(8, "virtual")}) {
    const auto ranks = RanksHere(spec, {}, {2, 3, 4});
    ASSERT_EQ(ranks.size(), 1U);
    EXPECT_EQ(ranks[0].log, "log.txt");
    EXPECT_THAT(ranks[0].cores, ElementsAre(2, 3, 4));
    EXPECT_EQ(ranks[0].environment.at("OMP_NUM_THREADS"), "3");
    EXPECT_EQ(ranks[0].environment.at("RANK"), "0");
    EXPECT_EQ(ranks[0].environment.at("WORLD_SIZE"), "1");
    EXPECT_THAT(RanksHere(spec, {2, 1, "node0", 1}, {0}), IsEmpty());
  }
}

TEST(RanksHere, RanksShareTheCores) {
  const auto ranks = RanksHere(Spec(3, "gloo"), {}, {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_THAT(ranks[0].cores, ElementsAre(0, 1));
  EXPECT_THAT(ranks[1].cores, ElementsAre(2, 3, 4));
  EXPECT_THAT(ranks[2].cores, ElementsAre(5, 6, 7));
  EXPECT_EQ(ranks[2].environment.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(ranks[2].environment.at("RANK"), "2");
  EXPECT_EQ(ranks[2].environment.at("LOCAL_RANK"), "2");
  EXPECT_EQ(ranks[2].environment.at("WORLD_SIZE"), "3");
  EXPECT_EQ(ranks[2].environment.at("LOCAL_WORLD_SIZE"), "3");
  EXPECT_EQ(ranks[2].log, "log.2.txt");
}

TEST(RanksHere, MoreRanksThanCoresTakeTurns) {
  const auto ranks = RanksHere(Spec(4, "gloo"), {}, {6, 7});
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_THAT(ranks[1].cores, ElementsAre(7));
  EXPECT_THAT(ranks[2].cores, ElementsAre(6));
  EXPECT_EQ(ranks[3].environment.at("OMP_NUM_THREADS"), "1");
}

TEST(RanksHere, NodesHaveConsecutiveRanks) {
  const auto ranks = RanksHere(Spec(6, "gloo"), {3, 2, "node0", 1}, {0, 1});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 4);
  EXPECT_EQ(ranks[0].log, "log.4.txt");
  EXPECT_EQ(ranks[1].environment.at("RANK"), "5");
  EXPECT_EQ(ranks[1].environment.at("LOCAL_RANK"), "1");
  EXPECT_EQ(ranks[1].environment.at("WORLD_SIZE"), "6");
  EXPECT_THROW(RanksHere(Spec(4, "gloo"), {3, 2, "node0", 1}, {}), Error);
}

TEST(Nodes, AreReadFromTheEnvironment) {
  const auto set = [](const std::map<std::string, std::string>& variables) {
    for (const char* name : {"RIDGELINE_NNODES", "RIDGELINE_NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES",
                             "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "RANK", "WORLD_SIZE"}) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  };
  const std::map<std::string, std::string> good = {
      {"RIDGELINE_NNODES", "4"}, {"RIDGELINE_NODE_RANK", "3"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  set({});
  EXPECT_EQ(NodesFromEnvironment().count, 1);
  set(good);
  const Nodes nodes = NodesFromEnvironment();
  EXPECT_EQ(nodes.count, 4);
  EXPECT_EQ(nodes.rank, 3);
  EXPECT_EQ(nodes.master_address, "node0");
  EXPECT_EQ(nodes.master_port, 29500);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"RIDGELINE_NNODES", "0"}, {"RIDGELINE_NODE_RANK", "4"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "x"}}) {
    auto bad = good;
    bad[name] = value;
    set(bad);
    try {
      NodesFromEnvironment();
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      EXPECT_THAT(e.message(), HasSubstr(name));
    }
  }
  set({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(NodesFromEnvironment().count, 1) << "these may be of a process, and not of a node";

  // As Kubeflow's operators set them for torchrun.
  const std::map<std::string, std::string> of_torchrun = {{"PET_NNODES", "4"},
                                                          {"PET_NODE_RANK", "2"},
                                                          {"PET_NPROC_PER_NODE", "8"},
                                                          {"PET_MASTER_ADDR", "job-master-0"},
                                                          {"PET_MASTER_PORT", "23456"}};
  set(of_torchrun);
  const Nodes pods = NodesFromEnvironment();
  EXPECT_EQ(pods.count, 4);
  EXPECT_EQ(pods.rank, 2);
  EXPECT_EQ(pods.master_address, "job-master-0");
  EXPECT_EQ(pods.master_port, 23456);
  set({{"PET_NNODES", "4"}, {"RANK", "3"}, {"WORLD_SIZE", "32"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "2"}});
  EXPECT_EQ(NodesFromEnvironment().rank, 3);
  EXPECT_EQ(NodesFromEnvironment().master_address, "m");
  auto both = good;
  both.insert(of_torchrun.begin(), of_torchrun.end());
  set(both);
  EXPECT_EQ(NodesFromEnvironment().rank, 3) << "ours come first";
  for (const char* name : {"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}) {
    auto bad = of_torchrun;
    bad[name] = std::string_view(name) == "PET_NNODES" ? "1:4" : "";  // an elastic range
    set(bad);
    try {
      NodesFromEnvironment();
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_THAT(e.message(), HasSubstr(name));
    }
  }
  ::unsetenv("PET_NPROC_PER_NODE");
  set({});
}

}  // namespace
}  // namespace ridgeline::node
