// Compares advice with what the planner and the step model say about the same points. The models have two layers, so
// planning them is quick.
#include "plan/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "plan/forecast.h"
#include "plan/memory_limit.h"
#include "predict/memory_forecast.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kTwoLayers = {{"family", "llama"}, {"layers", 2}, {"hidden", 2048}, {"heads", 16},
                         {"kv_heads", 4},     {"ffn", 5632}, {"vocab", 32'000}};

predict::Device ShippedDevice(const std::string& name) {
  return predict::FindDevice(name, {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "devices"});
}

AdviceAbout AboutTwoLayers(int64_t ranks, int64_t seq_length) {
  AdviceAbout about;
  about.trained.model = kTwoLayers;
  about.trained.seq_length = seq_length;
  about.ranks = ranks;
  about.tokens = 1e12;
  return about;
}

std::string Says(const Advice& advice, const std::string& topic) {
  std::string all;
  for (const Advice::Sentence& sentence : advice.sentences) {
    if (sentence.topic == topic) all += sentence.text + "\n";
  }
  return all;
}

TEST(Advise, TheFastestIsTheQuickestOfThoseThatFit) {
  const predict::Device p5 = ShippedDevice("p5");
  const Advice advice = Advise(AboutTwoLayers(8, 65'536), p5);
  ASSERT_FALSE(advice.fitting.empty());
  for (const AdvisedPoint& point : advice.fitting) {
    EXPECT_LE(point.rate(), advice.fitting.front().rate());
    EXPECT_EQ(point.spec.ranks, 8);
  }
  const AdvisedPoint& fastest = advice.fitting.front();
  EXPECT_EQ(fastest.peak_bytes, predict::PredictMemory(fastest.spec).planned_peak_bytes);
  EXPECT_LE(fastest.peak_bytes, SlabLimitOn(fastest.spec, p5).bytes);
  ASSERT_TRUE(advice.smallest && advice.cheapest);
  EXPECT_LE(advice.smallest->peak_bytes, fastest.peak_bytes);
  for (const char* topic : {"fit", "fastest", "tokens", "shard", "checkpointing", "batch", "bound", "GPUs", "memory"}) {
    EXPECT_NE(Says(advice, topic), "") << topic;
  }
  EXPECT_THAT(Says(advice, "fit"), HasSubstr("without activation checkpointing: bf16 up to batch"));
  EXPECT_THAT(Says(advice, "tokens"), AllOf(HasSubstr("Training on 1.00T tokens takes"), HasSubstr("55.04 USD an hour"),
                                            HasSubstr("2026-08-26")));
  EXPECT_THAT(Says(advice, "fastest"), HasSubstr("Its step, as Ridgeline's own trainer runs it, takes "));
  EXPECT_THAT(Says(advice, "shard"), AllOf(HasSubstr("none "), HasSubstr("optimizer "), HasSubstr("full ")));
  for (const Advice::Sentence& sentence : advice.sentences) {
    const bool is_planned = sentence.topic == "fit" || sentence.topic == "state";
    EXPECT_EQ(sentence.basis, is_planned ? "planned" : "predicted, extrapolated");
  }

  // The largest batch of a way is really the largest: one more does not fit.
  const TrainedModel& trained = AboutTwoLayers(8, 65'536).trained;
  const predict::Framework ours;
  const Configurations configurations(trained, p5, ours);
  for (const TriedWay& way : configurations.Try(8, ShardMode::kFull)) {
    const auto bytes = [&](int64_t batch) {
      return configurations.BytesOf(
          configurations.SpecOf(ShardMode::kFull, way.precision, way.checkpointing, batch, 8));
    };
    ASSERT_TRUE(way.fits());
    EXPECT_LE(bytes(way.largest), configurations.limit().bytes);
    if (way.largest < 1024) {
      EXPECT_GT(bytes(way.largest + 1), configurations.limit().bytes);
    }
  }
}

TEST(Advise, TheSweepThatMeasuresItPlans) {
  const AdviceAbout about = AboutTwoLayers(8, 65'536);
  const predict::Device p5 = ShippedDevice("p5");
  const Advice advice = Advise(about, p5);
  const std::vector<Point> points =
      sweep::Expand(sweep::ParseSweep(SweepOfAdvice(advice, about, p5, "ridgeline"), "advice.yaml"));
  ASSERT_GT(points.size(), 3U);
  const auto is_best = [&](const Point& point) {
    const RunSpec& best = advice.fitting.front().spec;
    return point.spec.batch_size == best.batch_size && point.spec.precision == best.precision &&
           point.spec.shard == best.shard && point.spec.checkpointing == best.checkpointing;
  };
  EXPECT_TRUE(std::ranges::any_of(points, is_best));
  EXPECT_EQ(points.front().spec.gpu, "h100");
}

// The layers are large, so that a batch needs checkpointing.
TEST(Advise, SaysWhatNeedsCheckpointing) {
  AdviceAbout about = AboutTwoLayers(8, 131'072);
  about.trained.model.update({{"hidden", 8192}, {"heads", 64}, {"ffn", 28'672}, {"layers", 4}});
  const Advice advice = Advise(about, ShippedDevice("p5"));
  EXPECT_THAT(
      Says(advice, "fit"),
      AllOf(HasSubstr("The model needs activation checkpointing. Without it, batch 1 takes"), HasSubstr("it fits: ")));
}

// The number of GPUs is the smallest, not the nearest power of two.
TEST(Advise, SaysWhatWouldLetAModelFit) {
  AdviceAbout about = AboutTwoLayers(1, 1024);
  about.trained.model.update({{"hidden", 16'384}, {"heads", 128}, {"ffn", 65'536}, {"kv_heads", 8}});
  const predict::Device h100 = ShippedDevice("h100");
  const Advice none = Advise(about, h100);
  EXPECT_TRUE(none.fitting.empty());
  EXPECT_THAT(Says(none, "fit"), HasSubstr("The model does not fit. "));
  const std::string remedies = Says(none, "remedy");
  EXPECT_THAT(remedies,
              AllOf(HasSubstr("With bf16 state (state_precision: bf16), it takes"),
                    HasSubstr("Without clipping of gradients (grad_clip: 0), it takes"), HasSubstr("A GPU with 1")));
  const size_t shared = remedies.find("Shared by ");
  ASSERT_NE(shared, std::string::npos) << remedies;
  const int64_t ranks = std::stoll(remedies.substr(shared + 10));
  const predict::Framework ours;
  const Configurations configurations(about.trained, h100, ours);
  const auto fits = [&](int64_t gpus) {
    return configurations.Fits(
        configurations.SpecOf(ShardMode::kFull, Precision::kBf16, {Checkpointing::Policy::kFull}, 1, gpus));
  };
  EXPECT_TRUE(fits(ranks));
  if (ranks > 2) {
    EXPECT_FALSE(fits(ranks - 1));
  }
}

TEST(Advise, OwnsWhatTheStateCosts) {
  AdviceAbout about = AboutTwoLayers(1, 128);
  about.trained.state_precision = "bf16";
  about.trained.grad_clip = 0;
  EXPECT_EQ(Says(Advise(about, ShippedDevice("a100")), "state"), "") << "there is nothing to leave out";
}

TEST(Advise, TriesTheFormatsThatTheDeviceMultiplies) {
  const TrainedModel trained = AboutTwoLayers(1, 256).trained;
  const predict::Framework ours;
  using Formats = std::vector<Precision>;
  EXPECT_EQ(Configurations(trained, ShippedDevice("b200"), ours).precisions(),
            (Formats{Precision::kBf16, Precision::kFp8, Precision::kMxfp8, Precision::kNvfp4}));
  EXPECT_EQ(Configurations(trained, ShippedDevice("a100"), ours).precisions(), Formats{Precision::kBf16});
}

TEST(Advise, ForASingleGpuSaysNothingBeyondItsDomain) {
  const Advice advice = Advise(AboutTwoLayers(8, 65'536), ShippedDevice("a100"));
  EXPECT_EQ(Says(advice, "GPUs"), "") << "16 of them need a network, and it has none";
  EXPECT_EQ(Says(advice, "tokens").find("USD"), std::string::npos);
  EXPECT_FALSE(advice.cheapest);
}

TEST(Advise, ABudgetPaysForMachines) {
  const predict::Device p5 = ShippedDevice("p5");
  const predict::Framework torchtitan =
      predict::FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  AdviceAbout about = AboutTwoLayers(1, 1024);
  about.budget_usd = 1e6;
  const Advice rich = Advise(about, p5, torchtitan);
  EXPECT_GT(rich.ranks, 8);
  EXPECT_THAT(Says(rich, "budget"), HasSubstr("1.00M USD pays for training on 1.00T tokens with at most "));
  EXPECT_THAT(rich.sentences.front().basis, HasSubstr("estimated as torchtitan"));
  about.budget_usd = 1;
  const Advice poor = Advise(about, p5, torchtitan);
  EXPECT_EQ(poor.ranks, 8);
  EXPECT_THAT(Says(poor, "budget"), HasSubstr("1.00 USD does not pay for training on 1.00T tokens"));
  EXPECT_THROW(Advise(about, ShippedDevice("h100"), torchtitan), Error);
}

TEST(Advise, ABudgetIsSpentOnAnyNumberOfWholeMachines) {
  const predict::Device p5 = ShippedDevice("p5");
  const predict::Framework torchtitan =
      predict::FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  AdviceAbout about = AboutTwoLayers(1, 1024);
  const auto cost_of = [&](int64_t machines) {
    about.budget_usd = 0;
    about.ranks = machines * 8;
    const AdvisedPoint best = Advise(about, p5, torchtitan).fitting.front();
    return about.tokens / 1e9 * DollarsABillionTokens(best.spec, best.step, p5);
  };
  const double between = (cost_of(6) + cost_of(7)) / 2;
  ASSERT_LT(cost_of(6), cost_of(7));
  about.budget_usd = between;
  EXPECT_EQ(Advise(about, p5, torchtitan).ranks, 6 * 8);
}

// Shards within a machine, copies across machines.
TEST(Advise, TriesHybridSharding) {
  const predict::Framework torchtitan =
      predict::FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  const predict::Device p5 = ShippedDevice("p5");
  const AdviceAbout about = AboutTwoLayers(32, 4096);
  const Advice advice = Advise(about, p5, torchtitan);
  EXPECT_THAT(Says(advice, "shard"), AllOf(HasSubstr("full over 8 "), HasSubstr("gradients over 8 ")));
  const auto hybrid =
      std::ranges::find_if(advice.fitting, [](const AdvisedPoint& point) { return point.spec.shard_ranks == 8; });
  ASSERT_NE(hybrid, advice.fitting.end());
  EXPECT_EQ(hybrid->spec.ranks, 32);
  Advice of_hybrid = advice;
  of_hybrid.fitting.assign(1, *hybrid);
  EXPECT_THAT(SweepOfAdvice(of_hybrid, about, p5, "torchtitan"), HasSubstr("shard_ranks: [8"));
  EXPECT_EQ(Says(Advise(AboutTwoLayers(8, 4096), p5, torchtitan), "shard").find("over 8"), std::string::npos);
  EXPECT_THAT(Says(Advise(about, p5), "shard"), HasSubstr("full over 8 ")) << "this engine does it, too";
}

TEST(Advise, OtherDevicesAreHeldBesideIt) {
  AdviceAbout about = AboutTwoLayers(8, 1024);
  const predict::Framework torchtitan =
      predict::FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  const Advice advice = Advise(about, ShippedDevice("p5"), torchtitan, {ShippedDevice("p6-b200")});
  EXPECT_THAT(Says(advice, "fastest"), HasSubstr("as torchtitan (estimated) runs it"));
  EXPECT_THAT(Says(advice, "machine"), AllOf(HasSubstr("p6-b200"), HasSubstr("x the dollars a token")));
}

}  // namespace
}  // namespace ridgeline::plan
