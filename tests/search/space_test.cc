#include "search/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "predict/device.h"
#include "predict/memory_forecast.h"
#include "search/show.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kModel[] = "name: s\ndefaults: {model: llama-5m, seq_length: 32}\n";

// Predicts a slab of 1 MB for each sequence.
predict::MemoryForecast MegabyteASequence(const RunSpec& spec) { return {spec.batch_size * 1'000'000, {}}; }

std::vector<SearchSpace> SpacesOf(const std::string& text, const plan::NodeMemory& node = {}) {
  const sweep::Sweep sweep = sweep::ParseSweep(kModel + text, "s.yaml");
  return SpaceMaker(node, MegabyteASequence, predict::DeviceFolders({RIDGELINE_SOURCE_DIR "/devices"})).Make(sweep);
}

std::string WrongSpace(const std::string& text) {
  try {
    SpacesOf(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.what();
  }
  return "accepted";
}

TEST(SearchSpace, SearchesEachSettingOfTheOtherFieldsByItself) {
  const auto spaces = SpacesOf(
      "matrix: {batch_size: [1, 2, 4], seed: [1, 2], checkpointing: [none, full]}\n"
      "search: {maximize: tokens_per_s, over: [batch_size, checkpointing], budget: 3}\n");
  ASSERT_THAT(spaces, SizeIs(2));
  EXPECT_EQ(spaces[0].label, "seed=1");
  EXPECT_EQ(spaces[1].label, "seed=2");
  ASSERT_THAT(spaces[1].points, SizeIs(6));
  EXPECT_EQ(spaces[1].points[3].label, "batch_size=2, checkpointing=full");
  EXPECT_THAT(spaces[1].points[3].levels, ElementsAre(1, 0)) << "in doublings; of words the order means nothing";
  EXPECT_THAT(spaces[1].ordered, ElementsAre(true, false));
  EXPECT_GT(spaces[0].points[4].tokens_per_s, spaces[0].points[5].tokens_per_s) << "recomputing takes time";
  EXPECT_FALSE(spaces[0].knows_level) << "nobody has described this processor";
}

TEST(SearchSpace, MemoryThatIsKnownSaysWhatFits) {
  const std::string text =
      "matrix: {batch_size: [1, 2, 4]}\nsearch: {maximize: fit, over: [batch_size], budget: 3}\n"
      "launch: {memory_limit: 99MB}\n";
  const auto known = SpacesOf(text);
  EXPECT_TRUE(known[0].points[1].fits);
  EXPECT_FALSE(known[0].points[2].fits);
  EXPECT_DOUBLE_EQ(known[0].points[2].share, 4.0 / 3);
  EXPECT_GT(known[0].points[1].worth, known[0].points[0].worth);
  const auto unknown = SpacesOf("matrix: {batch_size: [1, 2]}\nsearch: {maximize: fit, budget: 3}\n");
  EXPECT_TRUE(unknown[0].points[1].fits);
  EXPECT_GT(unknown[0].points[1].share, unknown[0].points[0].share) << "what needs more is known all the same";
}

TEST(SearchSpace, ASharedModelOfOursHasItsOwnPlan) {
  const auto spaces = SpacesOf(
      "matrix: {ranks: [2], batch_size: [1], tensor_parallel: [1, 2]}\n"
      "search: {maximize: fit, over: [tensor_parallel], budget: 1}\nlaunch: {memory_limit: 99MB}\n");
  ASSERT_THAT(spaces[0].points, SizeIs(2));
  EXPECT_GT(spaces[0].points[0].share, 0);
  EXPECT_DOUBLE_EQ(spaces[0].points[1].share, spaces[0].points[0].share) << "the plan says a megabyte for each rank";
}

TEST(SearchSpace, TimesAreOfTheGpuThatThePointsName) {
  const auto spaces = SpacesOf(
      "matrix: {model: [llama-1b], seq_length: [2048], batch_size: [1, 2], device: [cuda], gpu: [h100]}\n"
      "search: {maximize: tokens_per_s, over: [batch_size], budget: 3}\n");
  EXPECT_TRUE(spaces[0].knows_level);
  EXPECT_EQ(spaces[0].basis, "h100, extrapolated");
}

// One point without an interval makes the whole space unsure.
TEST(SearchSpace, AnIntervalThatNobodyKnowsIsWide) {
  const auto of = [](const std::string& precisions) {
    return SpacesOf("matrix: {model: [llama-1b], seq_length: [2048], precision: [" + precisions +
                    "], device: [cuda], gpu: [h100]}\n" +
                    "search: {maximize: tokens_per_s, over: [precision], budget: 3}\n")[0];
  };
  EXPECT_TRUE(of("bf16, fp8").knows_level);
  for (const char* precisions : {"fp32, bf16", "bf16, fp32"}) {
    EXPECT_FALSE(of(precisions).knows_level) << precisions;
    EXPECT_GT(of(precisions).spread, 2 * of("bf16, fp8").spread);
  }
}

TEST(SearchSpace, CostIsByThePriceOfTheDeviceOrOfTheSweep) {
  const auto worth = [](const std::string& price) {
    return SpacesOf("matrix: {ranks: [1, 16], shard: [full]}\nprice: {" + price +
                    "}\nsearch: {maximize: cost, over: [ranks], budget: 3}\n")[0];
  };
  const SearchSpace by_device = worth("device: p5");
  EXPECT_DOUBLE_EQ(by_device.points[0].worth, 3600 / 55.04);
  EXPECT_DOUBLE_EQ(by_device.points[1].worth, 3600 / (2 * 55.04)) << "16 GPUs are two machines";
  EXPECT_DOUBLE_EQ(worth("device: p5, node: 10 USD/h, date: 2026-03").points[1].worth, 3600 / 20.0);
  EXPECT_DOUBLE_EQ(worth("node: 10 USD/h, date: 2026-03").points[1].worth, 3600 / 10.0)
      << "all its ranks are on one node";
}

TEST(SearchSpace, EverySlipIsSaidWithItsPlace) {
  const std::string axes = "matrix: {batch_size: [1, 2]}\n";
  EXPECT_THAT(WrongSpace(axes + "exclude: [{batch_size: [1, 2]}]\nsearch: {maximize: fit, budget: 3}\n"),
              HasSubstr("s.yaml:5:9: search: the space is empty: every combination is excluded"));
  EXPECT_THAT(WrongSpace(axes + "search: {maximize: cost, budget: 3}\n"),
              HasSubstr("s.yaml:4:9: search: cost needs a price, and nothing says one"));
  EXPECT_THAT(WrongSpace(axes + "search: {maximize: tokens_per_s, budget: 3}\nprice: {device: h10}\n"),
              HasSubstr("s.yaml:5:17: price: there is no device 'h10', did you mean 'h100'?"));
  EXPECT_THAT(WrongSpace("matrix: {batch_size: [1, 2], seed: 1..20000}\nsearch: {maximize: fit, budget: 3}\n"),
              HasSubstr("s.yaml:4:9: search: there are 40000 points, and a search takes up to 20000"));
}

TEST(SearchSpace, IsDescribedInWords) {
  const sweep::Sweep sweep = sweep::ParseSweep(std::string(kModel) +
                                                   "matrix: {batch_size: [1, 2], seed: [1, 2]}\n"
                                                   "search: {maximize: tokens_per_s, over: [batch_size], budget: 3}\n",
                                               "s.yaml");
  const auto spaces = SpaceMaker({}, MegabyteASequence, {}).Make(sweep);
  EXPECT_EQ(
      SearchWords(sweep, spaces),
      "search: the most tokens/s over batch_size; 4 points in 2 searches, at most 3 runs each; times are predicted "
      "by the work of a step, on a processor that is not described");
  const SearchDecision decision = Decide(spaces[0], *sweep.search, {}, 1);
  EXPECT_THAT(ChoiceWords(spaces[0], *sweep.search, decision, decision.run.at(0), 1),
              HasSubstr("search of seed=1: run 1 of at most 3: batch_size=2: "));
}

}  // namespace
}  // namespace ridgeline::search
