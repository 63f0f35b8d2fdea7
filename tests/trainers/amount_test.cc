// The amounts that trainers print.
#include "trainers/amount.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline::trainers {
namespace {

using enum Dimension;

std::optional<double> Amount(const char* text, Dimension dimension, const char* unit = "") {
  const LoggedUnit* found = FindUnit(dimension, unit);
  if (found == nullptr) throw std::string("no such unit");
  return ReadAmount(text, *found);
}

TEST(Amount, EveryUnitIsExact) {
  EXPECT_EQ(Amount("7", kTime, "ns"), 7);
  EXPECT_EQ(Amount("7", kTime, "us"), 7e3);
  EXPECT_EQ(Amount("32.47", kTime, "ms"), 32'470'000);
  EXPECT_EQ(Amount("32.47", kTime, "ms/iter"), 32'470'000);
  EXPECT_EQ(Amount("0.1", kTime, "s"), 1e8);
  EXPECT_EQ(Amount("1.5", kTime, "s/it"), 1.5e9);
  EXPECT_EQ(Amount("4", kTime, "it/s"), 250'000'000);
  EXPECT_EQ(Amount("3", kTime, "it/s"), 333'333'333);
  EXPECT_EQ(Amount("7", kMemory, "bytes"), 7);
  EXPECT_EQ(Amount("1.5", kMemory, "KiB"), 1536);
  EXPECT_EQ(Amount("3", kMemory, "MiB"), 3 * 1048576.0);
  EXPECT_EQ(Amount("3", kMemory, "GiB"), 3 * 1073741824.0);
  EXPECT_EQ(Amount("1", kMemory, "TiB"), 1099511627776.0);
  EXPECT_EQ(Amount("1.5", kMemory, "kB"), 1500);
  EXPECT_EQ(Amount("10.5", kMemory, "MB"), 10'500'000);
  EXPECT_EQ(Amount("79.15", kMemory, "GB"), 79'150'000'000);
  EXPECT_EQ(Amount("124.37", kCount, "M"), 124'370'000);
  EXPECT_EQ(Amount("7", kCount, "K"), 7000);
  EXPECT_EQ(Amount("70.5", kCount, "B"), 70.5e9);
  EXPECT_EQ(Amount("123.5", kTokenRate, "tokens/s"), 123.5);
  EXPECT_EQ(Amount("12", kTokenRate, "tokens/s/GPU"), 12);
  EXPECT_EQ(Amount("412.7", kFlopRate, "TFLOP/s/GPU"), 412.7);
}

TEST(Amount, AUnitOrAMultipleMayStandBehindTheNumber) {
  EXPECT_EQ(Amount("512ms", kTime, "ms"), 512e6);
  EXPECT_EQ(Amount("512 msec", kTime, "ms"), 512e6);
  EXPECT_EQ(Amount("0.5s", kTime, "ms"), std::nullopt) << "the definition says another unit";
  EXPECT_EQ(Amount("11.5K", kTime, "ms"), 11.5e9);
  EXPECT_EQ(Amount("22.8K", kTokenRate, "tokens/s"), 22'800);
  EXPECT_EQ(Amount("1.5 M", kTokenRate, "tokens/s/GPU"), 1.5e6);
  EXPECT_EQ(Amount("570M", kMemory, "bytes"), 570e6);
  EXPECT_EQ(Amount("570B", kMemory, "bytes"), 570) << "a byte, and no billion";
  EXPECT_EQ(Amount("7B", kCount), 7e9);
  EXPECT_EQ(Amount("7B", kCount, "B"), 7e9);
  EXPECT_EQ(Amount("124.4M", kCount, "M"), 124.4e6);
  EXPECT_EQ(Amount("124K", kCount, "M"), std::nullopt);
  EXPECT_EQ(Amount("2K", kPlain), std::nullopt);
  EXPECT_EQ(Amount("2G", kMemory, "GiB"), 2.0 * (1 << 30));
  EXPECT_EQ(Amount("547M", kMemory, "GiB"), std::nullopt);
  EXPECT_EQ(Amount("38.3T", kFlopRate, "TFLOP/s/GPU"), 38.3);
  EXPECT_EQ(Amount("1.04K", kFlopRate, "TFLOP/s/GPU"), 1040);
  EXPECT_NEAR(Amount("83.5T", kFlopRate, "FLOP/s/GPU").value(), 83.5, 1e-12);
  EXPECT_EQ(Amount("1.25s/it", kTime, "tqdm"), 1.25e9);
  EXPECT_EQ(Amount("4 batch/s", kTime, "tqdm"), 0.25e9);
  EXPECT_EQ(Amount("4", kTime, "tqdm"), std::nullopt) << "it may be either";
  EXPECT_EQ(Amount("41.25", kShare, "%"), 0.4125);
  EXPECT_EQ(Amount("2e12", kFlopRate, "FLOP/s/GPU"), 2);
  EXPECT_EQ(FindPrintedUnit(kMemory, "KB")->name, "kB");
  EXPECT_EQ(FindPrintedUnit(kMemory, "ms"), nullptr);
  EXPECT_EQ(FindPrintedUnit(kTime, ""), nullptr);
}

TEST(Amount, NumbersAsProgramsPrintThem) {
  EXPECT_EQ(Amount("1,234.5", kPlain), 1234.5);
  EXPECT_EQ(Amount("1,234,567", kCount), 1234567);
  EXPECT_EQ(Amount("1e-3", kPlain), 1e-3);
  EXPECT_EQ(Amount("1E+3", kTime, "ns"), 1000);
  EXPECT_EQ(Amount("1e-3", kTime, "s"), 1e6);
  EXPECT_EQ(Amount("-0.5", kPlain), -0.5);
  EXPECT_EQ(Amount("+2", kPlain), 2);
  EXPECT_EQ(Amount(".5", kPlain), .5);
  EXPECT_EQ(Amount("6.", kTime, "ns"), 6);
  EXPECT_EQ(Amount("0", kMemory, "bytes"), 0);
  EXPECT_EQ(Amount("0.123456789012345678901234567890", kTime, "s"), 123456789);
  EXPECT_EQ(Amount("2.5", kTime, "ns"), 3);
  EXPECT_EQ(Amount("1e-400", kTime, "s"), 0);
  EXPECT_EQ(Amount("1e21", kCount), 1e21) << "operations of a step are more than whole numbers of a double";
}

TEST(Amount, AnInfiniteAmountIsNaN) {
  for (const char* text : {"nan", "NaN", "-nan", "inf", "-Infinity", "+inf"}) {
    EXPECT_TRUE(std::isnan(Amount(text, kPlain).value_or(0))) << text;
  }
}

TEST(Amount, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "-", "+", ".", "x", "1x", "1 ", "1,2", "1,23.4", ",123", "1.2,345", "1e", "0x10", "nanx",
                           "--1", "+-1", "1.2.3", "1e999"}) {
    EXPECT_EQ(Amount(text, kPlain), std::nullopt) << text;
    EXPECT_EQ(Amount(text, kTime, "ns"), std::nullopt) << text;
  }
  EXPECT_EQ(Amount("-1", kTime, "ms"), std::nullopt);
  EXPECT_EQ(Amount("-1", kTokenRate, "tokens/s"), std::nullopt);
  EXPECT_EQ(Amount("0", kTime, "it/s"), std::nullopt) << "no step would ever end";
}

TEST(Amount, RefusesAmountsThatOverflow) {
  EXPECT_EQ(Amount("9007199254740992", kTime, "ns"), 9007199254740992.0);
  EXPECT_EQ(Amount("9007199254740994", kTime, "ns"), std::nullopt);
  EXPECT_EQ(Amount("9007200", kTime, "s"), std::nullopt);
  EXPECT_EQ(Amount("8193", kMemory, "TiB"), std::nullopt);
  EXPECT_EQ(Amount("1e300", kMemory, "TiB"), std::nullopt);
  EXPECT_EQ(Amount("1e-300", kTime, "it/s"), std::nullopt);
  EXPECT_EQ(Amount("1e308", kCount, "B"), std::nullopt);
}

TEST(Amount, TheTablesAreClosed) {
  EXPECT_EQ(FindFigure("speed"), nullptr);
  EXPECT_EQ(FindFigure("loss")->dimension, kPlain);
  EXPECT_EQ(FindUnit(kTime, "GB"), nullptr);
  EXPECT_EQ(FindUnit(kTime, ""), nullptr);
  for (const std::string& name : FigureNames()) {
    EXPECT_FALSE(UnitNames(FindFigure(name)->dimension).empty()) << name;
  }
}

}  // namespace
}  // namespace ridgeline::trainers
