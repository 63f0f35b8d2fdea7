// The values that `price:` and `published:` accept, and the errors for others.
#include "sweep/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Sweep SweepWith(const std::string& section) {
  return ParseSweep("name: test\ndefaults: {model: llama-10m}\n" + section, "s.yaml");
}

std::string RefusalOfSection(const std::string& section) {
  try {
    SweepWith(section);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(ReadPrice, ReadsThePriceOfADeviceOrOfANode) {
  EXPECT_EQ(SweepWith("price: {device: p5}").price.device, "p5");
  const SweepPrice price = SweepWith("price: {node: 31.50 USD/h, date: 2026-03, power: 5.6 kW}").price;
  EXPECT_DOUBLE_EQ(price.node_usd_per_hour, 31.5);
  EXPECT_EQ(price.date, "2026-03");
  EXPECT_DOUBLE_EQ(price.node_watts, 5600);
  EXPECT_EQ(SweepWith("price: {node: 2 USD/h, date: 2026}").price.date, "2026");
  EXPECT_EQ(SweepWith("").price.node_usd_per_hour, 0);
  EXPECT_EQ(SweepWith("").price.max_usd, 0);
  EXPECT_DOUBLE_EQ(SweepWith("price: {node: 2 USD/h, date: 2026, max_cost: 1.5e3 USD}").price.max_usd, 1500);
}

TEST(ReadPrice, ReportsWhatIsNoPriceAtItsPlace) {
  EXPECT_THAT(RefusalOfSection("price: 31.50"), HasSubstr("s.yaml:3:8: price is a mapping such as"));
  EXPECT_THAT(RefusalOfSection("price: {node: -3 USD/h, date: 2026}"),
              HasSubstr("s.yaml:3:15: node of price must not be negative"));
  EXPECT_THAT(RefusalOfSection("price: {node: 31.50, date: 2026}"),
              AllOf(HasSubstr("s.yaml:3:15: node of price is an amount such as 31.50 USD/h"), HasSubstr("not 31.5")));
  EXPECT_THAT(RefusalOfSection("price: {node: 31.50 EUR/h, date: 2026}"),
              HasSubstr("s.yaml:3:15: node of price is an"));
  EXPECT_THAT(RefusalOfSection("price: {node: 0 USD/h, date: 2026}"),
              HasSubstr("more than 0 and at most 1000000 USD/h"));
  EXPECT_THAT(RefusalOfSection("price: {node: 1e9 USD/h, date: 2026}"), HasSubstr("at most 1000000 USD/h"));
  EXPECT_THAT(RefusalOfSection("price: {node: 3 USD/h}"),
              HasSubstr("s.yaml:3:8: price has a node's price and no date"));
  EXPECT_THAT(RefusalOfSection("price: {max_cost: 5 USD}"), HasSubstr("price has max_cost and no price of a node"));
  EXPECT_THAT(RefusalOfSection("price: {node: 3 USD/h, date: 2026, max_cost: 500}"),
              AllOf(HasSubstr("s.yaml:3:46: max_cost of price is an amount such as 500 USD"), HasSubstr("not 500")));
  EXPECT_THAT(RefusalOfSection("price: {date: 2026-03}"), HasSubstr("price has a date and no price of a node"));
  for (const char* date : {"2026-13", "2026-02-30", "2199", "yesterday", "1", "26"}) {
    EXPECT_THAT(RefusalOfSection("price: {node: 3 USD/h, date: " + std::string(date) + "}"),
                HasSubstr("date of price: '" + std::string(date) + "' is not a date from 2000 to 2099"));
  }
  EXPECT_THAT(RefusalOfSection("price: {power: 700}"), HasSubstr("s.yaml:3:16: power of price is an amount such as"));
  EXPECT_THAT(RefusalOfSection("price: {device: [p5]}"), HasSubstr("s.yaml:3:17: device of price is text such as p5"));
  EXPECT_THAT(RefusalOfSection("price: {devices: p5}"), HasSubstr("'devices'"));
}

TEST(ReadPublished, IsOfThePointsThatItNames) {
  const Sweep sweep = SweepWith(R"(
published:
  - {source: "a page, 2026", when: {batch_size: [1, 2], checkpointing: none}, steady_tokens_per_s: 6000, peak_memory: 15.5GB}
  - {source: "the same", when: {batch_size: 16}, cold_tokens_per_s: 48000}
)");
  ASSERT_THAT(sweep.published, SizeIs(2));
  EXPECT_EQ(sweep.published[0].source, "a page, 2026");
  EXPECT_THAT(sweep.published[0].when, SizeIs(2));
  EXPECT_EQ(sweep.published[0].peak_bytes, 15'500'000'000);
  EXPECT_DOUBLE_EQ(sweep.published[0].steady_tokens_per_s, 6000);
  EXPECT_DOUBLE_EQ(sweep.published[1].cold_tokens_per_s, 48000);
}

TEST(ReadPublished, ReportsAMissingSourceOrMissingPointsAtTheirPlace) {
  const auto one = [](const std::string& figures) { return RefusalOfSection("published: [" + figures + "]"); };
  EXPECT_THAT(one("{when: {batch_size: 1}, peak_memory: 1GB}"),
              HasSubstr("s.yaml:3:13: published figures need a source"));
  EXPECT_THAT(one("{source: x, peak_memory: 1GB}"), HasSubstr("need `when`"));
  EXPECT_THAT(one("{source: x, when: {batch_size: 1}}"), HasSubstr("need cold_tokens_per_s"));
  EXPECT_THAT(one("{source: x, when: {batch_size: 1}, cold_tokens_per_s: -1}"),
              HasSubstr("cold_tokens_per_s is a number of tokens a second, of all ranks, not -1"));
  EXPECT_THAT(one("{source: x, when: {batch_size: 1}, peak_memory: lots}"), HasSubstr("peak_memory is a size such as"));
  EXPECT_THAT(one("{source: \"\", when: {batch_size: 1}, peak_memory: 1GB}"), HasSubstr("source is one line"));
  EXPECT_THAT(one("{source: x, when: {batchsize: 1}, peak_memory: 1GB}"), HasSubstr("batchsize"));
  EXPECT_THAT(RefusalOfSection("published: 3"), HasSubstr("s.yaml:3:12"));
}

}  // namespace
}  // namespace ridgeline::sweep
