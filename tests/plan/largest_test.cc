#include "plan/largest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "predict/memory.h"
#include "tests/plan/texts.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A slab of 1 MB a token of a thousand, and of a third of that with checkpointing.
MemoryForecast ForecastByTokens(const RunSpec& spec) {
  const int64_t tokens = spec.batch_size * spec.seq_length;
  return {tokens * 1000 / (spec.checkpointing == "full" ? 3 : 1), {}};
}

TEST(Largest, IsSearchedForEachCombinationOfTheOtherFields) {
  const Sweep sweep = ParseText(
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
  const Sweep sweep = ParseText("defaults: {model: llama-10m, seq_length: 7}\n");
  for (const int64_t slab : {7'000, 7'001, 13'999, 14'000, 700'000, 705'999, 3'333'333}) {
    const auto found = FindLargest(sweep, "batch_size", NodeWith(slab), ForecastByTokens);
    EXPECT_EQ(found.at(0).spec.batch_size, slab / 7000) << slab;
    EXPECT_TRUE(found.at(0).fits);
  }
}

TEST(Largest, OneMayBeTooMuch) {
  const Sweep sweep = ParseText("defaults: {model: llama-10m, seq_length: 100}\n");
  const auto found = FindLargest(sweep, "batch_size", NodeWith(1), ForecastByTokens);
  EXPECT_FALSE(found.at(0).fits);
  EXPECT_EQ(found.at(0).forecast.planned_peak_bytes, 100'000);
  EXPECT_EQ(CellText(LargestTable(sweep, "batch_size", found, Audience::kPeople).rows.at(0).at(0)),
            "none: 1 is too much");
}

TEST(Largest, AModelMayTakeNoMoreThanItsPositions) {
  const Sweep sweep = ParseText("defaults: {model: gpt-10m}\n");
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

}  // namespace
}  // namespace ridgeline
