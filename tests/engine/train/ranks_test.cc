// A run of several ranks matches a run of one process with their whole batch; and what happens if a rank fails. The
// ranks are processes of ridgeline-train.
#include "engine/train/ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "engine/step/program.h"
#include "engine/train/trainer.h"
#include "predict/memory_forecast.h"
#include "tests/base/eventually.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/train/rank_processes.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RankProcesses;

double LargestDifference(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) largest = std::max(largest, std::abs(got[i] - want[i]) / std::abs(want[i]));
  return largest;
}

Json TinyRun(const std::string& family) {
  Json values = TinyModel(family);
  values.update({{"precision", "fp32"}, {"batch_size", 1}, {"steps", 3}, {"warmup_steps", 1}, {"learning_rate", 1e-3}});
  return values;
}

struct Sharing {
  std::string shard;
  int64_t ranks = 1;
  int64_t shard_ranks = 0;
  std::string name() const {
    return fmt::format("{}{}{}", shard, ranks, shard_ranks > 0 ? fmt::format("over{}", shard_ranks) : "");
  }
};

class Ranks : public ::testing::TestWithParam<Sharing> {
 protected:
  // Trains `values` on the ranks, and one process on the whole batch, and compares their reports.
  static void Compare(Json values, double loss_bound, double norm_bound) {
    SCOPED_TRACE(values.dump());
    omp_set_num_threads(1);  // as for the ranks, because the processes share the available cores
    Json single = values;
    single["batch_size"] = values["batch_size"].get<int64_t>() * GetParam().ranks;
    const RunResult want = Train(SpecFrom(single), {}).result;
    ASSERT_EQ(want.status, RunStatus::kOk) << want.message;

    values.update({{"ranks", GetParam().ranks}, {"shard", GetParam().shard}, {"shard_ranks", GetParam().shard_ranks}});
    const RunSpec spec = SpecFrom(values);
    RankProcesses ranks;
    ranks.StartAll(spec);
    const std::vector<ExitStatus> ends = ranks.Wait();
    for (size_t rank = 0; rank < ends.size(); ++rank) ASSERT_TRUE(ends[rank].ok()) << ranks.Log(rank);
    const RunResult got = ranks.Result();
    EXPECT_LE(LargestDifference(got.loss, want.loss), loss_bound);
    EXPECT_LE(LargestDifference(got.grad_norm, want.grad_norm), norm_bound);
    EXPECT_EQ(got.tokens_per_step, want.tokens_per_step);
    EXPECT_EQ(got.communicator, "gloo");

    ASSERT_EQ(got.ranks.size(), ends.size());
    for (const char* list : {"rank_step_ns", "rank_p95_ns", "rank_wait_ns"}) {
      EXPECT_EQ(Json::parse(got.evidence.at(list)).size(), ends.size()) << list;
    }
    for (int64_t rank = 0; rank < spec.ranks; ++rank) {
      const RankFigures& figures = got.ranks[static_cast<size_t>(rank)];
      EXPECT_EQ(figures.planned_peak_bytes, BuildStep(spec, false, rank).layout.slab_bytes);
      EXPECT_EQ(figures.host, want.environment.at("hostname"));
      EXPECT_GT(figures.rss_peak_bytes, 0);
#ifndef RIDGELINE_SANITIZED
      EXPECT_LT(figures.rss_peak_bytes, figures.planned_peak_bytes + predict::kProcessBaseBytes);
#endif
    }
  }
};

TEST_P(Ranks, TheLossSeriesIsThatOfOneProcess) { Compare(TinyRun("llama"), 1e-6, 0); }

TEST_P(Ranks, WithDropoutClippingAccumulationAndRecomputationToo) {
  for (const std::string& family : kFamilies) {
#ifdef RIDGELINE_SANITIZED  // each of these processes takes a second to start
    if (family != kFamilies[GetParam().ranks % kFamilies.size()]) continue;
#endif
    Json values = TinyRun(family);
    values.update({{"dropout", 0.1}, {"grad_clip", 0.05}, {"grad_accumulation", 2}, {"checkpointing", "full/2"}});
    Compare(values, 1e-6, 1e-5);
  }
}

// Llama keeps its state in fp32, stack in bf16.
TEST_P(Ranks, InBf16ItStaysWithinItsRounding) {
  for (const char* family : {"llama", "stack"}) {
    Json values = TinyRun(family);
    values.update({{"precision", "bf16"}, {"checkpointing", "selective"}, {"grad_accumulation", 2}});
    Compare(values, 1e-2, 0);
  }
}

// Three ranks divide nothing evenly, so parts are uneven, and so are the pieces of them that three copies average.
INSTANTIATE_TEST_SUITE_P(Every, Ranks,
                         ::testing::Values(Sharing{"none", 2}, Sharing{"none", 3}, Sharing{"optimizer", 2},
                                           Sharing{"optimizer", 3}, Sharing{"gradients", 3}, Sharing{"full", 2},
                                           Sharing{"full", 3}, Sharing{"full", 4}, Sharing{"optimizer", 4, 2},
                                           Sharing{"gradients", 6, 2}, Sharing{"full", 4, 2}),
                         [](const auto& info) { return info.param.name(); });

TEST(RanksFigures, AreTheWorstOfAllGpus) {
  testing::WithGloo(3, [](Communicator& ranks) {
    RunResult result;
    result.environment["hostname"] = "here";
    result.memory.device_peak_bytes = 100 * (ranks.rank() + 1);
    if (ranks.rank() > 0) {  // rank 0's result has no such figures
      result.gpu.throttled_share = 0.1 * static_cast<double>(ranks.rank());
      result.gpu.clock_limits["sw_thermal_slowdown"] = ranks.rank();
    }
    if (ranks.rank() == 1) result.gpu.ecc_uncorrected = 3;
    result.gpu.power_w = 100.0 * static_cast<double>(ranks.rank());
    GatherRankFigures(ranks, std::nullopt, result);
    if (ranks.rank() != 0) return;
    EXPECT_FALSE(result.evidence.contains("rank_step_ns")) << "no step was measured";
    EXPECT_EQ(result.memory.device_peak_bytes, 300);
    EXPECT_EQ(result.gpu.throttled_share, 0.2);
    EXPECT_EQ(result.gpu.clock_limits, (std::map<std::string, int64_t>{{"sw_thermal_slowdown", 2}}));
    EXPECT_EQ(result.gpu.ecc_uncorrected, 3);
    EXPECT_EQ(result.gpu.others, std::nullopt) << "no rank has the figure";
    EXPECT_EQ(result.gpu.power_w, 0) << "rank 0's own";
  });
}

TEST(RanksFigures, SayOfEachRankHowLongItsStepsTookAndHowLongTheyWaited) {
  testing::WithGloo(3, [](Communicator& ranks) {
    RunResult result;
    result.environment["hostname"] = "here";
    result.step_ns.median_ns = 100 + ranks.rank();
    result.step_ns.p95_ns = 200;
    GatherRankFigures(ranks, ranks.rank() == 1 ? 0 : 30, result);
    EXPECT_EQ(result.evidence.at("rank_step_ns"), "[100,101,102]");
    EXPECT_EQ(result.evidence.at("rank_p95_ns"), "[200,200,200]");
    EXPECT_EQ(result.evidence.at("rank_wait_ns"), "[30,0,30]") << "the second was late";
  });
  testing::WithGloo(2, [](Communicator& ranks) {
    RunResult result;
    result.environment["hostname"] = "here";
    result.step_ns.median_ns = result.step_ns.p95_ns = 100;
    GatherRankFigures(ranks, ranks.rank() == 0 ? std::optional<int64_t>(1) : std::nullopt, result);
    EXPECT_TRUE(result.evidence.contains("rank_step_ns"));
    EXPECT_FALSE(result.evidence.contains("rank_wait_ns")) << "one rank has no figure";
  });
}

TEST(RankOfOne, HasAllOfItsShardedModel) {
  for (const char* shard : {"optimizer", "full"}) {
    Json values = TinyRun("llama");
    const std::vector<double> want = Train(SpecFrom(values), {}).result.loss;
    values["shard"] = shard;
    EXPECT_EQ(Train(SpecFrom(values), {}).result.loss, want);
  }
}

// A run of three ranks that would take long.
RunSpec LongRun(const std::string& shard) {
  Json values = TinyRun("llama");
  values.update({{"ranks", 3}, {"shard", shard}, {"steps", 1'000'000}});
  return SpecFrom(values);
}

// Waits until the run has taken a few steps.
void WaitForSteps(const RankProcesses& ranks) {
  ASSERT_TRUE(testing::Eventually([&] { return ranks.Log(0).find("step 3/") != std::string::npos; })) << ranks.Log(0);
}

TEST(LostRank, IfKilledEndsTheOthersAndIsNamed) {
  for (const size_t lost : {0, 2}) {
    RankProcesses ranks;
    ranks.StartAll(LongRun("full"));
    WaitForSteps(ranks);
    ranks.child(lost).Signal(SIGKILL);
    const auto ends = ranks.Wait();
    for (size_t rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      EXPECT_EQ(ends[rank].exit_code, static_cast<int>(TrainerExit::kCrashed));
      EXPECT_THAT(ranks.Log(rank),
                  AllOf(HasSubstr("rank " + std::to_string(lost) + " on "), HasSubstr("closed the connection")));
    }
    EXPECT_EQ(ranks.HasResult(), lost != 0);
    if (lost == 0) continue;
    EXPECT_EQ(ranks.Result().status, RunStatus::kCrashed);
    EXPECT_THAT(ranks.Result().message, HasSubstr("rank 2 on "));
  }
}

TEST(LostRank, IfStoppedEndsTheOthersAndIsNamed) {
  for (const size_t lost : {0, 1}) {
    RankProcesses ranks(std::map<std::string, std::string>{{"RIDGELINE_COMM_TIMEOUT_S", "10"}});
    ranks.StartAll(LongRun("none"));
    WaitForSteps(ranks);
    ranks.child(lost).Signal(SIGSTOP);
    for (size_t rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      EXPECT_EQ(ranks.child(rank).Wait().exit_code, static_cast<int>(TrainerExit::kCrashed));
      EXPECT_THAT(ranks.Log(rank),
                  AllOf(HasSubstr("rank " + std::to_string(lost) + " on "), HasSubstr("did not answer within 10 s")));
    }
  }
}

TEST(LostRank, IfItCannotContinueTellsTheOthersWhy) {
  const RunSpec spec = [] {
    Json values = TinyRun("llama");
    values.update({{"ranks", 3}, {"vocab", 256}, {"data", "text.txt"}});
    return SpecFrom(values);
  }();
  RankProcesses ranks;
  for (size_t rank = 0; rank < 3; ++rank) {  // each looks for its data in its own folder
    std::filesystem::create_directory(ranks.Folder(rank));
    if (rank == 1) {
      std::filesystem::create_directory(ranks.Folder(rank) / "text.txt");
    } else {
      std::ofstream(ranks.Folder(rank) / "text.txt") << std::string(1000, 'x');
    }
  }
  ranks.StartAll(spec);
  for (const ExitStatus& end : ranks.Wait()) EXPECT_EQ(end.exit_code, static_cast<int>(TrainerExit::kInvalid));
  EXPECT_THAT(ranks.Result().message,
              AllOf(HasSubstr("rank 1 on "), HasSubstr("ended: the data file text.txt is not a regular file")));
  EXPECT_EQ(ranks.Result().status, RunStatus::kInvalid);
  EXPECT_THAT(ranks.Log(2), HasSubstr("rank 1 on "));
}

TEST(RanksHere, RanksThatDoNotFitTogetherAreOutOfMemory) {
  Json values = {{"model", "llama-64b"}, {"ranks", 2}};
  RankProcesses ranks;
  ranks.StartAll(SpecFrom(values));
  for (const ExitStatus& end : ranks.Wait()) EXPECT_EQ(end.exit_code, static_cast<int>(TrainerExit::kOomHost));
  EXPECT_THAT(ranks.Result().message, HasSubstr("2 ranks on this machine need "));
  EXPECT_EQ(ranks.Result().status, RunStatus::kOomHost);
  EXPECT_EQ(ranks.Result().evidence.at("wanted_bytes"), std::to_string(ranks.Result().memory.planned_peak_bytes));
}

TEST(Disagreement, IsInvalidOnEveryRankAndSaysWhoDiffers) {
  Json values = TinyRun("llama");
  values["ranks"] = 3;
  RankProcesses ranks;
  for (int rank = 0; rank < 3; ++rank) {
    values["learning_rate"] = rank == 1 ? 0.5 : 0.25;
    ranks.Start(SpecFrom(values), 3);
  }
  for (const ExitStatus& end : ranks.Wait()) EXPECT_EQ(end.exit_code, static_cast<int>(TrainerExit::kInvalid));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(ranks.Log(rank), AllOf(HasSubstr("the ranks do not agree"), HasSubstr("rank 1 on "),
                                       HasSubstr("has learning_rate 0.5 (rank 0: 0.25)")));
  }
  EXPECT_EQ(ranks.Result().status, RunStatus::kInvalid);
}

TEST(Disagreement, WithTheEnvironmentIsInvalid) {
  Json values = TinyRun("llama");
  values["ranks"] = 3;
  RankProcesses ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.Start(SpecFrom(values), 2);
  for (const ExitStatus& end : ranks.Wait()) EXPECT_EQ(end.exit_code, static_cast<int>(TrainerExit::kInvalid));
  EXPECT_THAT(ranks.Log(1), HasSubstr("the spec has ranks: 3, and WORLD_SIZE is 2"));
  EXPECT_THAT(Train(SpecFrom(values), {}).result.message,
              HasSubstr("the spec has ranks: 3, and nothing says which of them this process is"));
}

}  // namespace
}  // namespace ridgeline::engine
