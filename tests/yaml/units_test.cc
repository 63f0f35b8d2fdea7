#include "yaml/units.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "ridgeline/amount.h"

namespace ridgeline::yaml {
namespace {

std::optional<int64_t> Bytes(const std::string& text) { return ReadBytes(ParseYaml(text)); }
std::optional<int64_t> Seconds(const std::string& text) { return ReadSeconds(ParseYaml(text)); }

TEST(Units, BytesHaveDecimalAndBinaryUnits) {
  EXPECT_EQ(Bytes("8GB"), 8'000'000'000);
  EXPECT_EQ(Bytes("512 MiB"), 512 << 20);
  EXPECT_EQ(Bytes("1.5KiB"), 1536);
  EXPECT_EQ(Bytes("4096"), 4096);
}

TEST(Units, TimesHaveSecondsToDays) {
  EXPECT_EQ(Seconds("90s"), 90);
  EXPECT_EQ(Seconds("30min"), 1800);
  EXPECT_EQ(Seconds("1.5h"), 5400);
  EXPECT_EQ(Seconds("2d"), 172'800);
}

TEST(Units, NothingElseIsANumber) {
  for (const char* text :
       {"nan", ".nan", ".inf", "-1", "0", "1e30GB", "8 gigs", "GB", "1.2.3GB", "[1]", "~", "8e400"}) {
    EXPECT_EQ(Bytes(text), std::nullopt) << text;
    EXPECT_EQ(Seconds(text), std::nullopt) << text;
  }
}

// No amount wraps: an amount above the limit is refused with a message.
TEST(Units, AmountsEndWhereNothingIsLarger) {
  EXPECT_EQ(Bytes("1000TB"), kMostBytes);
  EXPECT_EQ(Seconds("20000d"), kMostSeconds);
  for (const char* text : {"1001TB", "1000000000000001", "9223372036854775807", "9223372036854775808",
                           "18446744073709551616", "20001d", "1e30d", "99999999999999999999999999TB", "1e308TB"}) {
    EXPECT_EQ(Bytes(text), std::nullopt) << text;
    EXPECT_EQ(Seconds(text), std::nullopt) << text;
  }
  EXPECT_EQ(MostBytesNote(ParseYaml("1001TB")), "; 1000TB are the most");
  EXPECT_EQ(MostSecondsNote(ParseYaml("99999d")), "; 20000d are the most");
  EXPECT_EQ(MostBytesNote(ParseYaml("64G")), "");
  EXPECT_EQ(MostSecondsNote(ParseYaml("soon")), "");
}

TEST(Units, NumbersMayHaveSpacesAroundThem) {
  EXPECT_EQ(ParseNumber(" 1.5 "), 1.5);
  EXPECT_EQ(ParseNumber("inf"), std::nullopt);
  EXPECT_EQ(ParseNumber("1x"), std::nullopt);
  EXPECT_EQ(ParseNumber(""), std::nullopt);
}

}  // namespace
}  // namespace ridgeline::yaml
