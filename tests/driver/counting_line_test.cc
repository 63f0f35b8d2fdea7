#include "driver/counting_line.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline::driver {
namespace {

TEST(CountingLine, ShowsHowFarItIsAndHowLongItTakes) {
  FakeClock clock;
  std::string shown;
  {
    CountingLine line("planning", clock, [&](const std::string& line) { shown += "|" + line; });
    line.At(1, 1000);
    EXPECT_EQ(shown, "") << "what takes no second needs no line";
    clock.SleepNs(2'000'000'000);
    line.At(100, 1000);
    EXPECT_EQ(shown, "|planning 100 of 1000 points, about 18 s left");
    line.At(101, 1000);
    EXPECT_EQ(shown.find("101"), std::string::npos) << "not at each point";
    clock.SleepNs(2'000'000'000);
    line.At(500, 1000);
    EXPECT_TRUE(shown.ends_with("|planning 500 of 1000 points, about 4 s left")) << shown;
  }
  EXPECT_TRUE(shown.ends_with("left|")) << "nothing of it stays";
}

TEST(CountingLine, CountsWhatNobodyKnowsTheNumberOf) {
  FakeClock clock;
  std::string shown;
  CountingLine line("searching", clock, [&](const std::string& line) { shown += "|" + line; });
  line.At(1);
  EXPECT_EQ(shown, "") << "what takes no second needs no line";
  clock.SleepNs(2'000'000'000);
  line.At(40);
  EXPECT_EQ(shown, "|searching: 40 tried in 2 s");
}

TEST(CountingLine, ShowsNothingWhereNobodyLooks) {
  FakeClock clock;
  CountingLine line("planning", clock, {});
  clock.SleepNs(5'000'000'000);
  line.At(100, 1000);
}

}  // namespace
}  // namespace ridgeline::driver
