#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "launch/launcher.h"
#include "run/result.h"
#include "run/spec.h"
#include "tests/base/no_files_left.h"
#include "tests/base/temp_dir.h"
#include "tests/fakes/test_job.h"
#include "tests/plan/texts.h"

namespace ridgeline::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// A slab of 1 MB for each sequence.
predict::MemoryForecast FakeForecast(const RunSpec& spec) {
  return {spec.batch_size * kMegabyte, {{"activations", spec.batch_size * kMegabyte}}};
}

PlanOptions Options() {
  PlanOptions options;
  options.jobs_dir = "/jobs";
  options.trainer = {"/bin/ridgeline-train"};
  return options;
}

std::vector<std::string> IdsOf(const Job& job) {
  std::vector<std::string> ids;
  for (const JobPoint& point : job.points) ids.push_back(point.id);
  return ids;
}

struct Planned {
  sweep::Sweep sweep;
  std::vector<Point> points;
  Plan plan;
};

Planned PlanText(const std::string& text, const PlanOptions& options = Options()) {
  Planned result{ParseText(text), {}, {}};
  result.points = sweep::Expand(result.sweep);
  result.plan = MakePlan(result.sweep, result.points, options, FakeForecast);
  return result;
}

constexpr const char* kFour = "defaults: {model: llama-10m}\nmatrix: {batch_size: [8, 1, 4, 2]}\n";

std::vector<size_t> BundleSizes(const Plan& plan) {
  std::vector<size_t> sizes;
  for (const Job& job : plan.jobs) sizes.push_back(job.points.size());
  return sizes;
}

TEST(Plan, BundlesByTimeTakeTheTimeLimitForAPointsTimeUntilOneIsMeasured) {
  const std::string text = std::string(kFour) + "launch: {bundle: 25m, time_limit: 10m}";
  EXPECT_THAT(BundleSizes(PlanText(text).plan), ElementsAre(2, 2));
}

// Batches of 1, 2, 4 and 8 take 100 s, 200 s, 400 s and 800 s.
TEST(Plan, BundlesByTimeGoByWhatWasMeasured) {
  PlanOptions options = Options();
  const std::string text = std::string(kFour) + "launch: {bundle: 10m, time_limit: 10m}";
  const Planned four = PlanText(text, options);
  double least = 1e300;
  for (const Point& point : four.points) least = std::min(least, predict::RelativeCost(point.spec));
  options.times.Took(least, 100);
  EXPECT_THAT(BundleSizes(PlanText(text, options).plan), ElementsAre(2, 1, 1)) << "one that takes longer is alone";
}

TEST(Plan, BundlesByTimeNeedToKnowATime) {
  try {
    PlanText(std::string(kFour) + "launch: {bundle: 10m}");
    FAIL() << "it was planned";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.what(), HasSubstr("time_limit"));
  }
}

TEST(Plan, CheapPointsComeFirst) {
  const auto [sweep, points, plan] = PlanText(kFour);
  ASSERT_THAT(plan.jobs, SizeIs(4));
  std::vector<int64_t> batches;
  for (const Job& job : plan.jobs) batches.push_back(job.points.at(0).spec.batch_size);
  EXPECT_THAT(batches, ElementsAre(1, 2, 4, 8));
  ASSERT_THAT(plan.points, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {  // the rows stay in the sweep's order
    EXPECT_EQ(plan.points[i].point, i);
    EXPECT_EQ(plan.points[i].verdict, Verdict::kUnknown);
    EXPECT_EQ(plan.points[i].forecast.planned_peak_bytes, points[i].spec.batch_size * kMegabyte);
  }
}

TEST(Plan, ADataFileThatIsMissingHereIsAnErrorAtItsPlace) {
  const TempDir dir;
  const std::string text = dir / "text";
  const std::string sweep = "defaults: {model: llama-10m}\nmatrix:\n  data: [synthetic, " + text + "]\n";
  PlanOptions options = Options();
  EXPECT_THAT(PlanText(sweep, options).plan.jobs, SizeIs(2));  // jobs run elsewhere, where it may exist
  options.runs_here = true;
  try {
    PlanText(sweep, options);
    ADD_FAILURE() << "it was planned";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.message(), "s.yaml:4:21: the data file '" + text + "' is missing");
    EXPECT_FALSE(e.hint().empty());
  }
  WriteFileAtomic(text, "some text");
  EXPECT_THAT(PlanText(sweep, options).plan.jobs, SizeIs(2));
  try {
    const NoFilesLeft none;
    PlanText(sweep, options);
    ADD_FAILURE() << "it was planned";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("' cannot be read: Too many open files"));
  }
  EXPECT_THROW(PlanText("defaults: {model: llama-10m, data: " + dir.path().string() + "}\n", options), Error);
}

TEST(Plan, AFolderOfWeightsThatIsMissingHereIsAnErrorAtItsPlace) {
  const TempDir dir;
  const std::string folder = dir / "weights";
  const std::string sweep = "defaults: {model: llama-10m}\ninit: {from: " + folder + "}\n";
  PlanOptions options = Options();
  EXPECT_THAT(PlanText(sweep, options).plan.jobs, SizeIs(1));  // jobs run elsewhere, where it may exist
  options.runs_here = true;
  try {
    PlanText(sweep, options);
    ADD_FAILURE() << "it was planned";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.message(), "s.yaml:3:14: there is no folder '" + folder + "' of weights here");
    EXPECT_FALSE(e.hint().empty());
  }
  MakeDirs(folder);
  EXPECT_THAT(PlanText(sweep, options).plan.jobs, SizeIs(1));
}

TEST(Plan, TheModelsSizeAndTheStepsCountToo) {
  const auto [sweep, points, plan] = PlanText("matrix: {model: [llama-25m, llama-10m], steps: [50, 1]}");
  std::vector<std::string> order;
  for (const Job& job : plan.jobs) {
    order.push_back(job.points.at(0).spec.model + " " + std::to_string(job.points.at(0).spec.steps));
  }
  EXPECT_THAT(order, ElementsAre("llama-10m 1", "llama-25m 1", "llama-10m 50", "llama-25m 50"));
}

TEST(Plan, BundlesPointsAndFillsInTheJob) {
  const auto [sweep, points, plan] =
      PlanText(std::string(kFour) + "launch: {bundle: 3, cpus: 2, memory_limit: 4GB, time_limit: 10m}");
  ASSERT_THAT(plan.jobs, SizeIs(2));
  EXPECT_THAT(IdsOf(plan.jobs[0]), ElementsAre(points[1].id, points[3].id, points[2].id));
  EXPECT_THAT(IdsOf(plan.jobs[1]), ElementsAre(points[0].id));
  for (const Job& job : plan.jobs) {
    EXPECT_THAT(job.key, MatchesRegex("rl-[0-9a-f]+"));
    EXPECT_EQ(job.key.size(), 35U);
    EXPECT_EQ(job.job_dir, "/jobs/" + job.key);
    EXPECT_EQ(job.sweep, "test");
    EXPECT_EQ(job.cpus, 2);
    EXPECT_EQ(job.memory_limit_bytes, 4'000'000'000);
    EXPECT_THAT(job.trainer, ElementsAre("/bin/ridgeline-train"));
    for (const JobPoint& point : job.points) {
      EXPECT_EQ(point.time_limit_s, 600);
      EXPECT_EQ(PointId(point.spec), point.id);
    }
  }
}

TEST(Plan, TheSweepsTrainerIsTaken) {
  const auto [sweep, points, plan] = PlanText(std::string(kFour) + "launch: {trainer: [python3, t.py]}");
  EXPECT_THAT(plan.jobs[0].trainer, ElementsAre("python3", "t.py"));
}

TEST(Plan, SkipsPointsThatCannotFitAndSaysTheirBytes) {
  PlanOptions options = Options();
  options.node = NodeWith(4 * kMegabyte);
  const auto [sweep, points, plan] = PlanText(kFour, options);
  EXPECT_EQ(plan.points[0].verdict, Verdict::kOutOfMemory);
  EXPECT_EQ(plan.points[2].verdict, Verdict::kFits);  // exactly as much as there is
  EXPECT_THAT(plan.jobs, SizeIs(3));
  ASSERT_THAT(plan.skipped, SizeIs(1));
  const RunResult& skipped = plan.skipped[0];
  EXPECT_EQ(skipped.point_id, points[0].id);
  EXPECT_EQ(skipped.status, RunStatus::kSkippedPredictedOom);
  EXPECT_EQ(skipped.provenance, Provenance::kPredicted);
  EXPECT_EQ(skipped.evidence.at("wanted_bytes"), "8000000");
  EXPECT_EQ(skipped.evidence.at("available_bytes"), "4000000");
  EXPECT_EQ(skipped.memory.planned_peak_bytes, 8 * kMegabyte);
  EXPECT_EQ(skipped.memory.by_category.at("activations"), 8 * kMegabyte);
  EXPECT_EQ(skipped.parameters, 10'096'896);
  EXPECT_EQ(skipped.tokens_per_step, 8 * 512);
  EXPECT_FALSE(skipped.message.empty());
  EXPECT_FALSE(skipped.hint.empty());
  EXPECT_NO_THROW(DecodeResult(EncodeResult(skipped), "x"));
}

TEST(Plan, RunsPointsThatCannotFitIfAsked) {
  PlanOptions options = Options();
  options.node = NodeWith(4 * kMegabyte);
  options.include_oom = true;
  const auto [sweep, points, plan] = PlanText(kFour, options);
  EXPECT_EQ(plan.points[0].verdict, Verdict::kOutOfMemory);
  EXPECT_THAT(plan.jobs, SizeIs(4));
  EXPECT_THAT(plan.skipped, SizeIs(0));
}

// About a cluster's nodes only the sweep's words are known: this machine's memory says nothing about theirs.
TEST(Plan, WithoutKnowledgeOfItsMemoryAPointHasNoVerdict) {
  const auto verdict = [](const std::string& launch) {
    const auto planned = PlanText(std::string(kFour) + "launch: {launcher: kubernetes" + launch + "}");
    EXPECT_THAT(planned.plan.jobs, SizeIs(4)) << "it is run all the same";
    return planned.plan.points[0].verdict;
  };
  EXPECT_EQ(verdict(""), Verdict::kUnknown);
  EXPECT_EQ(verdict(", kubernetes: {gpus: 8}"), Verdict::kUnknown);
  EXPECT_EQ(verdict(", kubernetes: {memory: 64Gi}"), Verdict::kFits);
  EXPECT_EQ(verdict(", memory_limit: 64GB"), Verdict::kFits);
  EXPECT_EQ(VerdictName(Verdict::kUnknown), "unknown");
}

TEST(Plan, TheSweepsMemoryLimitCounts) {
  const std::string limited = std::string(kFour) + "launch: {memory_limit: 98MB}";  // 96 MB are for the process itself
  EXPECT_EQ(PlanText(limited).plan.points[2].verdict, Verdict::kOutOfMemory);
  EXPECT_EQ(PlanText(limited).plan.points[3].verdict, Verdict::kFits);
  PlanOptions less = Options();
  less.node = NodeWith(kMegabyte);
  EXPECT_EQ(PlanText(limited, less).plan.points[3].verdict, Verdict::kOutOfMemory);
  EXPECT_EQ(PlanText(limited, less).plan.points[3].limit.bytes, kMegabyte);
}

TEST(Plan, RanksShareTheMemoryOfOneMachine) {
  const auto verdict = [](const std::string& ranks, int64_t available_bytes) {
    PlanOptions options = Options();
    options.node = NodeWith(available_bytes);
    return PlanText("defaults: {model: llama-10m, batch_size: 8, " + ranks + "}", options).plan.points[0].verdict;
  };
  // Three ranks need three slabs and the base memory of two more processes, besides the one that available_bytes leaves
  // out.
  const int64_t needed = 3 * 8 * kMegabyte + 2 * predict::kProcessBaseBytes;
  EXPECT_EQ(verdict("ranks: 3", needed), Verdict::kFits);
  EXPECT_EQ(verdict("ranks: 3", needed - 3), Verdict::kOutOfMemory);
  EXPECT_EQ(verdict("ranks: 3, communicator: virtual", 8 * kMegabyte), Verdict::kFits);
  EXPECT_EQ(PlanText("defaults: {model: llama-10m, batch_size: 8, ranks: 4}\nlaunch: {memory_limit: 400MB}")
                .plan.points[0]
                .limit.bytes,
            100 * kMegabyte - predict::kProcessBaseBytes);
  PlanOptions little = Options();
  little.node = NodeWith(1);
  const auto plan = PlanText("defaults: {model: llama-10m, ranks: 3}", little).plan;
  EXPECT_THAT(plan.skipped.at(0).message, HasSubstr("on each of 3 ranks"));
}

TEST(Plan, RanksThatWouldFitIfTheySharedTheModelAreToldSo) {
  const auto forecast = [](const RunSpec& spec) {
    return predict::MemoryForecast{(spec.shard == ShardMode::kFull ? 4 : 8) * spec.batch_size * kMegabyte, {}};
  };
  PlanOptions options = Options();
  options.node = NodeWith(7 * kMegabyte);
  const sweep::Sweep sweep =
      ParseText("defaults: {model: llama-10m, communicator: virtual}\nmatrix: {ranks: [1, 2], batch_size: [1, 4]}\n");
  const auto points = sweep::Expand(sweep);
  const Plan plan = MakePlan(sweep, points, options, forecast);
  ASSERT_THAT(plan.skipped, SizeIs(4));
  EXPECT_FALSE(plan.points[0].fits_sharded) << "one rank has nobody to share with";
  EXPECT_TRUE(plan.points[2].fits_sharded);
  EXPECT_FALSE(plan.points[3].fits_sharded) << "nor would that be enough";
  EXPECT_EQ(plan.skipped[0].device, "") << "which no device has said";
  EXPECT_THAT(plan.skipped[2].hint, HasSubstr("`shard: full`"));
  EXPECT_THAT(plan.skipped[3].hint, HasSubstr("smaller batch_size"));
}

TEST(Plan, AnotherTrainersPointsAreNotJudgedByOurMemoryModel) {
  PlanOptions options = Options();
  options.node = NodeWith(1);
  const auto verdict = [&](const std::string& trainer) {
    return PlanText("defaults: {model: llama-64b}\nlaunch: {memory_limit: 1MB, trainer: [" + trainer + "]}", options)
        .plan.points[0]
        .verdict;
  };
  EXPECT_EQ(verdict("python3, train.py"), Verdict::kNotPredicted);
  EXPECT_EQ(verdict("/opt/bin/ridgeline-train, --verbose"), Verdict::kOutOfMemory);
}

TEST(Plan, ATrainerThatIsMissingHereIsAnErrorAtItsPlace) {
  PlanOptions here = Options();
  here.runs_here = true;
  const auto message = [&](const std::string& trainer, const PlanOptions& options) -> std::string {
    try {
      PlanText("defaults: {model: llama-10m}\nlaunch: {trainer: [" + trainer + "]}", options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    return "";
  };
  EXPECT_EQ(message("/nowhere/train.sh", here), "s.yaml:3:9: trainer: there is no program '/nowhere/train.sh' here");
  EXPECT_EQ(message("no-such-trainer", here), "s.yaml:3:9: trainer: there is no program 'no-such-trainer' here");
  EXPECT_EQ(message("/tmp", here), "s.yaml:3:9: trainer: there is no program '/tmp' here");
  EXPECT_EQ(message("./no-such-trainer", here), "s.yaml:3:9: trainer: there is no program './no-such-trainer' here");
  EXPECT_EQ(message(std::filesystem::relative("/bin/sh").string() + ", train.sh", here), "");
  EXPECT_EQ(message("sh, train.sh", here), "");
  EXPECT_EQ(message("/bin/sh, train.sh", here), "");
  EXPECT_EQ(message("/nowhere/train.sh", Options()), "") << "elsewhere, nobody here can tell";
}

std::vector<std::string> WarningsOf(const std::string& launch, const std::string& defaults = "device: cpu") {
  return PlanText("defaults: {model: llama-10m, " + defaults + "}\nmatrix: {seed: [1, 2]}\nlaunch: {launcher: slurm, " +
                  launch + "}")
      .plan.warnings;
}

constexpr const char* kOnEight = "device: cuda, gpu: h100, ranks: 8, batch_size: 8";

TEST(Plan, GpusThatNothingWouldUseOrThatAreMissingAreAWarning) {
  EXPECT_THAT(WarningsOf("slurm: {gpus: 8}"),
              ElementsAre("slurm: gpus asks for 8 GPUs a node, and ridgeline-train uses none: say device: cuda, "
                          "name a `trainer` that does, or leave it out"));
  for (const char* asked : {"{gpus: 8}", "{gpus: \"h100:8\"}", "{gres: \"gpu:8\"}", "{sbatch: {gpus-per-task: 8}}"}) {
    EXPECT_THAT(WarningsOf(std::string("slurm: ") + asked, kOnEight), IsEmpty()) << asked;
  }
  EXPECT_THAT(WarningsOf("slurm: {gpus: 8}", "device: cuda, gpu: h100"),
              ElementsAre("slurm: gpus asks for 8 GPUs a node, and a point of 1 rank there uses 1: say gpus: 1, or "
                          "ranks: 8 a node, or the rest is idle"));
  EXPECT_THAT(WarningsOf("cpus: 8", kOnEight),
              ElementsAre("slurm: points have device: cuda, and no GPU is asked for: say how many a node, "
                          "slurm: {gpus: 8}"));
  for (const char* gres : {"gpu:8", "gpu:h100:8", "craynetwork:1,gpu:8"}) {
    EXPECT_THAT(WarningsOf(std::string("slurm: {gres: \"") + gres + "\"}"),
                ElementsAre(std::string("slurm: gres asks for ") + gres +
                            " a node, and ridgeline-train uses none: say device: cuda, name a `trainer` that "
                            "does, or leave it out"));
  }
  EXPECT_THAT(WarningsOf("slurm: {gres: \"craynetwork:1\"}"), IsEmpty());
  EXPECT_THAT(WarningsOf("slurm: {gpus: 8}, trainer: [python3, t.py]"), IsEmpty());
  EXPECT_THAT(WarningsOf("kubernetes: {gpus: 8}"), IsEmpty()) << "which is not asked";
}

TEST(Plan, MoreRanksThanGpusOrAnotherGpuIsAnErrorAtItsPlace) {
  const auto error = [](const std::string& launch) -> std::string {
    try {
      WarningsOf(launch, kOnEight);
    } catch (const Error& e) {
      return e.message() + " / " + e.hint();
    }
    return "";
  };
  EXPECT_THAT(error("slurm: {gpus: 4}"),
              AllOf(HasSubstr(":4:41: a point has 8 ranks on a node, and slurm: gpus asks for 4 GPUs: each rank needs"),
                    HasSubstr("say gpus: 8, or ranks_per_node: 4")));
  EXPECT_THAT(error("slurm: {gres: \"gpu:h100:4\"}"), HasSubstr("and slurm: gres asks for 4 GPUs"));
  EXPECT_EQ(error("ranks_per_node: 4, slurm: {gpus: 4}"), "");
  EXPECT_THAT(error("slurm: {gpus: \"h200:8\"}"), HasSubstr("a point has gpu: h100, and slurm: gpus asks for h200"));
  EXPECT_THAT(error("slurm: {gpus: \"nvidia_a100_80gb:8\"}"), HasSubstr("asks for nvidia_a100_80gb"));
  for (const char* kind : {"h100", "NVIDIA_H100_80GB_HBM3", "gpu-v3", "gh200"}) {
    EXPECT_EQ(error(std::string("slurm: {gpus: \"") + kind + ":8\"}"), "") << kind;
  }
}

TEST(Plan, ALauncherThatNobodyHereKnowsSaysItselfWhatItsJobsAskFor) {
  const auto plan = [](const std::string& own) {
    sweep::Sweep sweep = ParseText("defaults: {model: llama-10m, " + std::string(kOnEight) +
                                   "}\nlaunch: {launcher: scripted, " + "scripted: {" + own + "}}");
    sweep.launch.describe = launch::AskLaunchers(testing::FakePluginDir());
    return MakePlan(sweep, sweep::Expand(sweep), Options(), FakeForecast);
  };
  EXPECT_THAT(plan("cards: 8").warnings, IsEmpty());
  EXPECT_EQ(plan("cards: 8").jobs.front().gpus, 8);
  EXPECT_THAT(plan("queue: 1").warnings,
              ElementsAre("scripted: points have device: cuda, and no GPU is asked for: say how many a node, "
                          "scripted: {cards: 8}"));
  EXPECT_THROW(plan("cards: 4"), Error);
}

TEST(Plan, WarnsOfUselessAndMisplacedSettings) {
  EXPECT_THAT(WarningsOf("slurm: {container_mounts: [/data]}"),
              ElementsAre("slurm: container_mounts is of no use without container, which names the image"));
  EXPECT_THAT(WarningsOf("slurm: {container_mounts: [/data], container: 'a:1'}"), IsEmpty());
  EXPECT_THAT(WarningsOf("environment: {HF_TOKEN: hf_x}"),
              ElementsAre("environment: HF_TOKEN looks like a secret, and its value is kept with every result: set it "
                          "where you start ridgeline, or name a file that the trainer reads"));
  for (const char* name : {"WANDB_API_KEY", "aws_secret_access_key", "DB_PASSWORD"}) {
    EXPECT_THAT(WarningsOf(std::string("environment: {") + name + ": x}"), SizeIs(1)) << name;
  }
  for (const char* plain :
       {"TOKENIZERS_PARALLELISM: 'false'", "HF_TOKEN_FILE: /run/token", "HF_TOKEN: ''", "MONKEY: 1"}) {
    EXPECT_THAT(WarningsOf(std::string("environment: {") + plain + "}"), IsEmpty()) << plain;
  }
}

TEST(Plan, PointsThatNothingEndsAreAWarning) {
  const auto warnings = [](const std::string& launch) {
    return PlanText("defaults: {model: llama-10m}\nmatrix: {seed: [1, 2]}\nlaunch: {launcher: " + launch + "}")
        .plan.warnings;
  };
  EXPECT_THAT(warnings("kubernetes"), ElementsAre(HasSubstr("points have no time_limit")));
  EXPECT_THAT(warnings("kubernetes, time_limit: 10m"), IsEmpty());
  EXPECT_THAT(warnings("slurm"), IsEmpty()) << "its partitions have limits";
}

TEST(Plan, PointsOnTheMetaDeviceAlwaysFit) {
  PlanOptions options = Options();
  options.node = NodeWith(1);
  EXPECT_EQ(PlanText("defaults: {model: llama-64b, device: meta}", options).plan.points[0].verdict, Verdict::kFits);
}

TEST(Plan, APointsOwnMemoryLimitAndNodesAreWhatItIsComparedWith) {
  const Planned planned = PlanText(
      "defaults: {model: llama-10m, batch_size: 8}\nmatrix: {ranks: [4, 8]}\n"
      "launch: {memory_limit: 400MB, ranks_per_node: 4, rules: [{when: {ranks: 8}, set: {memory_limit: 800MB}}]}");
  EXPECT_EQ(planned.plan.points[0].limit.bytes, 100 * kMegabyte - predict::kProcessBaseBytes);
  EXPECT_EQ(planned.plan.points[1].limit.bytes, 200 * kMegabyte - predict::kProcessBaseBytes) << "four ranks a node";
}

TEST(Plan, OnlyPointsThatAskForTheSameShareAJob) {
  const Planned planned = PlanText(R"(defaults: {model: llama-10m, ranks: 2}
matrix: {batch_size: [1, 2, 4, 8]}
launch:
  bundle: 4
  time_limit: 10m
  slurm: {partition: small}
  rules:
    - {when: {batch_size: [2, 8]}, set: {time_limit: 1h, nodes: 2, environment: {A: b}, slurm: {partition: large}}}
    - {when: {batch_size: 4}, set: {slurm: {partition: small}}}
)");
  ASSERT_THAT(planned.plan.jobs, SizeIs(2));
  const Job& small = planned.plan.jobs[0];
  const Job& large = planned.plan.jobs[1];
  EXPECT_THAT(IdsOf(small), ElementsAre(planned.points[0].id, planned.points[2].id)) << "a rule that changes nothing";
  EXPECT_THAT(IdsOf(large), ElementsAre(planned.points[1].id, planned.points[3].id));
  EXPECT_TRUE(small.config.is_null());
  EXPECT_EQ(large.config.at("slurm").at("partition"), "large");
  EXPECT_EQ(small.nodes, 1);
  EXPECT_EQ(large.nodes, 2);
  EXPECT_EQ(large.environment, (std::map<std::string, std::string>{{"A", "b"}}));
  EXPECT_EQ(small.points[0].time_limit_s, 600);
  EXPECT_EQ(large.points[0].time_limit_s, 3600);
}

TEST(Plan, JobsOfSeveralKindsStillComeCheapestFirst) {
  const Planned planned = PlanText(
      "defaults: {model: llama-10m}\nmatrix: {batch_size: [8, 1, 4, 2]}\n"
      "launch: {rules: [{when: {batch_size: [8, 2]}, set: {cpus: 2}}]}");
  std::vector<int64_t> batches;
  for (const Job& job : planned.plan.jobs) batches.push_back(job.points.at(0).spec.batch_size);
  EXPECT_THAT(batches, ElementsAre(1, 2, 4, 8));
}

TEST(Plan, BundlesByTimeGoByEachPointsOwnLimit) {
  const std::string text = std::string(kFour) +
                           "launch: {bundle: 25m, time_limit: 10m, rules: [{when: {batch_size: \">2\"}, set: "
                           "{time_limit: 20m}}]}";
  EXPECT_THAT(BundleSizes(PlanText(text).plan), ElementsAre(2, 1, 1));
}

TEST(Plan, KeysAreDeterministicAndDistinct) {
  const Planned first = PlanText(kFour);
  const Planned again = PlanText(kFour);
  std::set<std::string> keys;
  for (size_t i = 0; i < first.plan.jobs.size(); ++i) {
    EXPECT_EQ(first.plan.jobs[i].key, again.plan.jobs[i].key);
    keys.insert(first.plan.jobs[i].key);
  }
  EXPECT_EQ(keys.size(), 4U);
  PlanOptions retry = Options();
  retry.attempts[first.points[0].id] = 1;
  const Planned second = PlanText(kFour, retry);
  EXPECT_EQ(second.plan.jobs[0].key, first.plan.jobs[0].key);
  EXPECT_NE(second.plan.jobs[3].key, first.plan.jobs[3].key);  // the point with batch size 8 is the last

  EXPECT_NE(JobKey("a", {"x"}, {}), JobKey("b", {"x"}, {}));
  EXPECT_NE(JobKey("a", {"x", "y"}, {}), JobKey("a", {"xy"}, {}));
  EXPECT_NE(JobKey("a", {"x", "y"}, {}), JobKey("a", {"y", "x"}, {}));
  EXPECT_EQ(JobKey("a", {"x"}, {{"x", 0}}), JobKey("a", {"x"}, {{"other", 3}}));
}

TEST(Plan, EqualMemoryIsForecastOnce) {
  const sweep::Sweep sweep = ParseText(
      "defaults: {model: llama-10m}\n"
      "matrix: {batch_size: [1, 2], learning_rate: [1e-4, 1e-3], seed: [1, 2], steps: [3, 4], grad_clip: [1, 2]}");
  const auto points = sweep::Expand(sweep);
  int asked = 0;
  size_t told = 0;
  const Plan plan = MakePlan(
      sweep, points, Options(),
      [&](const RunSpec& spec) {
        ++asked;
        return FakeForecast(spec);
      },
      [&](size_t done, size_t of) {
        EXPECT_EQ(done, ++told);
        EXPECT_EQ(of, 32U);
      });
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(told, 32U) << "who waits is told after each";
  EXPECT_THAT(plan.points, SizeIs(32));
  for (const PlannedPoint& point : plan.points) {
    EXPECT_EQ(point.forecast.planned_peak_bytes, points[point.point].spec.batch_size * kMegabyte);
  }
}

TEST(Plan, ForecastsPointsOfDifferentMemoryApart) {
  for (const char* axis :
       {"batch_size: [1, 2]", "seq_length: [64, 128]", "checkpointing: [none, full]", "grad_accumulation: [1, 2]",
        "grad_clip: [0, 1]", "dropout: [0, 0.1]", "precision: [bf16, fp32]", "state_precision: [bf16, fp32]",
        "layers: [2, 4]", "model: [llama-10m, gpt-10m]", "ranks: [1, 2]"}) {
    const sweep::Sweep sweep = ParseText(std::string("defaults: {model: llama-10m}\nmatrix: {") + axis + "}");
    const auto points = sweep::Expand(sweep);
    ASSERT_THAT(points, SizeIs(2)) << axis;
    EXPECT_NE(EncodeSpec(MemoryRelevant(points[0].spec)), EncodeSpec(MemoryRelevant(points[1].spec))) << axis;
  }
}

TEST(Plan, AForecastThatFailsNamesThePoint) {
  const sweep::Sweep sweep = ParseText("defaults: {model: llama-10m}");
  const auto points = sweep::Expand(sweep);
  try {
    MakePlan(sweep, points, Options(), [](const RunSpec&) -> predict::MemoryForecast {
      throw Error(ErrorKind::kInvalidInput, "no such shape", "hint");
    });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "point " + points[0].id + ": no such shape");
    EXPECT_EQ(e.hint(), "hint");
  }
}

TEST(Plan, AJobsKeyAndFolderFollowFromItsPointsAndWhatTheyAreOf) {
  PlanOptions options = Options();
  Job job = PlanText(kFour, options).plan.jobs.front();
  const std::string planned = job.key;
  EXPECT_EQ(planned, JobKey("test", IdsOf(job), {}));
  NameJob(job, options);
  EXPECT_EQ(job.key, planned);
  options.key_name = "test@5";
  NameJob(job, options);
  EXPECT_EQ(job.key, JobKey("test@5", IdsOf(job), {}));
  EXPECT_EQ(job.job_dir, "/jobs/" + job.key);
  EXPECT_EQ(job.sweep, "test");
  EXPECT_EQ(PlanText(kFour, options).plan.jobs.front().key, job.key);
}

TEST(Plan, NoPointsAreAnEmptyPlan) {
  const Plan plan = MakePlan(ParseText(kFour), {}, Options(), FakeForecast);
  EXPECT_THAT(plan.points, IsEmpty());
  EXPECT_THAT(plan.jobs, IsEmpty());
}

TEST(Plan, SomethingIsAvailableHere) {
  EXPECT_GT(MemoryHere().bytes, kMegabyte);
  EXPECT_EQ(SlabBytesWithin(predict::kProcessBaseBytes + 5), 5);
  EXPECT_EQ(SlabBytesWithin(1), 1);
}

}  // namespace
}  // namespace ridgeline::plan
