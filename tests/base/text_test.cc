#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ridgeline {
namespace {

TEST(Text, BytesHaveThreeDigitsAndDecimalUnits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.00 kB");
  EXPECT_EQ(FormatBytes(1536), "1.54 kB");
  EXPECT_EQ(FormatBytes(15'500'000'000), "15.5 GB");
  EXPECT_EQ(FormatBytes(123'456'789), "123 MB");
  EXPECT_EQ(FormatBytes(2'000'000'000'000), "2.00 TB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<int64_t>::max()), "9223 PB");
}

TEST(Text, BytesNeverShowAThousandOfAUnit) {
  EXPECT_EQ(FormatBytes(999'499), "999 kB");
  EXPECT_EQ(FormatBytes(999'500), "1.00 MB");
  EXPECT_EQ(FormatBytes(999'999'999), "1.00 GB");
}

TEST(Text, BytesSavedMayBeNegative) {
  EXPECT_EQ(FormatBytes(-512), "-512 B");
  EXPECT_EQ(FormatBytes(-1'500'000), "-1.50 MB");
}

TEST(Text, DurationsUseTheUnitPeopleWould) {
  EXPECT_EQ(FormatDuration(0), "0.00 us");
  EXPECT_EQ(FormatDuration(1'500), "1.50 us");
  EXPECT_EQ(FormatDuration(850'000'000), "850 ms");
  EXPECT_EQ(FormatDuration(12'300'000'000), "12.3 s");
  EXPECT_EQ(FormatDuration(250'000'000'000), "4 min 10 s");
  EXPECT_EQ(FormatDuration(7'500'000'000'000), "2 h 05 min");
}

TEST(Text, DurationsRoundUpIntoTheNextUnit) {
  EXPECT_EQ(FormatDuration(999'900), "1.00 ms");
  EXPECT_EQ(FormatDuration(999'900'000), "1.00 s");
  EXPECT_EQ(FormatDuration(52'000'000'000), "52 s") << "whole seconds are counted, others measured";
  EXPECT_EQ(FormatDuration(52'010'000'000), "52.0 s");
  EXPECT_EQ(FormatDuration(59'980'000'000), "1 min 00 s");
  EXPECT_EQ(FormatDuration(3'599'900'000'000), "1 h 00 min");
}

TEST(Text, Counts) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(7), "7");
  EXPECT_EQ(FormatCount(0.25), "0.25");
  EXPECT_EQ(FormatCount(6020), "6.02K");
  EXPECT_EQ(FormatCount(1.24e9), "1.24B");
  EXPECT_EQ(FormatCount(999'999), "1.00M");
}

TEST(Text, UnixTimeIsUtc) {
  EXPECT_EQ(FormatUnixTime(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatUnixTime(1'769'949'005'999'999'999), "2026-02-01T12:30:05Z");
  EXPECT_EQ(FormatUnixTime(951'782'400'000'000'000), "2000-02-29T00:00:00Z");
}

const std::vector<std::string>& Keys() {
  static const std::vector<std::string> keys = {"batch_size", "checkpointing", "precision", "seq_length", "seed"};
  return keys;
}

TEST(Text, NearestFindsWhatWasMeant) {
  EXPECT_EQ(Nearest("batchsize", Keys()), "batch_size");
  EXPECT_EQ(Nearest("batch-size", Keys()), "batch_size");
  EXPECT_EQ(Nearest("checkpoint", Keys()), "checkpointing");
  EXPECT_EQ(Nearest("percision", Keys()), "precision");
  EXPECT_EQ(Nearest("sede", Keys()), "seed");
}

TEST(Text, NearestPrefersTheCloser) {
  EXPECT_EQ(Nearest("llama-25", {"llama-10m", "llama-25m", "gpt-25m"}), "llama-25m");
  EXPECT_EQ(Nearest("seed", Keys()), "seed");
}

TEST(Text, NearestIsSilentWhereNothingIsNear) {
  EXPECT_EQ(Nearest("zzzzzzzz", Keys()), "");
  EXPECT_EQ(Nearest("", Keys()), "");
  EXPECT_EQ(Nearest("x", {"y"}), "");
  EXPECT_EQ(Nearest("precision", {}), "");
}

TEST(Text, DidYouMeanIsASentenceOrNothing) {
  EXPECT_EQ(DidYouMean("batchsize", Keys()), ", did you mean 'batch_size'?");
  EXPECT_EQ(DidYouMean("zzzzzzzz", Keys()), "");
}

TEST(Text, Join) {
  EXPECT_EQ(Join({}, ", "), "");
  EXPECT_EQ(Join({"a"}, ", "), "a");
  EXPECT_EQ(Join({"a", "", "c"}, ", "), "a, , c");
}

TEST(Text, IsShortenedToBytesBetweenItsLetters) {
  EXPECT_EQ(ShortenToBytes("short", 5), "short");
  EXPECT_EQ(ShortenToBytes("longer", 5), "lo…");
  EXPECT_EQ(ShortenToBytes("ééé", 5), "é…");
  EXPECT_EQ(ShortenToBytes("aééé", 5), "a…") << "half a letter is none";
  EXPECT_EQ(ShortenToBytes("longer", 2), "…");
  EXPECT_EQ(ShortenToBytes(std::string(10, '\x80'), 6), "…") << "bytes that belong to no letter";
}

TEST(Text, ControlsAreShownAsEscapes) {
  const std::string hostile = std::string("\0\x07\x1b[2J\x7f\xff", 8) + "\xC2\x9B\xE2\x80\xAE\xE2\x81\xA9\xE2\x80\xA8é";
  EXPECT_EQ(PrintableLine(hostile + "\n\t\r\n"),
            "\\x00\\x07\\x1b[2J\\x7f\\xff\\u009b\\u202e\\u2069\\u2028é\\n\\t\\r\\n");
  EXPECT_EQ(PrintableText("two\nlines\r\nand\r\tmore"), "two\nlines\r\nand\\r\\tmore");
  EXPECT_EQ(EscapeControls("a\tb\nc\r", "\t"), "a\tb\\nc\\r");
  EXPECT_EQ(PrintableLine(PrintableLine(hostile)), PrintableLine(hostile));
  EXPECT_EQ(PrintableLine(""), "");
}

TEST(Text, IsShortenedByWhatIsSeenOfIt) {
  EXPECT_EQ(ShortenToCodePoints("abc", 3), "abc");
  EXPECT_EQ(ShortenToCodePoints("abcd", 3), "ab\xE2\x80\xA6");
  EXPECT_EQ(ShortenToCodePoints("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3), "\xC3\xA9\xC3\xA9\xE2\x80\xA6");
  EXPECT_EQ(ShortenToCodePoints("", 3), "");
}

}  // namespace
}  // namespace ridgeline
