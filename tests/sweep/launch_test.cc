// The launch settings of each point: rules, and nodes that follow from ranks.
#include "sweep/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "run/measurement.h"
#include "sweep/expand.h"

namespace ridgeline::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Sweep SweepOf(const std::string& text) { return ParseSweep("name: test\n" + text, "s.yaml"); }

std::string RefusalOfLaunch(const std::string& text) {
  try {
    SweepOf(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

// The launch settings of each point.
std::vector<Launch> Launches(const Sweep& sweep) {
  std::vector<Launch> launches;
  for (const Point& point : Expand(sweep)) launches.push_back(LaunchOf(sweep, point));
  return launches;
}

template <typename Member>
std::vector<Member> Each(const Sweep& sweep, Member Launch::*member) {
  std::vector<Member> values;
  for (const Launch& launch : Launches(sweep)) values.push_back(launch.*member);
  return values;
}

constexpr const char* kThreeRanks = "defaults: {model: llama-10m}\nmatrix: {ranks: [1, 8, 16]}\n";

TEST(LaunchOf, WithoutRulesIsWhatTheSweepSays) {
  const Sweep sweep = SweepOf(std::string(kThreeRanks) + "launch: {cpus: 2, slurm: {partition: a}}");
  for (const Launch& launch : Launches(sweep)) {
    EXPECT_EQ(launch.cpus, 2);
    EXPECT_EQ(launch.nodes, 1);
    EXPECT_EQ(launch.config, sweep.launch.config);
  }
  EXPECT_EQ(SharedConfig(sweep), sweep.launch.config);
}

TEST(LaunchOf, LaterRulesOverrideEarlierOnesKeyByKey) {
  const Sweep sweep = SweepOf(std::string(kThreeRanks) + R"(
launch:
  time_limit: 10m
  memory_limit: 1GB
  environment: {A: "1", B: "2"}
  slurm: {partition: small, account: llm}
  rules:
    - when: {ranks: ">= 8"}
      set: {nodes: 2, time_limit: 1h, environment: {B: 3}, slurm: {partition: large}}
    - when: {ranks: 16}
      set: {nodes: 4, cpus: 6, environment: {C: "4"}, slurm: {qos: long, account: null}}
)");
  const std::vector<Launch> launches = Launches(sweep);
  EXPECT_THAT(Each(sweep, &Launch::nodes), ElementsAre(1, 2, 4));
  EXPECT_THAT(Each(sweep, &Launch::time_limit_s), ElementsAre(600, 3600, 3600));
  EXPECT_THAT(Each(sweep, &Launch::cpus), ElementsAre(0, 0, 6));
  EXPECT_THAT(Each(sweep, &Launch::memory_limit_bytes), ElementsAre(1'000'000'000, 1'000'000'000, 1'000'000'000));
  using Variables = std::map<std::string, std::string>;
  EXPECT_THAT(Each(sweep, &Launch::environment),
              ElementsAre(Variables{{"A", "1"}, {"B", "2"}}, Variables{{"A", "1"}, {"B", "3"}},
                          Variables{{"A", "1"}, {"B", "3"}, {"C", "4"}}));
  EXPECT_EQ(launches[0].config, sweep.launch.config);
  EXPECT_EQ(launches[1].config.at("slurm"), Json::parse(R"({"partition": "large", "account": "llm"})"));
  EXPECT_EQ(launches[2].config.at("slurm"), Json::parse(R"({"partition": "large", "qos": "long"})"));
  EXPECT_FALSE(sweep.launch.config.contains("rules"));
}

TEST(LaunchOf, EveryConditionOfARuleMustHold) {
  const Sweep sweep = SweepOf(
      "defaults: {model: llama-10m}\nmatrix: {seq_length: [64, 128], batch_size: [1, 2]}\n"
      "launch: {rules: [{when: {seq_length: 128, batch_size: \"!=1\"}, set: {cpus: 3}}]}");
  EXPECT_THAT(Each(sweep, &Launch::cpus), ElementsAre(0, 0, 0, 3));
}

// As with `exclude`, a model whose shape is changed still has the axis's value.
TEST(LaunchOf, AConditionOnAnAxisIsComparedWithTheAxisAndAnyOtherWithThePoint) {
  const std::string axis =
      "defaults: {layers: 2}\nmatrix: {model: [llama-10m, llama-25m]}\ninclude: [{model: llama-25m, seed: 9}]\n";
  EXPECT_THAT(Each(SweepOf(axis + "launch: {rules: [{when: {model: llama-25m}, set: {cpus: 3}}]}"), &Launch::cpus),
              ElementsAre(0, 3));
  EXPECT_THAT(Each(SweepOf(axis + "launch: {rules: [{when: {seed: 9}, set: {cpus: 3}}]}"), &Launch::cpus),
              ElementsAre(0, 3));
  EXPECT_THAT(Each(SweepOf(axis + "launch: {rules: [{when: {hidden: \">256\"}, set: {cpus: 3}}]}"), &Launch::cpus),
              ElementsAre(0, 3));
}

TEST(LaunchOf, NodesFollowFromRanks) {
  const std::string ranks = "defaults: {model: llama-10m, batch_size: 64}\nmatrix: {ranks: 1..64*2}\n";
  EXPECT_THAT(Each(SweepOf(ranks + "launch: {ranks_per_node: 8}"), &Launch::nodes), ElementsAre(1, 1, 1, 1, 2, 4, 8));
  EXPECT_THAT(Each(SweepOf(ranks), &Launch::nodes), ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(
      Each(SweepOf(ranks + "launch: {ranks_per_node: 8, rules: [{when: {ranks: 64}, set: {ranks_per_node: 4}}]}"),
           &Launch::nodes),
      ElementsAre(1, 1, 1, 1, 2, 4, 16));
  EXPECT_THAT(Each(SweepOf(ranks + "launch: {ranks_per_node: 8, rules: [{when: {ranks: 64}, set: {nodes: 2}}]}"),
                   &Launch::nodes),
              ElementsAre(1, 1, 1, 1, 2, 4, 2));
  const std::string virtual_ranks = "defaults: {model: llama-10m, ranks: 16, communicator: virtual}\n";
  EXPECT_THAT(Each(SweepOf(virtual_ranks + "launch: {ranks_per_node: 8}"), &Launch::nodes), ElementsAre(1))
      << "they are one process";
}

TEST(LaunchOf, NodesThatCannotShareTheRanksAreAnError) {
  const auto refusal = [](const std::string& launch) -> std::string {
    try {
      Launches(SweepOf("defaults: {model: llama-10m}\nmatrix: {ranks: [5]}\nlaunch:\n  " + launch));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      EXPECT_FALSE(e.hint().empty());
      return e.message();
    }
    return "taken";
  };
  EXPECT_EQ(refusal("ranks_per_node: 4"), "s.yaml:5:3: 2 nodes cannot share the 5 ranks of a point evenly");
  EXPECT_EQ(refusal("rules:\n    - {when: {ranks: 5}, set: {nodes: 3}}\n    - {when: {ranks: 5}, set: {cpus: 3}}"),
            "s.yaml:6:7: 3 nodes cannot share the 5 ranks of a point evenly");
}

TEST(LaunchOf, FewerRanksThanNodesAreAnErrorHoweverTheNodesAreSaid) {
  const auto refusal = [](const std::string& ranks, const std::string& launch) -> std::string {
    try {
      Launches(SweepOf("defaults: {model: llama-10m, ranks: " + ranks + "}\nlaunch:\n  launcher: slurm\n  " + launch));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    return "taken";
  };
  EXPECT_THAT(refusal("1", "nodes: 2"), EndsWith("2 nodes cannot share the one process of a point evenly"));
  EXPECT_THAT(refusal("2", "nodes: 4"), EndsWith("4 nodes cannot share the 2 ranks of a point evenly"));
  EXPECT_THAT(refusal("3", "slurm: {nodes: 2}"), EndsWith("2 nodes cannot share the 3 ranks of a point evenly"));
  EXPECT_THAT(refusal("3", "rules:\n    - {when: {ranks: 3}, set: {slurm: {nodes: 2}}}"), StartsWith("s.yaml:6:7: "));
  EXPECT_EQ(refusal("4", "slurm: {nodes: 2}"), "taken");
  EXPECT_EQ(refusal("3", "kubernetes: {nodes: 2}"), "taken") << "another launcher's";
  EXPECT_THAT(refusal("1", "nodes: 2\n  trainer: [mine]"),
              EndsWith("2 nodes cannot share the one process of a point evenly"))
      << "its second node would wait for the first";
  EXPECT_EQ(refusal("2", "nodes: 2\n  trainer: [mine]"), "taken") << "one process a node";
}

TEST(LaunchOf, NodesOfTheLaunchersOwnMappingAreThePoints) {
  EXPECT_THAT(Each(SweepOf("defaults: {model: llama-10m, ranks: 4}\nlaunch: {launcher: slurm, slurm: {nodes: 2}}"),
                   &Launch::nodes),
              ElementsAre(2));
}

TEST(LaunchOf, TheFirstPlaceOfADuplicateCounts) {
  const Sweep sweep = SweepOf(
      "defaults: {model: llama-10m}\nmatrix: {communicator: [self, gloo]}\n"
      "launch: {rules: [{when: {communicator: gloo}, set: {cpus: 3}}]}");
  EXPECT_THAT(Each(sweep, &Launch::cpus), ElementsAre(0)) << "of one rank both are the same point";
}

TEST(SharedConfig, HasTheMostThatAJobAsksFor) {
  const Json shared = SharedConfig(SweepOf(std::string(kThreeRanks) + R"(
launch: {cpus: 2, max_parallel: 3, ranks_per_node: 8, rules: [{when: {ranks: 8}, set: {cpus: 4, slurm: {qos: a}}}]})"));
  EXPECT_EQ(shared.at("cpus"), 4);
  EXPECT_EQ(shared.at("nodes"), 2);
  EXPECT_EQ(shared.at("max_parallel"), 3);
  EXPECT_FALSE(shared.contains("slurm"));
  EXPECT_FALSE(SharedConfig(SweepOf(std::string(kThreeRanks) + "launch: {rules: [{when: {ranks: 8}, set: {cpus: 4}}]}"))
                   .contains("cpus"))
      << "the others take all there are";
}

TEST(SetupOf, ContainsThePointsOwnSettings) {
  const Sweep sweep = SweepOf(std::string(kThreeRanks) + R"(
launch: {rules: [{when: {ranks: 8}, set: {time_limit: 1h}}, {when: {ranks: 16}, set: {cpus: 4, nodes: 2, environment: {A: b}}}]})");
  const std::vector<Launch> launches = Launches(sweep);
  EXPECT_EQ(SetupOf(launches[0]), DefaultSetup());
  EXPECT_EQ(SetupOf(launches[1]), DefaultSetup()) << "how long it may take changes no figure";
  EXPECT_EQ(SetupOf(launches[2]), ridgeline::SetupOf({}, 4, 2, {{"A", "b"}}));
}

TEST(SetupOf, ContainsTheLaunchersOwnSettings) {
  const auto of = [](const std::string& launch) {
    return SetupOf(Launches(SweepOf("defaults: {model: llama-10m}\nlaunch: {" + launch + "}\n")).at(0));
  };
  const std::string one = of("launcher: slurm, slurm: {gpus: 1, partition: a}");
  EXPECT_EQ(one, R"({"cpus":0,"slurm":{"gpus":1},"trainer":["ridgeline-train"]})");
  EXPECT_NE(one, of("launcher: slurm, slurm: {gpus: 8}"));
  EXPECT_EQ(one, of("launcher: slurm, slurm: {gpus: 1, account: b, time: 1h}")) << "which change no figure";
  EXPECT_NE(of("launcher: kubernetes, kubernetes: {cpu: 4}"), of("launcher: kubernetes, kubernetes: {cpu: 8}"));
  EXPECT_EQ(of("launcher: slurm, kubernetes: {gpus: 8}"), DefaultSetup()) << "another launcher's are not asked";
  EXPECT_EQ(of("launcher: slurm, slurm: {partition: a}"), DefaultSetup()) << "which machine it was its result says";
  EXPECT_EQ(of("launcher: kubernetes, kubernetes: {node_selector: {zone: a}, namespace: b}"), DefaultSetup());
}

TEST(SetupOf, ContainsTheSoftwareThatThePointRunsIn) {
  const auto of = [](const std::string& launch) {
    return SetupOf(Launches(SweepOf("defaults: {model: llama-10m}\nlaunch: {" + launch + "}\n")).at(0));
  };
  EXPECT_EQ(of("launcher: kubernetes, kubernetes: {image: 'a:1'}"),
            R"({"cpus":0,"kubernetes":{"image":"a:1"},"trainer":["ridgeline-train"]})");
  EXPECT_NE(of("launcher: kubernetes, kubernetes: {image: 'a:1'}"),
            of("launcher: kubernetes, kubernetes: {image: 'a:2'}"));
  EXPECT_NE(of("launcher: slurm, slurm: {container: 'a:1'}"), of("launcher: slurm, slurm: {container: 'a:2'}"));
  EXPECT_NE(of("launcher: slurm, slurm: {modules: [cuda/12]}"), of("launcher: slurm, slurm: {modules: [cuda/13]}"));
  EXPECT_NE(of("launcher: kubernetes, kubernetes: {env: {A: b}}"), DefaultSetup());
  EXPECT_NE(of("launcher: slurm, slurm: {exclusive: true}"), DefaultSetup()) << "nobody disturbs it then";
}

TEST(Rules, EveryFaultIsSaidAtItsPlace) {
  const std::string refusal = RefusalOfLaunch(R"(
launch:
  rules:
    - when: {rnks: 8}
      set: {nods: 2}
    - {when: {ranks: ">x"}, set: {cpus: 0, bundle: 3}}
    - {when: {ranks: 8}}
    - {wen: {ranks: 8}, set: {cpus: 1}}
    - {when: {ranks: 8}, set: {environment: {1A: b}, time_limit: soon}}
    - {when: 3, set: []}
)");
  for (const char* part :
       {"s.yaml:5:14: unknown field 'rnks', did you mean 'ranks'?",
        "s.yaml:6:19: unknown launch setting 'nods', did you mean 'nodes'?",
        "s.yaml:7:22: ranks: the comparison '>x' needs a number",
        "s.yaml:7:41: cpus must be an integer between 1 and 4096",
        "s.yaml:7:52: bundle is the same for all points of a sweep",
        "s.yaml:8:7: a rule has when and set; this one has no set",
        "s.yaml:9:8: unknown part of a rule 'wen', did you mean 'when'?", "the name of a variable is of letters",
        "time_limit is a duration", "s.yaml:11:14: when is a mapping of fields, not 3",
        "s.yaml:11:22: set is a mapping of launch settings, not a list"}) {
    EXPECT_THAT(refusal, HasSubstr(part));
  }
  EXPECT_THAT(RefusalOfLaunch("launch: {rules: [{when: {}, set: {cpus: 1}}]}"),
              HasSubstr("s.yaml:2:25: when is empty"));
  EXPECT_THAT(RefusalOfLaunch("launch: {rules: {when: {ranks: 1}}}"),
              HasSubstr("rules is a list of mappings, not a mapping"));
  EXPECT_THAT(RefusalOfLaunch("launch: {rules: [{when: {ranks: 1}, set: {slrum: {qos: a}}}], launcher: slurm}"),
              HasSubstr("did you mean 'slurm'?"));
  EXPECT_THAT(RefusalOfLaunch("launch: {environment: {A: [1]}}"),
              HasSubstr("the variable A must be text or a whole number"));
}

TEST(Rules, OneThatHoldsOfNoPointIsAWarning) {
  const Sweep sweep = SweepOf(std::string(kThreeRanks) +
                              "launch:\n  rules:\n    - {when: {ranks: 8}, set: {cpus: 1}}\n"
                              "    - {when: {ranks: 9}, set: {cpus: 1}}\n");
  Expansion expansion;
  Expand(sweep, &expansion);
  EXPECT_THAT(expansion.warnings, ElementsAre("s.yaml:7:7: this rule matches nothing"));
}

}  // namespace
}  // namespace ridgeline::sweep
