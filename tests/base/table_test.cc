#include "base/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

Table Sample() {
  return {{"model", "batch_size", "steady_tokens_per_s"},
          {{std::string("llama-25m"), int64_t{1}, 1234.5}, {std::string("gpt"), int64_t{16}, Cell{}}}};
}

Table One(Cell cell) { return {{"value"}, {{std::move(cell)}}}; }

TEST(Table, CellTextIsPlain) {
  EXPECT_EQ(CellText(Cell{}), "");
  EXPECT_EQ(CellText(int64_t{15500000000}), "15500000000");
  EXPECT_EQ(CellText(0.1), "0.1");
  EXPECT_EQ(CellText(1e300), "1e+300");
  EXPECT_EQ(CellText(std::string("a\nb")), "a\nb");
}

TEST(Table, TextAlignsNumbersRightAndWordsLeft) {
  EXPECT_EQ(ToText(Sample()),
            "model      batch_size  steady_tokens_per_s\n"
            "llama-25m           1               1234.5\n"
            "gpt                16\n");
}

TEST(Table, TextCountsCodePointsNotBytes) {
  EXPECT_EQ(ToText({{"a", "b"}, {{std::string("né"), std::string("x")}, {std::string("abc"), std::string("y")}}}),
            "a    b\nné   x\nabc  y\n");
}

TEST(Table, TextShowsWhatATerminalWouldObey) {
  const std::string hostile = std::string("\x1b[2J\x07\n\t\r\x9b\xff\0", 11) + "\xC2\x9B\xE2\x80\xAE|";
  const std::string text = ToText(One(hostile));
  EXPECT_EQ(text, "value\n\\x1b[2J\\x07\\n\\t\\r\\x9b\\xff\\x00\\u009b\\u202e|\n");
}

TEST(Table, MarkdownIsAGithubTable) {
  EXPECT_EQ(ToMarkdown(Sample()),
            "| model | batch_size | steady_tokens_per_s |\n"
            "| --- | ---: | ---: |\n"
            "| llama-25m | 1 | 1234.5 |\n"
            "| gpt | 16 |  |\n");
}

std::string Markdown(const std::string& text) {
  const std::string table = ToMarkdown(One(text));
  const size_t row = table.rfind('\n', table.size() - 2) + 1;
  return table.substr(row + 2, table.size() - row - 5);
}

TEST(Table, MarkdownKeepsACellInItsCell) {
  EXPECT_EQ(Markdown("a|b\r\nc\nd\\|"), "a\\|b<br>c<br>d\\\\\\|");
  EXPECT_EQ(Markdown("<script>&"), "&lt;script&gt;&amp;");
  EXPECT_EQ(Markdown("[x](y) [x]\r(y) ![x][y] [x]: y [^1]: z"), "[x\\](y) [x]\\r(y) ![x\\][y] [x\\]: y [^1\\]: z");
  EXPECT_EQ(Markdown("`a` *b* ~c~ $d$ _e_ *f"), "\\`a\\` \\*b\\* \\~c\\~ \\$d\\$ \\_e\\_ \\*f");
  EXPECT_EQ(Markdown("*a"), "\\*a");
  EXPECT_EQ(Markdown("\\* \\<b> \\\n\\"), "\\\\* \\\\&lt;b&gt; \\\\<br>\\\\");
  EXPECT_EQ(Markdown("\xff\x01\t\x1b[31m\x7f\xC2\x9B\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\xA8"),
            "\\xff\\x01 \\x1b[31m\\x7f\\u009b\\u202e\\u2066\\u2028");
  EXPECT_THAT(ToMarkdown({{"a|b"}, {}}), HasSubstr("| a\\|b |\n"));
}

// People read the file itself, too.
TEST(Table, MarkdownEscapesNothingThatIsPlainText) {
  for (const char* text : {"batch_size", "[1, 2]", "~/.cache", "$HOME/x", "4 * 8 * 2", "1..64*2", "C:\\folder", "5'",
                           "a_", "2 cores (of 4)", "#3", "it's `half"}) {
    EXPECT_EQ(Markdown(text), text);
  }
}

TEST(Table, CsvFollowsRfc4180) {
  EXPECT_EQ(ToCsv(Sample()), "model,batch_size,steady_tokens_per_s\r\nllama-25m,1,1234.5\r\ngpt,16,\r\n");
  EXPECT_EQ(ToCsv(One(std::string("a,\"b\"\r\nc"))), "value\r\n\"a,\"\"b\"\"\r\nc\"\r\n");
  EXPECT_EQ(ToCsv({{"a,b", "c"}, {}}), "\"a,b\",c\r\n");
}

TEST(Table, CsvKeepsARecordWithoutAnyValue) { EXPECT_EQ(ToCsv(One(Cell{})), "value\r\n\"\"\r\n"); }

TEST(Table, CsvTextIsNeverAFormula) {
  for (const std::string first : {"=", "+", "-", "@", "\t", "\n", "\r\n", "＝", "＋", "－", "＠"}) {
    const std::string csv = ToCsv(One(first + "cmd|' /C calc'!A0"));
    EXPECT_THAT(csv, HasSubstr("'" + first + "cmd")) << first;
  }
  EXPECT_EQ(ToCsv({{"=1+1"}, {}}), "'=1+1\r\n");
}

TEST(Table, CsvLeavesNumbersAlone) { EXPECT_EQ(ToCsv({{"a", "b"}, {{int64_t{-5}, -0.25}}}), "a,b\r\n-5,-0.25\r\n"); }

TEST(Table, CsvShowsControlsButLineEndsAndTabs) {
  EXPECT_EQ(ToCsv(One(std::string("a\xff\x1b[31m\x7f\xC2\x9B\xE2\x80\xAE\tb"))),
            "value\r\na\\xff\\x1b[31m\\x7f\\u009b\\u202e\tb\r\n");
  EXPECT_EQ(ToCsv(One(std::string("a\rb\r\nc\nd"))), "value\r\n\"a\\rb\r\nc\nd\"\r\n");
  EXPECT_EQ(ToCsv(One(std::string("\r=1+1"))), "value\r\n\\r=1+1\r\n");
}

TEST(Table, JsonKeepsTheOrderOfTheColumns) {
  EXPECT_EQ(ToJsonLines(Sample()),
            "{\"model\":\"llama-25m\",\"batch_size\":1,\"steady_tokens_per_s\":1234.5}\n"
            "{\"model\":\"gpt\",\"batch_size\":16,\"steady_tokens_per_s\":null}\n");
}

TEST(Table, JsonReadsBack) {
  const Json json = ParseJson(ToJson(Sample()), "test");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["steady_tokens_per_s"], 1234.5);
  EXPECT_TRUE(json[1]["steady_tokens_per_s"].is_null());
  EXPECT_EQ(ParseJson(ToJson({{"a"}, {}}), "test"), Json::array());
}

TEST(Table, JsonInAColumnOfJsonIsWrittenAsItIs) {
  const Table table{{"a", "b"}, {{std::string("[1,null]"), std::string("[1,null]")}, {Cell{}, int64_t{2}}}};
  const Json json = ParseJson(ToJson(table, {"a"}), "test");
  EXPECT_EQ(json[0]["a"], Json::array({1, nullptr}));
  EXPECT_EQ(json[0]["b"], "[1,null]");
  EXPECT_TRUE(json[1]["a"].is_null());
}

TEST(Table, JsonSurvivesAnyText) {
  const Json json = ParseJson(ToJson(One(std::string("\"\\\n\xff\x01"))), "test");
  EXPECT_EQ(json[0]["value"], "\"\\\n\xEF\xBF\xBD\x01");
  // Characters that a terminal would obey are written as JSON escapes, and read back unchanged.
  const std::string obeyed = "\x7f\xC2\x9B\xE2\x80\xAE\xE2\x81\xA6 é 漢 😀";
  EXPECT_EQ(ToJsonLines(One(obeyed)), "{\"value\":\"\\u007f\\u009b\\u202e\\u2066 é 漢 😀\"}\n");
  EXPECT_EQ(ParseJson(ToJsonLines(One(obeyed)), "test")["value"], obeyed);
}

TEST(Table, JsonHasNoNumberForWhatIsNotFinite) {
  EXPECT_EQ(ToJsonLines(One(NAN)), "{\"value\":null}\n");
  EXPECT_EQ(ToJsonLines(One(-std::numeric_limits<double>::infinity())), "{\"value\":null}\n");
}

TEST(Table, AShortRowHasNoValuesAtItsEnd) {
  const Table table{{"a", "b"}, {{int64_t{1}}}};
  EXPECT_EQ(ToCsv(table), "a,b\r\n1,\r\n");
  EXPECT_EQ(ToJsonLines(table), "{\"a\":1,\"b\":null}\n");
}

TEST(Table, FormatNamesItsFormats) {
  EXPECT_EQ(Format(Sample(), "text"), ToText(Sample()));
  EXPECT_EQ(Format(Sample(), "md"), ToMarkdown(Sample()));
  EXPECT_EQ(Format(Sample(), "json"), ToJson(Sample()));
  EXPECT_EQ(Format(Sample(), "jsonl"), ToJsonLines(Sample()));
  EXPECT_EQ(Format(Sample(), "csv"), ToCsv(Sample()));
  try {
    Format(Sample(), "jsonk");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("'json"));
    EXPECT_THAT(e.hint(), HasSubstr("text, md, json, jsonl and csv"));
  }
}

TEST(Utf8, BadBytesAreReplacedOneByOne) {
  EXPECT_EQ(ValidUtf8("plain é 漢 😀"), "plain é 漢 😀");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(ValidUtf8("\x80"), bad);
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), bad + bad);                      // overlong
  EXPECT_EQ(ValidUtf8("\xE0\x80\x80"), bad + bad + bad);            // overlong
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // past the end
  EXPECT_EQ(ValidUtf8("a\xE6\xBC"), "a" + bad + bad);               // cut short
  EXPECT_EQ(ValidUtf8("\xF5z"), bad + "z");
}

TEST(Utf8, ControlsAreWhatIsObeyed) {
  for (const char32_t code : {U'\0', U'\x1b', U'\x7f', U'\x9b', U'\u200f', U'\u202e', U'\u2066', kBadCodePoint}) {
    EXPECT_TRUE(IsControl(code)) << static_cast<uint32_t>(code);
  }
  for (const char32_t code : {U' ', U'a', U'\u00a0', U'é', U'漢', U'\U0001F600'}) {
    EXPECT_FALSE(IsControl(code)) << static_cast<uint32_t>(code);
  }
}

TEST(Table, RowsThatGetAColumnTakeNoMoreMemoryThanTheirCells) {
  Table table{{"a", "b"}, {{int64_t{1}, 2.5}, {int64_t{3}}}};
  EXPECT_EQ(AddColumns(table, {"c", "d"}), 2U);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b", "c", "d"}));
  for (const std::vector<Cell>& row : table.rows) {
    ASSERT_EQ(row.size(), 4U);
    EXPECT_EQ(row.capacity(), 4U);
    EXPECT_EQ(row[3], Cell());
  }
}

}  // namespace
}  // namespace ridgeline
