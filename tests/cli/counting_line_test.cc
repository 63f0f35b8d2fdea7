#include "cli/counting_line.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline {
namespace {

TEST(CountingLine, ShowsHowFarItIsAndHowLongItTakes) {
  FakeClock clock;
  std::string shown;
  {
    CountingLine line("planning", clock, true, [&](std::string_view bytes) { shown += bytes; });
    line.At(1, 1000);
    EXPECT_EQ(shown, "") << "what takes no second needs no line";
    clock.SleepNs(2'000'000'000);
    line.At(100, 1000);
    EXPECT_EQ(shown, "\r\x1b[Kplanning 100 of 1000 points, about 18 s left");
    line.At(101, 1000);
    EXPECT_EQ(shown.find("101"), std::string::npos) << "not at each point";
    clock.SleepNs(2'000'000'000);
    line.At(500, 1000);
    EXPECT_TRUE(shown.ends_with("\r\x1b[Kplanning 500 of 1000 points, about 4 s left")) << shown;
  }
  EXPECT_TRUE(shown.ends_with("left\r\x1b[K")) << "nothing of it stays";
}

TEST(CountingLine, CountsWhatNobodyKnowsTheNumberOf) {
  FakeClock clock;
  std::string shown;
  CountingLine line("searching", clock, true, [&](std::string_view bytes) { shown += bytes; });
  line.At(1);
  EXPECT_EQ(shown, "") << "what takes no second needs no line";
  clock.SleepNs(2'000'000'000);
  line.At(40);
  EXPECT_EQ(shown, "\r\x1b[Ksearching: 40 tried in 2 s");
}

TEST(CountingLine, IsForTerminalsAlone) {
  FakeClock clock;
  std::string shown;
  {
    CountingLine line("planning", clock, false, [&](std::string_view bytes) { shown += bytes; });
    clock.SleepNs(5'000'000'000);
    line.At(100, 1000);
  }
  EXPECT_EQ(shown, "");
}

}  // namespace
}  // namespace ridgeline
