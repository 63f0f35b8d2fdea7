// The command and environment of a process, as exec starts it and as a preview shows it.
#include "node/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include "base/error.h"
#include "node/defined.h"
#include "node/starting.h"
#include "run/spec.h"

namespace ridgeline::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pair;

class PreviewTest : public ::testing::Test {
 protected:
  // A job of one point, with the contract's trainer `argv`, or with a definition.
  Job JobOf(const Json& values, std::vector<std::string> argv = {}) {
    std::vector<Problem> problems;
    RunSpec spec = BuildSpec(values, problems);
    for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
    Job job;
    job.trainer = std::move(argv);
    job.points = {{PointId(spec), spec}};
    return job;
  }

  Preview Defined(const std::string& more, Job job) {
    auto trainer = std::make_shared<const trainers::Trainer>(
        trainers::ParseTrainer("name: mine\nabout: a\nversion: \"1\"\ntested: log\nresult: patterns\n"
                               "metrics: [{name: loss, regex: 'loss (.*)'}]\n" +
                                   more,
                               "mine.yaml"));
    job.definition = trainer->text;
    return PreviewOf(job, trainer);
  }

  const Json model_ = {{"model", "llama-10m"}};
};

TEST_F(PreviewTest, OurTrainerHasItsSpecAndNothingOfPython) {
  Job job = JobOf({{"model", "llama-10m"}, {"repeats", 3}});
  job.cpus = 4;
  job.points.front().repeat = 1;
  job.environment = {{"A", "b"}};
  const Preview preview = PreviewOf(job, nullptr);
  EXPECT_THAT(preview.start.argv,
              ElementsAre(HasSubstr("/ridgeline-train"), "--spec", "<SPEC_FILE>", "--result", "<RESULT_FILE>"));
  EXPECT_THAT(preview.files, ElementsAre(Pair("<SPEC_FILE>", HasSubstr("\"repeats\":1"))));
  EXPECT_THAT(
      preview.start.environment,
      ElementsAre(Pair("A", "b"), Pair("LOCAL_RANK", "0"), Pair("LOCAL_WORLD_SIZE", "1"), Pair("OMP_NUM_THREADS", "4"),
                  Pair("RANK", "0"), Pair("RIDGELINE_PROGRESS", "<PROGRESS_FILE>"), Pair("WORLD_SIZE", "1")));
  EXPECT_EQ(preview.processes, "started once; all of it for each of 3 repeats");
  EXPECT_THAT(preview.differs, IsEmpty());
  EXPECT_THAT(preview.unknown, ElementsAre("<PROGRESS_FILE>", "<RESULT_FILE>", "<SPEC_FILE>"));
}

TEST_F(PreviewTest, RanksThatWeStartSayWhatTheOthersHaveElse) {
  Job job = JobOf({{"model", "llama-10m"}, {"ranks", 8}}, {"python3", "/opt/train.py"});
  job.nodes = 2;
  const Preview preview = PreviewOf(job, nullptr);
  EXPECT_EQ(preview.processes, "one of 8 processes, 4 on each of 2 nodes; this is rank 0");
  EXPECT_THAT(preview.differs, ElementsAre("LOCAL_RANK", "RANK", "RIDGELINE_PROGRESS"));
  EXPECT_THAT(preview.start.environment,
              IsSupersetOf({Pair("PYTHONUNBUFFERED", "1"), Pair("MASTER_ADDR", "<MASTER_ADDR>"),
                            Pair("MASTER_PORT", "<MASTER_PORT>"), Pair("RIDGELINE_SECRET_FILE", "<SECRET_FILE>"),
                            Pair("OMP_NUM_THREADS", "<OMP_NUM_THREADS>"), Pair("WORLD_SIZE", "8")}));
}

TEST_F(PreviewTest, TorchrunIsOneProcessANode) {
  Job job = JobOf({{"model", "llama-10m"}, {"ranks", 8}});
  job.nodes = 2;
  const Preview preview = Defined(
      "command: [torchrun, '--node_rank={{node_rank}}', -p, '{{master_port}}', '{{output_dir}}/a.yaml', '{{layers}}']\n"
      "processes: torchrun\nfiles: {a.yaml: 'rank: {{node_rank}}\n\n  at: {{master_addr}}'}\n",
      job);
  EXPECT_EQ(preview.processes, "started once on each of 2 nodes; this is node 0; it starts 4 ranks there");
  EXPECT_THAT(preview.differs, ElementsAre("RIDGELINE_PROGRESS", "--node_rank=0", "a.yaml"));
  EXPECT_THAT(preview.start.argv, IsSupersetOf({"<MASTER_PORT>", "<OUTPUT_DIR>/a.yaml"}));
  EXPECT_THAT(preview.files, ElementsAre(Pair("<OUTPUT_DIR>/a.yaml", HasSubstr("at: \"<MASTER_ADDR>\""))));
  EXPECT_THAT(preview.start.environment, Not(Contains(Pair("RANK", "0"))));
}

TEST_F(PreviewTest, SrunStandsInFrontAsExecHasIt) {
  Job job = JobOf({{"model", "llama-10m"}, {"ranks", 8}});
  job.nodes = 2;
  job.cpus = 16;
  const Preview preview = Defined("command: [./train, '{{layers}}']\nprocesses: srun\n", job);
  EXPECT_THAT(preview.start.argv, IsSupersetOf({"srun", "--nodes=2", "--ntasks=8", "--cpus-per-task=4", "./train"}));
  EXPECT_EQ(preview.processes, "started once, on node 0; srun starts 8 ranks");
}

TEST_F(PreviewTest, VariablesOfThisMachineAndMissingOnesAreSaid) {
  ::setenv("PREVIEW_TEST_HERE", "/here", 1);
  Job job = JobOf({{"model", "llama-10m"}, {"checkpoint", {{"dir", "state"}}}});
  job.environment = {{"PREVIEW_TEST_SWEEPS", "s"}};
  const Preview preview = Defined(
      "command: [x, '{{env.PREVIEW_TEST_HERE}}', '{{env.PREVIEW_TEST_GONE}}', '{{env.PREVIEW_TEST_SWEEPS}}', "
      "'{{layers}}']\n"
      "directory: '{{env.PREVIEW_TEST_UNSET | default: .}}'\nresume: ['--from={{checkpoint_dir}}']\n",
      job);
  ::unsetenv("PREVIEW_TEST_HERE");
  EXPECT_THAT(preview.start.argv, ElementsAre("x", "/here", "<PREVIEW_TEST_GONE>", "s", "8"));
  EXPECT_THAT(preview.from_here, ElementsAre("PREVIEW_TEST_HERE"));
  EXPECT_THAT(preview.unset, ElementsAre("PREVIEW_TEST_UNSET"));
  EXPECT_THAT(preview.unknown, Contains("<PREVIEW_TEST_GONE>"));
  EXPECT_THAT(preview.resume, ElementsAre("--from=<CHECKPOINT_DIR>"));
}

// The sweep's `environment` overrides the definition's `env`, which overrides exec's own settings. Neither sets the
// rank.
TEST_F(PreviewTest, TheSweepsEnvironmentGoesFirst) {
  const std::string env =
      "command: [x, '{{layers}}']\nprocesses: ours\n"
      "env: {A: definition, B: definition, PYTHONUNBUFFERED: '', OMP_NUM_THREADS: '3', RANK: '7'}\n";
  Job job = JobOf({{"model", "llama-10m"}, {"ranks", 2}});
  job.cpus = 8;
  auto environment = Defined(env, job).start.environment;
  EXPECT_THAT(environment, IsSupersetOf({Pair("A", "definition"), Pair("PYTHONUNBUFFERED", ""),
                                         Pair("OMP_NUM_THREADS", "3"), Pair("RANK", "0")}));
  job.environment = {
      {"A", "sweep"}, {"PYTHONUNBUFFERED", "x"}, {"OMP_NUM_THREADS", "5"}, {"RANK", "9"}, {"MASTER_PORT", "1"}};
  environment = Defined(env, job).start.environment;
  EXPECT_THAT(environment,
              IsSupersetOf({Pair("A", "sweep"), Pair("B", "definition"), Pair("PYTHONUNBUFFERED", "x"),
                            Pair("OMP_NUM_THREADS", "5"), Pair("RANK", "0"), Pair("MASTER_PORT", "<MASTER_PORT>")}));
  EXPECT_THAT(PreviewOf(JobOf(model_, {"python3", "t.py"}), nullptr).start.environment,
              Contains(Pair("PYTHONUNBUFFERED", "1")));
}

}  // namespace
}  // namespace ridgeline::node
