// A definition's trainer from another folder.
#include "trainers/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRest = R"(
name: mine
about: "a \"trainer\" # of ours: {x}"
version: "1.0"
tested: log
result: patterns
processes: one
fields: {fast: {type: boolean, default: true}}
metrics:
  - {name: step_time, regex: 'step (?P<step>\d+): (?P<value>[\d.]+) "ms"', unit: ms, take: series}
exit_codes: {137: oom_host, 3: {end: infrastructure, reason: node, hint: "it's the node"}}
)";

class TrainersBuild : public ::testing::Test {
 protected:
  void Put(const std::string& file) {
    MakeDirs((dir_ / file).parent_path());
    WriteFile(dir_ / file, "");
  }
  // The command and its folder, from the definition with these lines.
  Invoked FromThere(const std::string& lines) {
    const Trainer trainer = ParseTrainer(lines + kRest, "mine.yaml");
    const Trainer there = FromFolder(trainer, dir_.path());
    EXPECT_EQ(there.about, trainer.about);
    EXPECT_EQ(there.version, "1.0");
    EXPECT_EQ(there.exit_codes.size(), 2U);
    EXPECT_EQ(there.exit_codes.at(3).hint, "it's the node");
    EXPECT_NE(there.text, trainer.text) << "another definition is another measurement";
    EXPECT_EQ(there.invocation->FindOwn("fast"), trainer.invocation->FindOwn("fast"));
    RunSpec spec;
    CanonicalizeOwn(*there.invocation, spec);
    ProcessPlace place;
    place.environment = {{"HOME_OF_IT", "/home/of/it"}};
    return Invoke(*there.invocation, spec, place);
  }

  TempDir dir_;
};

TEST_F(TrainersBuild, AProgramIsTakenByItsName) {
  Put("train");
  const std::string program = dir_ / "train";
  EXPECT_THAT(FromThere("command: [train, '{{fast | map: true=1}}']").argv, ElementsAre(program, "1"));
  EXPECT_THAT(FromThere("command: [/opt/new/bin/train]").argv, ElementsAre(program));
  EXPECT_THAT(FromThere("command: [stdbuf, -oL, /opt/train, train]").argv,
              ElementsAre("stdbuf", "-oL", program, "train"));
  const Invoked elsewhere = FromThere("command: [/opt/new/bin/train]\ndirectory: /scratch");
  EXPECT_THAT(elsewhere.argv, ElementsAre(program));
  EXPECT_EQ(elsewhere.directory, "/scratch") << "where it works is not where it lies";
}

TEST_F(TrainersBuild, AScriptIsTakenFromTheSameFolderOfTheSources) {
  Put("examples/lm/run.py");
  Put("run.py");
  EXPECT_THAT(FromThere("command: [torchrun, '{{env.HOME_OF_IT}}/examples/lm/run.py', --x]").argv,
              ElementsAre("torchrun", (dir_ / "examples/lm/run.py").string(), "--x"));
  EXPECT_THAT(FromThere("command: [torchrun, '{{env.HOME_OF_IT | default: .}}/other/run.py']").argv,
              ElementsAre("torchrun", (dir_ / "run.py").string()));
  EXPECT_THAT(FromThere("command: [torchrun, '{{env.SCRIPT_OF_IT | default: run.py}}']").argv,
              ElementsAre("torchrun", (dir_ / "run.py").string()));
}

TEST_F(TrainersBuild, TheFolderThatItRunsInIsReplacedWhereItsFilesAreNamedFromThere) {
  Put("scripts/train.py");
  const Invoked script = FromThere("command: [torchrun, scripts/train.py]\ndirectory: '{{env.HOME_OF_IT}}'");
  EXPECT_THAT(script.argv, ElementsAre("torchrun", "scripts/train.py"));
  EXPECT_EQ(script.directory, dir_.path());
  EXPECT_EQ(FromThere("command: [./scripts/train.py]\ndirectory: /opt/new").directory, dir_.path());
  // A module has no path.
  EXPECT_EQ(FromThere("command: [torchrun, -m, a.train]\ndirectory: '{{env.HOME_OF_IT}}'").directory, dir_.path());
}

TEST_F(TrainersBuild, AFolderThatHasNothingOfItIsRefused) {
  const auto refusal = [&](const std::string& lines) {
    try {
      FromThere(lines);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      return e.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(refusal("command: [python3, '{{env.HOME_OF_IT}}/train.py', --x, 'a{{layers}}']"),
              AllOf(HasSubstr("has nothing of what trainer mine starts: no python3, no train.py"),
                    HasSubstr(dir_.path().string())));
  EXPECT_THAT(refusal("command: ['{{env.HOME_OF_IT}}']"), HasSubstr("no file that its command names"));
  EXPECT_THAT(refusal("command: [train]\ndirectory: /opt/new"), HasSubstr("no train"));
}

// Every shipped definition says where its sources or its programs are.
TEST(TrainersBuildShipped, AllCanBeTakenFromAnotherFolder) {
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/trainers")) {
    const Trainer trainer = LoadTrainer(entry.path());
    if (!trainer.invocation) continue;
    const TempDir sources;
    const TempDir programs;
    for (const char* file : {"train_gpt2", "train_gpt2cu", "pretrain_gpt.py", "run_clm.py", "fsdp.py"}) {
      WriteFile(sources / file, "");
    }
    for (const char* file : {"torchrun", "llamafactory-cli", "axolotl"}) WriteFile(programs / file, "");
    // A trainer that is installed as a package has a folder of programs, and no sources.
    const std::vector<std::string> packages = {"trl_sft", "llama_factory", "litgpt", "axolotl"};
    const bool has_sources = std::ranges::find(packages, trainer.name) == packages.end();
    EXPECT_NO_THROW(FromFolder(trainer, (has_sources ? sources : programs).path())) << entry.path();
  }
}

}  // namespace
}  // namespace ridgeline::trainers
