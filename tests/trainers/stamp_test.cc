// Time stamps as logs print them.
#include "trainers/stamp.h"

#include <gtest/gtest.h>

namespace ridgeline::trainers {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400 * kSecond;

std::optional<int64_t> Ns(std::string_view text, std::string_view format) {
  const auto stamp = ReadStamp(text, format);
  return stamp ? std::optional(stamp->ns) : std::nullopt;
}

TEST(Stamp, ReadsTheFormsThatTrainersPrint) {
  const int64_t moment = 1'762'161'250 * kSecond;  // 2025-11-03 09:14:10 UTC
  EXPECT_EQ(Ns("2025-11-03 09:14:10,114", "%Y-%m-%d %H:%M:%S,%f"), moment + 114'000'000);
  EXPECT_EQ(Ns("2025-11-03T09:14:10.114256Z", "%FT%T.%f%z"), moment + 114'256'000);
  EXPECT_EQ(Ns("2025-11-03T10:14:10+01:00", "%FT%T%z"), moment);
  EXPECT_EQ(Ns("2025-11-03 01:14:10 -0800", "%F %T %z"), moment);
  EXPECT_EQ(Ns("11/03/2025 09:14:10", "%m/%d/%Y %H:%M:%S"), moment);
  EXPECT_EQ(Ns("Nov  3 2025, 9:14:10 AM", "%b %d %Y, %I:%M:%S %p"), moment);
  EXPECT_EQ(Ns("03/Nov/25 12:00:00 am", "%d/%b/%y %I:%M:%S %p"), moment - (9 * 3600 + 14 * 60 + 10) * kSecond);
  EXPECT_EQ(Ns("1762161250.5", "%s.%f"), moment + 500'000'000);
  EXPECT_EQ(Ns("09:14:10", "%T"), (9 * 3600 + 14 * 60 + 10) * kSecond);
  EXPECT_EQ(Ns("100%09:14:10", "100%%%T"), (9 * 3600 + 14 * 60 + 10) * kSecond);
}

TEST(Stamp, SaysWhatItLacksAndHowFineItIs) {
  EXPECT_EQ(ReadStamp("09:14:10", "%T")->wraps_ns, kDay);
  EXPECT_EQ(ReadStamp("1103 09:14:10", "%m%d %T")->wraps_ns, 366 * kDay);
  EXPECT_EQ(ReadStamp("2025-11-03 09:14:10", "%F %T")->wraps_ns, 0);
  EXPECT_EQ(ReadStamp("09:14:10", "%T")->resolution_ns, kSecond);
  EXPECT_EQ(ReadStamp("09:14:10.25", "%T.%f")->resolution_ns, 10'000'000);
}

TEST(Stamp, RefusesWhatIsNoStamp) {
  for (const char* text : {"", "09:14", "09:14:10 ", "24:00:00", "09:60:00", "x", "-9:14:10"}) {
    EXPECT_EQ(Ns(text, "%T"), std::nullopt) << text;
  }
  EXPECT_EQ(Ns("2025-02-30 00:00:00", "%F %T"), std::nullopt);
  EXPECT_EQ(Ns("2025-13-01 00:00:00", "%F %T"), std::nullopt);
  EXPECT_EQ(Ns("1925-01-01 00:00:00", "%F %T"), std::nullopt);
}

TEST(Stamp, FormatsAreHeldToWhatTheyMustSay) {
  for (const char* format : {"%T", "%s", "%F %T", "%m/%d %H:%M:%S.%f", "%b %d %I:%M:%S %p"}) {
    EXPECT_EQ(StampFormatProblem(format), nullptr) << format;
  }
  for (const char* format : {"", "%", "%q", "%F", "%H:%M", "%Y %T", "%d %T", "%I:%M:%S"}) {
    EXPECT_NE(StampFormatProblem(format), nullptr) << format;
  }
}

}  // namespace
}  // namespace ridgeline::trainers
