// Sweeps whose points run on other trainers: `trainer` as an axis, their own fields, and the points that they cannot
// run.
#include "sweep/sweep_trainers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/sweep.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMine = R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
command: [mine, '{{layers}}', '{{if flash}}--flash{{end}}', '{{buckets}}']
fields: {flash: {type: boolean, default: true}, buckets: {type: integer, default: 4, min: 1, max: 8}}
supports: {precision: [fp32, bf16]}
metrics: [{name: step_time, regex: 'took (.*) ms', unit: ms}]
)";

class SweepsOfTrainers : public ::testing::Test {
 protected:
  SweepsOfTrainers() {
    MakeDirs(dir_.path() / "trainers");
    WriteFile(dir_.path() / "trainers/mine.yaml", kMine);
  }

  Sweep Load(const std::string& more) {
    const auto file = dir_.path() / "sweep.yaml";
    WriteFile(file, "name: test\n" + more);
    return LoadSweep(file);
  }

  std::string Refusal(const std::string& more) {
    try {
      Expand(Load(more));
    } catch (const Error& e) {
      return e.message();
    }
    ADD_FAILURE() << "was taken:\n" << more;
    return {};
  }

  std::vector<std::string> Points(const Sweep& sweep, Expansion* expansion = nullptr) {
    std::vector<std::string> texts;
    for (const Point& point : Expand(sweep, expansion)) {
      std::string text = point.spec.trainer;
      for (const auto& [name, value] : point.spec.own) text += " " + name + "=" + ValueText(value);
      texts.push_back(text);
    }
    return texts;
  }

  TempDir dir_;
};

TEST_F(SweepsOfTrainers, OwnFieldsAreAxesOfTheirTrainerAlone) {
  Expansion expansion;
  const Sweep sweep =
      Load("matrix: {trainer: [ridgeline, mine], flash: [true, false]}\ndefaults: {model: llama-10m}\n");
  EXPECT_THAT(Points(sweep, &expansion),
              ElementsAre("ridgeline", "mine buckets=4 flash=true", "mine buckets=4 flash=false"));
  EXPECT_EQ(expansion.duplicates, 1) << "our own has no flash";
}

TEST_F(SweepsOfTrainers, IdsOfOurOwnAreThoseOfSweepsWithoutTrainers) {
  const Sweep with = Load("matrix: {trainer: [ridgeline, mine]}\ndefaults: {model: llama-10m}\n");
  const Sweep without = Load("defaults: {model: llama-10m}\n");
  EXPECT_EQ(Expand(with).front().id, Expand(without).front().id);
  EXPECT_NE(Expand(with).back().id, Expand(without).front().id);
}

TEST_F(SweepsOfTrainers, OwnFieldsTakeRangesAndConditions) {
  const Sweep sweep = Load(
      "defaults: {model: llama-10m, trainer: mine}\nmatrix: {buckets: 1..8*2}\nexclude: [{buckets: '>4'}]\n"
      "include: [{buckets: 2, flash: false}]\nlaunch: {rules: [{when: {buckets: 1}, set: {cpus: 1}}]}\n");
  EXPECT_THAT(Points(sweep),
              ElementsAre("mine buckets=1 flash=true", "mine buckets=2 flash=false", "mine buckets=4 flash=true"));
  EXPECT_EQ(LaunchOf(sweep, Expand(sweep).front()).cpus, 1);
  ASSERT_EQ(VaryingFields(sweep).size(), 2U);
  EXPECT_EQ(VaryingFields(sweep).front()->name, "buckets");
}

TEST_F(SweepsOfTrainers, MeasuresAnotherTrainerByItsDefinition) {
  const Sweep sweep = Load("matrix: {trainer: [ridgeline, mine]}\ndefaults: {model: llama-10m}\n");
  const std::vector<Point> points = Expand(sweep);
  const std::string ours = SetupOf(LaunchOf(sweep, points[0]));
  const std::string mine = SetupOf(LaunchOf(sweep, points[1]));
  EXPECT_THAT(ours, HasSubstr(R"("trainer":["ridgeline-train"])"));
  EXPECT_THAT(mine, HasSubstr(R"("trainer":["mine","definition )"));
  WriteFile(dir_.path() / "trainers/mine.yaml", std::string(kMine) + "# another\n");
  const Sweep other = Load("matrix: {trainer: [ridgeline, mine]}\ndefaults: {model: llama-10m}\n");
  EXPECT_NE(SetupOf(LaunchOf(other, Expand(other)[1])), mine) << "another definition measures something else";
}

TEST_F(SweepsOfTrainers, AReleaseIsNamedAsTheSweepNamesIt) {
  const auto release = [&](const std::string& folder, const std::string& name) {
    std::string text = kMine;
    text.replace(text.find("mine"), 4, name);
    MakeDirs(dir_.path() / folder);
    WriteFile(dir_.path() / folder / (name + ".yaml"), text);
  };
  release("trainers", "titan@0.2");
  release("trainers", "titan@main");
  const Sweep sweep = Load("defaults: {model: llama-10m}\nmatrix: {trainer: [titan, titan@0.2, titan@main]}\n");
  EXPECT_THAT(Points(sweep), ElementsAre("titan buckets=4 flash=true", "titan@0.2 buckets=4 flash=true",
                                         "titan@main buckets=4 flash=true"));
  EXPECT_EQ(sweep.trainers.Find("titan")->name, "titan@0.2");
  EXPECT_THAT(SetupOf(LaunchOf(sweep, Expand(sweep)[0])), HasSubstr(R"("trainer":["titan@0.2","definition )"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: titan@0.3}\n"),
              HasSubstr("sweep.yaml:2:39: there is no trainer 'titan@0.3'; of titan there are titan@0.2, titan@main"));

  // A kept copy of a sweep means the same, whatever other releases are beside it.
  sweep.trainers.Keep(dir_.path() / "kept/trainers");
  release("kept/trainers", "titan@0.7");
  WriteFile(dir_.path() / "kept/sweep.yaml", sweep.text);
  EXPECT_EQ(LoadSweep(dir_.path() / "kept/sweep.yaml").trainers.Find("titan")->name, "titan@0.2");
}

TEST_F(SweepsOfTrainers, MistakesHaveTheirPlace) {
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: mime}\n"),
              HasSubstr("sweep.yaml:2:39: there is no trainer 'mime', did you mean 'mine'?"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, flash: true}\n"), HasSubstr("unknown field 'flash'"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: mine, buckets: 9}\n"),
              HasSubstr("buckets is 9, and must be between 1 and 8"));
  EXPECT_THAT(Refusal("matrix: {trainer: [mine], precision: [fp8]}\ndefaults: {model: llama-10m}\n"),
              HasSubstr("sweep.yaml:2:39: trainer mine takes precision: fp32, bf16, not fp8"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: nanogpt-only-logs}\n"), HasSubstr("there is no trainer"));
  WriteFile(dir_.path() / "trainers/mine.yaml", "name: mine\ncommand: [x]\n");
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: mine}\n"), HasSubstr("mine.yaml:1:1: 'about' is missing"));
}

constexpr const char* kSplit = R"(name: split
about: one line
version: "1.0"
tested: log
result: patterns
command: [split, '{{layers}}', '{{tp}}', '{{cp}}', '{{data_parallel}}']
processes: torchrun
fields: {tp: {type: integer, default: 1, min: 1}, cp: {type: integer, default: 1, min: 1}}
data_parallel: '{{ranks}} / ({{tp}} * {{cp}})'
require:
  - {if: '{{heads}} % {{tp}} == 0', else: tp must divide heads}
  - '{{tp}} == 1 or {{shard}} != full'
  - '{{layers}} / {{tp}} >= 1'
supports: {shard: any}
metrics: [{name: step_time, regex: 'took (.*) ms', unit: ms}]
)";

TEST_F(SweepsOfTrainers, HowRanksAreSplitIsHeldAgainstEachPointAtItsValue) {
  WriteFile(dir_.path() / "trainers/split.yaml", kSplit);
  const std::string of = "defaults: {model: llama-8b, trainer: split, ranks: 64}\n";
  EXPECT_THAT(Refusal(of + "matrix: {tp: [1, 2], cp: [1, 3]}\n"),
              AllOf(HasSubstr("sweep.yaml:3:30: trainer split: its number of data-parallel ranks is not whole: 64 / 3 "
                              "is not a whole number (ranks is 64, tp is 1, cp is 3)"),
                    Not(HasSubstr("sweep.yaml:3:14"))));
  EXPECT_THAT(Refusal(of + "matrix: {cp: [1, 128]}\n"),
              HasSubstr("sweep.yaml:3:18: trainer split: its number of data-parallel ranks is not whole"));
  EXPECT_THAT(Refusal(of + "matrix: {tp: [1, 64]}\nexclude: [{tp: 1}]\n"),
              HasSubstr("sweep.yaml:3:18: trainer split: tp must divide heads (heads is 32, tp is 64)"));
  EXPECT_THAT(Refusal(of + "matrix: {tp: [1, 2], shard: [none, full]}\n"),
              HasSubstr("trainer split needs tp == 1 or shard != full, and tp is 2, shard is full"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, heads: 16, head_dim: 16, kv_heads: 16, trainer: split, ranks: 64}\n"
                      "matrix: {tp: [1, 16]}\n"),
              HasSubstr("sweep.yaml:3:18: trainer split: 8 / 16 is not a whole number (layers is 8, tp is 16)"));
  EXPECT_EQ(Expand(Load(of + "matrix: {tp: [1, 2, 4], cp: [1, 2]}\n")).size(), 6U);
}

TEST_F(SweepsOfTrainers, OurOwnSharesAModelInSomeWaysAlone) {
  EXPECT_EQ(Expand(Load("defaults: {model: llama-10m, ranks: 8}\nmatrix: {tensor_parallel: [1, 2]}\n")).size(), 2U);
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, ranks: 64}\nmatrix: {tensor_parallel: [1, 64]}\n"),
              HasSubstr("sweep.yaml:3:31: tensor_parallel: 64 does not divide heads"));
  EXPECT_THAT(
      Refusal("defaults: {model: llama-10m, ranks: 8}\nmatrix: {pipeline_parallel: [1, 2]}\n"),
      HasSubstr(
          "sweep.yaml:3:33: ridgeline-train does not split a model this way yet, so pipeline_parallel must be 1"));
  // Another program that keeps our contract may share a model.
  EXPECT_EQ(Expand(Load("defaults: {model: llama-10m, ranks: 8}\nmatrix: {pipeline_parallel: [1, 2]}\n"
                        "launch: {trainer: [./mine]}\n"))
                .size(),
            2U);
  EXPECT_THAT(
      Refusal("defaults: {model: llama-10m, trainer: mine}\nmatrix: {ranks: [1, 8], tensor_parallel: [1, 2]}\n"),
      HasSubstr("sweep.yaml:3:46: tensor_parallel: 2 does not divide ranks: 1"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, trainer: mine, ranks: 8}\nmatrix: {tensor_parallel: [1, 2]}\n"),
              HasSubstr("sweep.yaml:3:31: trainer mine would ignore tensor_parallel: 2"));
}

TEST_F(SweepsOfTrainers, ADefinitionBesideTheSweepComesFirst) {
  std::string beside = kMine;
  beside.replace(beside.find("one line"), 8, "the nearest");
  WriteFile(dir_.path() / "mine.yaml", beside);
  EXPECT_EQ(Load("defaults: {model: llama-10m, trainer: mine}\n").trainers.Find("mine")->about, "the nearest");
}

TEST_F(SweepsOfTrainers, ItsPriceAndHowItIsLaunchedAreReadWithoutDefinitions) {
  const std::string text =
      "name: x\ndefaults: {trainer: gone, odd: 1}\nlaunch: {launcher: slurm, nodes: 2, rules: [{when: {odd: 1}, set: "
      "{nodes: 3}}]}\n";
  const auto [launch, no_price] = ParseLaunchAndPrice(text, "sweep.yaml");
  EXPECT_EQ(launch.launcher, "slurm");
  EXPECT_EQ(launch.nodes, 2);
  EXPECT_EQ(no_price.node_usd_per_hour, 0);
  const std::string priced = text + "price: {node: 10 USD/h, date: 2026-11, max_cost: 5 USD}\n";
  EXPECT_EQ(ParseLaunchAndPrice(priced, "sweep.yaml").price.node_usd_per_hour, 10);
  EXPECT_EQ(ParseLaunchAndPrice(priced, "sweep.yaml").launch.nodes, 2);
  EXPECT_THROW(ParseLaunchAndPrice(text + "price: {node: 10}\n", "sweep.yaml"), Error);
}

TEST_F(SweepsOfTrainers, AModelMayBeOnlyANameWhereTheTrainerIsNotOurs) {
  WriteFile(dir_.path() / "trainers/named.yaml", R"(name: named
about: one line
version: "1.0"
tested: log
result: patterns
command: [mine, '{{model}}']
supports: {seq_length: any}
metrics: [{name: step_time, regex: 'took (.*) ms', unit: ms}]
)");
  const auto points =
      Expand(Load("defaults: {trainer: named}\n"
                  "matrix: {model: [meta-llama/Llama-3.1-8B, /data/models/x, qwen3-8b, llama3-8b]}\n"));
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].spec.model, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(points[0].spec.family, ModelFamily::kOther);
  EXPECT_EQ(points[1].spec.model, "/data/models/x");
  EXPECT_EQ(points[2].spec.layers, 36);
  EXPECT_EQ(points[3].spec.model, "llama-8b");
  for (const Point& point : points) EXPECT_EQ(point.id, PointId(point.spec));
  EXPECT_EQ(Expand(Load("defaults: {trainer: named, seq_length: 64}\nmatrix: {model: [x, llama-10m]}\n"
                        "exclude: [{model: x}]\n"))
                .size(),
            1U);
}

TEST_F(SweepsOfTrainers, SaysAtTheModelWhatATemplateNeeds) {
  EXPECT_THAT(Refusal("defaults: {trainer: mine, model: qwen3-8b-instruct}\n"),
              HasSubstr("sweep.yaml:2:34: trainer mine needs layers, which is not known for the model "
                        "qwen3-8b-instruct: give it beside `model`, or name a preset"));
  EXPECT_EQ(Expand(Load("defaults: {trainer: mine, model: qwen3-8b-instruct, layers: 36}\n")).size(), 1U);
  EXPECT_THAT(Refusal("defaults: {trainer: mine, model: Qwen/Qwen3-8B}\n"), HasSubstr("(such as qwen3-8b)"));
}

TEST_F(SweepsOfTrainers, OursRefusesAModelThatIsOnlyAName) {
  EXPECT_THAT(Refusal("defaults: {model: lama-10m}\n"),
              HasSubstr("sweep.yaml:2:19: unknown model 'lama-10m'; the nearest are llama-10m, llama-5m, llama-25m"));
  EXPECT_THAT(Refusal("defaults: {model: lama-10m, layers: 2}\nmatrix: {trainer: [mine, ridgeline]}\n"),
              HasSubstr("sweep.yaml:2:19: unknown model 'lama-10m'; the nearest are llama-10m, llama-5m, llama-25m"));
  EXPECT_THAT(Refusal("defaults: {model: qwen3-8b}\nmatrix: {trainer: [mine, ridgeline]}\n"),
              HasSubstr("sweep.yaml:2:19: the model qwen3-8b is for other trainers: its family is qwen3, and ridgeline "
                        "trains llama, gpt and stack"));
  EXPECT_THAT(Refusal("defaults: {trainer: mine, model: x, family: gpt}\n"),
              HasSubstr("sweep.yaml:2:45: family is gpt, but the model x"));
  EXPECT_THAT(Refusal("defaults: {trainer: mine, model: \"a\\e[31m\"}\n"), HasSubstr("model is a name or a path"));
}

}  // namespace
}  // namespace ridgeline::sweep
