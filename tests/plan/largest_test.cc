#include "plan/largest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "predict/framework.h"
#include "predict/memory_forecast.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "tests/plan/texts.h"

namespace ridgeline::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A slab of 1 MB for each thousand tokens, or a third of that with checkpointing.
predict::MemoryForecast ForecastByTokens(const RunSpec& spec) {
  const int64_t tokens = spec.batch_size * spec.seq_length;
  return {tokens * 1000 / (spec.checkpointing.policy == Checkpointing::Policy::kFull ? 3 : 1), {}};
}

TEST(Largest, IsSearchedForEachCombinationOfTheOtherFields) {
  const sweep::Sweep sweep = ParseText(
      "defaults: {model: llama-10m, seq_length: 100}\n"
      "matrix: {batch_size: [1, 2, 4], checkpointing: [none, full]}\n");
  const auto found = FindLargest(sweep, "batch_size", NodeWith(10 * kMegabyte), ForecastByTokens);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].spec.batch_size, 100);
  EXPECT_EQ(found[1].spec.batch_size, 300);
  EXPECT_EQ(found[1].forecast.planned_peak_bytes, 10 * kMegabyte);
  const Table table = LargestTable(sweep, "batch_size", found, Audience::kPrograms);
  EXPECT_THAT(table.columns, ElementsAre("checkpointing", "largest_batch_size", "predicted_peak_bytes",
                                         "available_bytes", "limited_by"));
  EXPECT_EQ(table.rows.at(0), (std::vector<Cell>{"none", int64_t{100}, 10 * kMegabyte, 10 * kMegabyte, "free here"}));
}

TEST(Largest, TheValueAfterItDoesNotFit) {
  const sweep::Sweep sweep = ParseText("defaults: {model: llama-10m, seq_length: 7}\n");
  for (const int64_t slab : {7'000, 7'001, 13'999, 14'000, 700'000, 705'999, 3'333'333}) {
    const auto found = FindLargest(sweep, "batch_size", NodeWith(slab), ForecastByTokens);
    EXPECT_EQ(found.at(0).spec.batch_size, slab / 7000) << slab;
    EXPECT_TRUE(found.at(0).fits);
  }
}

TEST(Largest, OfTensorParallelRanksLetsEachHaveAsManyTokens) {
  const sweep::Sweep sweep = ParseText(
      "defaults: {model: llama-10m, seq_length: 7, ranks: 2, tensor_parallel: 2}\nmatrix: {batch_size: [2]}\n");
  const auto both = [](int64_t bytes) { return NodeWith(2 * bytes + predict::kProcessBaseBytes); };  // two ranks
  EXPECT_EQ(FindLargest(sweep, "batch_size", both(35'000), ForecastByTokens).at(0).spec.batch_size, 4);
  EXPECT_EQ(FindLargest(sweep, "seq_length", both(9'500), ForecastByTokens).at(0).spec.seq_length, 4);
  const auto found = FindLargest(sweep, "batch_size", both(1), ForecastByTokens);
  EXPECT_EQ(CellText(LargestTable(sweep, "batch_size", found, Audience::kPeople).rows.at(0).at(0)),
            "none: even 2 does not fit");
}

TEST(Largest, OneMayBeTooMuch) {
  const sweep::Sweep sweep = ParseText("defaults: {model: llama-10m, seq_length: 100}\n");
  const auto found = FindLargest(sweep, "batch_size", NodeWith(1), ForecastByTokens);
  EXPECT_FALSE(found.at(0).fits);
  EXPECT_EQ(found.at(0).forecast.planned_peak_bytes, 100'000);
  EXPECT_EQ(CellText(LargestTable(sweep, "batch_size", found, Audience::kPeople).rows.at(0).at(0)),
            "none: even 1 does not fit");
}

TEST(Largest, AModelMayTakeNoMoreThanItsPositions) {
  const sweep::Sweep sweep = ParseText("defaults: {model: gpt-10m}\n");
  const auto found = FindLargest(sweep, "seq_length", NodeWith(kMegabyte * 1000), ForecastByTokens);
  EXPECT_EQ(found.at(0).spec.seq_length, 1024);
  EXPECT_FALSE(found.at(0).by_memory);
}

TEST(Largest, SaysWhatItNeeds) {
  const auto message = [](const std::string& text, const std::string& field, const NodeMemory& node) -> std::string {
    try {
      FindLargest(ParseText(text), field, node, ForecastByTokens);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      return e.what();
    }
    return "";
  };
  const std::string model = "defaults: {model: llama-10m}\n";
  EXPECT_THAT(message(model, "seed", NodeWith(1)), HasSubstr("--largest takes batch_size or seq_length"));
  EXPECT_THAT(message(model, "batch_size", {}), HasSubstr("--memory 64GB"));
  EXPECT_THAT(message(model + "launch: {trainer: [t.py]}\n", "batch_size", NodeWith(1)), HasSubstr("`trainer`"));
}

// Another trainer's memory is its framework's, as `plan` and `predict` say.
TEST(Largest, ForAnotherTrainerUsesItsFrameworksEstimate) {
  const std::filesystem::path files = RIDGELINE_SOURCE_DIR;
  const predict::Frameworks frameworks({files / "frameworks"});
  const sweep::Sweep sweep = sweep::ParseSweep(
      "name: s\ndefaults: {trainer: torchtitan, model: llama-8b, seq_length: 2048, ranks: 8, shard: full, device: "
      "cuda, gpu: h100}\nmatrix: {checkpointing: [none, full]}\n",
      files / "s.yaml");
  const auto found = FindLargest(sweep, "batch_size", {}, ForecastByTokens, &frameworks);
  ASSERT_EQ(found.size(), 2U);
  const predict::Framework& torchtitan = *frameworks.Of("torchtitan");
  for (const Largest& largest : found) {
    EXPECT_EQ(largest.forecast.planned_peak_bytes, predict::PeakBytes(torchtitan, largest.spec));
    RunSpec next = largest.spec;
    ++next.batch_size;
    EXPECT_GT(predict::PeakBytes(torchtitan, next), largest.limit.bytes);
    EXPECT_THAT(largest.estimated, HasSubstr("estimated as torchtitan"));
  }
  EXPECT_THAT(LargestTable(sweep, "batch_size", found, Audience::kPrograms).columns, Contains("estimated"));
}

std::vector<int64_t> BatchSizesOf(const sweep::Sweep& sweep) {
  std::vector<int64_t> sizes;
  for (const Point& point : sweep::Expand(sweep)) sizes.push_back(point.spec.batch_size);
  return sizes;
}

TEST(BatchesThatFit, IsTheLargestOfEachCombinationWithinItsLimit) {
  sweep::Sweep sweep = ParseText(
      "defaults: {model: llama-10m, seq_length: 100, batch_size: max}\n"
      "matrix: {checkpointing: [none, full]}\nlaunch: {memory_limit: 106MB}\n");
  const auto batches = UseLargestBatches(sweep, {}, ForecastByTokens);
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(100, 300));
  EXPECT_THAT(
      LargestBatchLines(sweep, *batches),
      ElementsAre("batch_size: max is 100 (checkpointing=none): 10.0 MB of 10.0 MB a rank (memory_limit 106 MB)",
                  "batch_size: max is 300 (checkpointing=full): 10.0 MB of 10.0 MB a rank (memory_limit 106 MB)"));
  BatchSizesOf(sweep);
  EXPECT_THAT(batches->answers(), SizeIs(2)) << "asked again it is the same answer";
}

TEST(BatchesThatFit, LearnsFromBatchesThatRanOutOfMemory) {
  sweep::Sweep sweep =
      ParseText("defaults: {model: llama-10m, seq_length: 100, batch_size: max}\nlaunch: {memory_limit: 106MB}\n");
  std::set<int64_t> ended;
  const auto batches = UseLargestBatches(sweep, {}, ForecastByTokens, [&](const sweep::Sweep&, const Point& point) {
    EXPECT_EQ(point.id, PointId(point.spec));
    return ended.contains(point.spec.batch_size);
  });
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(100));
  ended = {100};
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(100, 87)) << "what ran out of memory stays a point: it is an answer";
  ended = {100, 87};
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(100, 87, 75));
  EXPECT_THAT(LargestBatchLines(sweep, *batches),
              ElementsAre("batch_size: max is 75, as 100 and 87 ran out of memory: 10.0 MB for 100 of 10.0 MB a rank "
                          "(memory_limit 106 MB)"));
  ended = {100, 87, 75, 50};
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(100, 87, 75, 50)) << "and no further";
}

TEST(BatchesThatFit, OneStaysWhereNotEvenThatFits) {
  sweep::Sweep sweep =
      ParseText("defaults: {model: llama-10m, seq_length: 20000, batch_size: max}\nlaunch: {memory_limit: 106MB}\n");
  UseLargestBatches(sweep, {}, ForecastByTokens, [](const sweep::Sweep&, const Point&) { return true; });
  EXPECT_THAT(BatchSizesOf(sweep), ElementsAre(1));
}

TEST(BatchesThatFit, NeedsToKnowWhatMemoryThereIs) {
  const auto wrong = [](const std::string& text) -> std::string {
    sweep::Sweep sweep = ParseText(text);
    UseLargestBatches(sweep, {}, ForecastByTokens);
    try {
      sweep::Expand(sweep);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.what();
    }
    return "";
  };
  const std::string max = "defaults: {model: llama-10m, batch_size: max}\n";
  EXPECT_THAT(wrong(max),
              HasSubstr("s.yaml:2:42: batch_size: max is the largest that fits, and nothing says what memory "
                        "the point has\n  set a limit under launch:, such as memory_limit: 16GB"));
  EXPECT_THAT(wrong(max + "launch: {trainer: [t.py], memory_limit: 16GB}\n"), HasSubstr("another trainer"));
}

}  // namespace
}  // namespace ridgeline::plan
