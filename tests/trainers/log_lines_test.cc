// Logs of any length and any bytes, as lines.
#include "trainers/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Lines = std::vector<std::pair<int64_t, std::string>>;

Lines LinesOf(const std::vector<std::string>& parts) {
  Lines found;
  LogLines lines([&](int64_t number, std::string_view line) { found.emplace_back(number, line); });
  for (const std::string& part : parts) lines.Feed(part);
  lines.End();
  return found;
}

TEST(LogLines, EndWithAnyLineEnd) {
  EXPECT_THAT(LinesOf({"a\nb\r\n\nc"}), ElementsAre(Pair(1, "a"), Pair(2, "b"), Pair(4, "c")));
  EXPECT_THAT(LinesOf({"0%\r50%\r100%\nend\n"}),
              ElementsAre(Pair(1, "0%"), Pair(1, "50%"), Pair(1, "100%"), Pair(2, "end")));
}

TEST(LogLines, AreTheSameInAnyParts) {
  const std::string log = "one\r\ntwo\rthree\n\n\x1b[31mfour\x1b[0m\n";
  std::vector<std::string> bytes;
  for (const char c : log) bytes.emplace_back(1, c);
  EXPECT_EQ(LinesOf(bytes), LinesOf({log}));
  EXPECT_THAT(LinesOf({log}), ElementsAre(Pair(1, "one"), Pair(2, "two"), Pair(2, "three"), Pair(4, "four")));
}

TEST(LogLines, HaveNothingThatCommandsATerminal) {
  EXPECT_EQ(LinesOf({"\x1b[1;31mloss\x1b[0m: 2\x1b]0;title\x07.\x1b]8;;x\x1b\\5\x1b(B"}).at(0).second, "loss: 2.5");
  EXPECT_EQ(LinesOf({std::string("a\0b\x7f\x08\tc", 7)}).at(0).second, "ab\tc");
  EXPECT_EQ(LinesOf({"a\xff"
                     "b \xc3\xa9"})
                .at(0)
                .second,
            "a\xEF\xBF\xBD"
            "b \xc3\xa9");
  EXPECT_EQ(LinesOf({"a\x1b[31"}).at(0).second, "a");
  EXPECT_EQ(LinesOf({"a\x1b"}).at(0).second, "a");
  EXPECT_EQ(LinesOf({"a\x1b]title"}).at(0).second, "a");
}

TEST(LogLines, AreCut) {
  const auto lines = LinesOf({std::string(kMaxLogLineBytes, 'a'), std::string(1000, 'b') + "\nnext"});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].second, std::string(kMaxLogLineBytes, 'a'));
  EXPECT_EQ(lines[1], (std::pair<int64_t, std::string>(2, "next")));
}

TEST(LogLines, KnowWhereTheyEndAndWhetherTheyAreWhole) {
  std::vector<std::pair<int64_t, bool>> ends;
  LogLines* now = nullptr;
  LogLines lines([&](int64_t, std::string_view) { ends.emplace_back(now->end(), now->is_cut()); });
  now = &lines;
  for (const std::string& part : {std::string("ab"), std::string("c\r\nd\r"),
                                  std::string("\n\n") + std::string(kMaxLogLineBytes + 1, 'x') + "\nlast"}) {
    lines.Feed(part);
  }
  lines.End();
  const auto long_end = static_cast<int64_t>(9 + kMaxLogLineBytes + 1);
  EXPECT_THAT(ends, ElementsAre(Pair(3, false), Pair(6, false), Pair(long_end, true), Pair(long_end + 5, true)));
}

TEST(LogLines, AreCounted) {
  const auto count = [](std::string_view log) {
    LogLines lines([](int64_t, std::string_view) {});
    lines.Feed(log);
    lines.End();
    return lines.lines();
  };
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("a\nb\n"), 2);
  EXPECT_EQ(count("a\nb"), 2);
}

}  // namespace
}  // namespace ridgeline::trainers
