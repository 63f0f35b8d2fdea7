// Text from a sweep or a result never leaves its place, in any format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "report/escape.h"
#include "report/report.h"
#include "report/rows.h"
#include "tests/report/sample.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using report_sample::ShippedReport;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string>& HostileTexts() {
  static const std::vector<std::string> texts = {
      "<script>alert(1)</script>",
      "</script><script>alert(1)</script>",
      "</title></desc><svg onload=alert(1)>",
      "<!-- ]]> --> <![CDATA[ &amp; &#0;",
      "\" onmouseover=\"alert(1)\" x=\"",
      "' onmouseover='alert(1)",
      "=cmd|' /C calc'!A0",
      "+1+1",
      "@SUM(A1)",
      "-2+3|x",
      "a|b\r\n| c | d |\n\n# heading",
      "[x](javascript:alert(1)) `code` **bold**",
      "\xff\xfe\x80 not UTF-8 \xed\xa0\x80",
      std::string("nul\0byte \x01\x1b[31m", 15),
      "\xE2\x80\xAE right to left \xE2\x81\xA6 override",
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
      "\xEF\xBF\xBE noncharacter",
      "{best.model} {} %s %n",
      std::string(10'000, 'x'),
      std::string(3'000, ' ') + "end",
      "\xE2\x80\xA8 line separator \xE2\x80\xA9 paragraph",
      "\x7f DEL \xC2\x9B"
      "2J C1 \xC2\x85 NEL",
      "\xE2\x80\xAA\xE2\x80\xAB\xE2\x80\xAC\xE2\x80\xAD\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA7\xE2\x81\xA8\xE2\x81\xA9 "
      "every override and isolate",
      "a line\rover another",
  };
  return texts;
}

// An answer of the shipped query in which every text from a sweep or a result is `text`.
Table Answer(const Report& report, const std::string& text) {
  Table table;
  const auto columns = [&] {
    std::vector<std::string> names = {"panel", "failure", "provenance", "emulated", "environment", "command"};
    names.insert(names.end(),
                 {"result", "none_result", "first_result", "all_steps_ns", "warmup_steps", "steps", "repeats"});
    for (const ReportColumn& column : report.columns) names.push_back(column.name);
    for (const ReportChart& chart : report.charts) names.insert(names.end(), {chart.label, chart.cluster});
    const std::function<void(const Sentence&)> add = [&](const Sentence& sentence) {
      for (const auto& [pick, row] : sentence.picks) {
        for (const auto& [column, texts] : row.where) names.push_back(column);
        names.insert(names.end(), {row.max, row.min});
      }
      for (const Sentence::Piece& piece : sentence.pieces) names.push_back(piece.column);
      for (const Sentence& other : sentence.otherwise) add(other);
    };
    for (const Sentence& sentence : report.conclusion) add(sentence);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  };
  table.columns = columns();
  for (int row = 0; row < 3; ++row) {
    auto& cells = table.rows.emplace_back();
    for (const std::string& name : table.columns) {
      const ReportColumn* column = FindColumn(report, name);
      const bool number = (column != nullptr && column->style != ValueStyle::kText) || name == "out_of_memory" ||
                          name == "is_first" || name == "compared_batch" || name == "first_batch" ||
                          name == "warmup_steps" || name == "steps" || name == "repeats";
      if (name == "failure" && row < 2) {
        cells.emplace_back();
      } else if (name == "outcome" && row < 2) {
        cells.emplace_back(std::string("ok"));
      } else if (name == "all_steps_ns") {
        cells.emplace_back(std::string("[5,5,4,6,5,5,4]"));
      } else if (name == "result") {
        cells.emplace_back(int64_t{row});
      } else if (name == "is_first") {
        cells.emplace_back(int64_t{0});
      } else if (name == "environment") {
        cells.emplace_back(DumpJson(Json{{text, text}}));
      } else if (number) {
        cells.emplace_back(int64_t{1} + row);
      } else {
        cells.emplace_back(text);
      }
    }
  }
  return table;
}

// RFC 4180, strictly. Every record must have as many fields as the first.
std::vector<std::vector<std::string>> ParseCsv(const std::string& csv) {
  std::vector<std::vector<std::string>> records;
  size_t i = 0;
  while (i < csv.size()) {
    auto& record = records.emplace_back();
    for (;;) {
      std::string field;
      if (csv[i] == '"') {
        for (++i; i < csv.size() && !(csv[i] == '"' && csv[i + 1] != '"'); ++i) {
          if (csv[i] == '"') ++i;
          field += csv[i];
        }
        ++i;
      } else {
        while (i < csv.size() && csv[i] != ',' && csv[i] != '\r') field += csv[i++];
        EXPECT_EQ(field.find_first_of("\"\n"), std::string::npos) << field;
      }
      record.push_back(field);
      if (csv[i] != ',') break;
      ++i;
    }
    EXPECT_EQ(csv.substr(i, 2), "\r\n");
    i += 2;
    EXPECT_EQ(record.size(), records.front().size());
  }
  return records;
}

class HostileTest : public testing::TestWithParam<size_t> {
 protected:
  const std::string& text() const { return HostileTexts()[GetParam()]; }
  std::string Rendered(ReportFormat format) const {
    return RenderRows(report_, Answer(report_, text()), {text(), format}).bytes;
  }
  Report report_ = ShippedReport();
};
INSTANTIATE_TEST_SUITE_P(Texts, HostileTest, testing::Range(size_t{0}, HostileTexts().size()));

TEST_P(HostileTest, HtmlKeepsItsShape) {
  const std::string html = Rendered(ReportFormat::kHtml);
  const Elements elements = ParseXml(html);  // fails on anything that is not well-formed
  const Elements harmless =
      ParseXml(RenderRows(report_, Answer(report_, "harmless"), {"x", ReportFormat::kHtml}).bytes);
  EXPECT_EQ(elements.Count("script"), 2U);
  EXPECT_EQ(elements.Count("style"), 1U);
  for (const char* name : {"tr", "td", "svg", "title", "p", "h2", "a", "rect"}) {
    EXPECT_EQ(elements.Count(name), harmless.Count(name)) << name;
  }
  for (const std::string& attribute : elements.attributes) {
    EXPECT_FALSE(attribute.starts_with("on")) << attribute;
  }
}

TEST_P(HostileTest, HtmlCarriesTheTextAsJson) {
  const std::string html = Rendered(ReportFormat::kHtml);
  const std::string open = "<script type=\"application/json\" id=\"ridgeline-rows\">";
  const size_t from = html.find(open) + open.size();
  const std::string inside = html.substr(from, html.find("</script>", from) - from);
  EXPECT_EQ(inside.find_first_of("<>&"), std::string::npos);
  const Json rows = ParseJson(inside, "the page's rows");
  EXPECT_EQ(rows["rows"][0]["model"], ValidUtf8(text()));
}

TEST_P(HostileTest, CsvKeepsEveryCellAndComputesNone) {
  const auto records = ParseCsv(Rendered(ReportFormat::kCsv));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0][1], "model");
  const bool formula = std::string("=+-@\t\r").find(text()[0]) != std::string::npos;
  EXPECT_EQ(records[1][1], (formula ? "'" : "") + EscapeControls(text(), "\n\t"));
}

TEST_P(HostileTest, MarkdownKeepsItsTables) {
  const std::string markdown = Rendered(ReportFormat::kMarkdown);
  EXPECT_THAT(markdown, Not(HasSubstr("<script")));
  EXPECT_THAT(markdown, Not(HasSubstr("<svg")));
  EXPECT_THAT(markdown, Not(HasSubstr("\n# heading")));
  const auto cells = [](std::string_view line) {
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\') {
        ++i;
      } else if (line[i] == '|') {
        ++bars;
      }
    }
    return bars;
  };
  size_t width = 0;
  size_t rows = 0;
  for (size_t from = 0; from < markdown.size();) {
    const size_t end = markdown.find('\n', from);
    const std::string_view line = std::string_view(markdown).substr(from, end - from);
    from = end + 1;
    if (line.starts_with('|')) {
      width = width == 0 ? cells(line) : width;
      EXPECT_EQ(cells(line), width) << line.substr(0, 200);
      ++rows;
    } else {
      width = 0;
    }
  }
  EXPECT_EQ(rows, 2U + 3U + 2U + 2U);  // the panel's table, and the environment's
}

TEST_P(HostileTest, JsonReadsBack) {
  const Json json = ParseJson(Rendered(ReportFormat::kJson), "json");
  EXPECT_EQ(json["rows"][2]["model"], ValidUtf8(text()));
  EXPECT_EQ(json["sweep"], ValidUtf8(text()));
}

// A report, a page or a file cannot control a terminal that shows it.
TEST_P(HostileTest, NoFormatHasAControl) {
  for (const ReportFormat format :
       {ReportFormat::kHtml, ReportFormat::kCsv, ReportFormat::kMarkdown, ReportFormat::kJson}) {
    const std::string bytes = Rendered(format);
    EXPECT_EQ(bytes, EscapeControls(bytes, "\n\t"));
  }
}

TEST_P(HostileTest, NothingGrowsWithoutBound) {
  // A text of 10,000 characters is complete in titles and in the data, and appears a few hundred times at most.
  EXPECT_LT(Rendered(ReportFormat::kHtml).size(), 5'000'000U);
}

TEST(Escape, HtmlText) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeHtml("a\nb\tc\r\nd"), "a&#10;b&#9;c&#10;d");
  EXPECT_EQ(EscapeHtml("\xE2\x80\xAE\xff\x01\r\xEF\xBF\xBE"), "\\u202e\\xff\\x01\\r\\ufffe");
  EXPECT_EQ(EscapeHtml("\xE6\xBC\xA2 \xC3\xA9"), "\xE6\xBC\xA2 \xC3\xA9");
}

TEST(Escape, ScriptJsonCannotEndItsElement) {
  const std::string text = ScriptJson({{"a", "</script><!--&"}});
  EXPECT_EQ(text, "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\"}");
  EXPECT_EQ(ParseJson(text, "t")["a"], "</script><!--&");
}

}  // namespace
}  // namespace ridgeline::report
