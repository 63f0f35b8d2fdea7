// report.yaml and query.sql: what a folder must contain, and the messages if it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "report/report.h"
#include "report/rows.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using testing::HasSubstr;

class LoadTest : public testing::Test {
 protected:
  Report Load(const std::string& yaml, const std::string& sql = "SELECT 1") {
    WriteFileAtomic(dir_ / "report.yaml", yaml);
    WriteFileAtomic(dir_ / "query.sql", sql);
    return LoadReportFolder(dir_.path());
  }

  // The message of the error that loading throws.
  std::string Refusal(const std::string& yaml) {
    try {
      Load(yaml);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    ADD_FAILURE() << "loaded: " << yaml;
    return {};
  }

  TempDir dir_;
  const std::string head_ = "version: 1\ntitle: T\ncolumns:\n  - {name: panel, label: P}\n";
};

TEST_F(LoadTest, ReadsTheReportThatShips) {
  const Report report = report_sample::ShippedReport();
  EXPECT_EQ(report.name, "activation-checkpointing");
  EXPECT_EQ(report.charts.size(), 4U);
  EXPECT_THAT(report.sql, HasSubstr("FROM runs"));
  for (const ReportColumn& column : report.columns) {
    const bool bytes = column.style == ValueStyle::kBytes;
    EXPECT_EQ(bytes, column.name.ends_with("_bytes")) << column.name << ": units stand in names";
    if (column.style == ValueStyle::kDuration) {
      EXPECT_TRUE(column.name.ends_with("_ns")) << column.name;
    }
  }
}

TEST_F(LoadTest, ReadsEveryPart) {
  const Report report = Load(head_ +
                             "  - {name: a_bytes, label: A, group: G, unit: u, help: H, style: bytes, hide: empty}\n"
                             "charts:\n"
                             "  - id: c-1\n    title: C\n    note: N\n    axis: x\n    style: bytes\n    label: panel\n"
                             "    cluster: panel\n    wanted: a_bytes\n    bars:\n"
                             "      - {label: one, column: a_bytes, light: true}\n"
                             "      - {label: two, stack: [{label: p, column: a_bytes}]}\n"
                             "conclusion:\n"
                             "  - {picks: {x: {where: {panel: [a, 1]}, max: a_bytes}}, text: 'It is {x.a_bytes}!'}\n"
                             "notes: [first, second]\n");
  ASSERT_EQ(report.columns.size(), 2U);
  EXPECT_EQ(report.columns[1].style, ValueStyle::kBytes);
  EXPECT_EQ(report.columns[1].hide, ReportColumn::Hide::kEmpty);
  ASSERT_EQ(report.charts.size(), 1U);
  EXPECT_TRUE(report.charts[0].as<ChartBars>().bars[0].light);
  EXPECT_EQ(report.charts[0].as<ChartBars>().bars[1].stack[0].label, "p");
  const Sentence& sentence = report.conclusion.at(0);
  EXPECT_EQ(sentence.picks.at("x").where.at("panel"), (std::vector<std::string>{"a", "1"}));
  ASSERT_EQ(sentence.pieces.size(), 2U);
  EXPECT_EQ(sentence.pieces[0].words, "It is ");
  EXPECT_EQ(sentence.pieces[0].column, "a_bytes");
  EXPECT_EQ(sentence.pieces[1].words, "!");
  EXPECT_EQ(report.notes.size(), 2U);
}

TEST_F(LoadTest, ReadsLinesAndASummary) {
  const Report report =
      Load(head_ +
           "  - {name: curve, label: C, style: series}\n"
           "charts:\n"
           "  - {id: a, title: A, label: panel, lines: {by: panel, series: curve}}\n"
           "  - {id: b, title: B, label: panel, lines: {by: panel, series: curve, points: 7, scale: log}}\n"
           "  - {id: c, title: C, label: panel, lines: {by: panel, x: panel, y: curve, x_scale: log}}\n"
           "summary: {by: panel, columns: [panel]}\n");
  ASSERT_EQ(report.charts.size(), 3U);
  EXPECT_EQ(report.charts[0].as<ChartLines>().series, "curve");
  EXPECT_EQ(report.charts[0].as<ChartLines>().points, 400);
  EXPECT_FALSE(report.charts[0].as<ChartLines>().log);
  EXPECT_EQ(report.charts[1].as<ChartLines>().points, 7);
  EXPECT_TRUE(report.charts[1].as<ChartLines>().log);
  EXPECT_EQ(report.charts[2].as<ChartLines>().x, "panel");
  EXPECT_EQ(report.charts[2].as<ChartLines>().y, "curve");
  EXPECT_TRUE(report.charts[2].as<ChartLines>().log_x);
  EXPECT_FALSE(report.charts[2].as<ChartLines>().log);
  EXPECT_EQ(report.summary->by, "panel");
  EXPECT_EQ(report.summary->columns, std::vector<std::string>{"panel"});
}

TEST_F(LoadTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Refusal("title: [\n"), HasSubstr("report.yaml:2:1: not YAML"));
  EXPECT_THAT(Refusal("title: a\ntitle: b\n"), HasSubstr("report.yaml:2:1: 'title' is given twice"));
  EXPECT_THAT(Refusal("- a\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(Refusal("title: T\ncolumns: []\n"), HasSubstr("'version' is missing"));
  EXPECT_THAT(Refusal("version: 2\ntitle: T\ncolumns: []\n"), HasSubstr("version 2, but this program reads 1"));
  EXPECT_THAT(Refusal("version: 1\ncolumns: []\n"), HasSubstr("'title' is missing"));
  EXPECT_THAT(Refusal("version: 1\ntitle: 5\ncolumns: []\n"), HasSubstr("'title' must be text"));
  EXPECT_THAT(Refusal("version: 1\ntitle: T\ncolumns: {}\n"), HasSubstr("'columns' must be a list"));
  EXPECT_THAT(Refusal(head_ + "chart: []\n"), HasSubstr("unknown key 'chart', did you mean 'charts'?"));
  EXPECT_THAT(Refusal(head_ + "  - {name: a}\n"), HasSubstr("report.yaml:5:5: 'label' is missing"));
  EXPECT_THAT(Refusal(head_ + "  - {name: panel, label: Q}\n"),
              HasSubstr("report.yaml:5:5: the column 'panel' is given twice"));
  EXPECT_THAT(Refusal(head_ + "  - {name: a, label: A, style: byte}\n"),
              HasSubstr("unknown style 'byte', did you mean 'bytes'?"));
  const std::string chart = head_ + "charts:\n  - {id: c, title: C, label: panel, ";
  EXPECT_THAT(Refusal(chart + "bars: []}\n"),
              HasSubstr("report.yaml:6:5: a chart has 'bars', 'lines', 'intervals', 'cells' or 'scatter'"));
  EXPECT_THAT(Refusal(chart + "bars: [{label: x, column: y}], lines: {by: a, series: b}}\n"),
              HasSubstr("report.yaml:6:5: a chart has 'bars', 'lines', 'intervals', 'cells' or 'scatter'"));
  EXPECT_THAT(Refusal(chart + "intervals: {value: a, at: one}}\n"), HasSubstr("'at' is a number"));
  EXPECT_THAT(Refusal(chart + "cells: {x: a, y: b}}\n"), HasSubstr("'value' is missing"));
  EXPECT_THAT(Refusal(chart + "lines: {by: a, series: b, points: 0}}\n"),
              HasSubstr("'points' must be an integer between 1 and 100000"));
  EXPECT_THAT(Refusal(chart + "lines: {by: a, series: b, scale: lg}}\n"), HasSubstr("there are linear, log"));
  EXPECT_THAT(Refusal(head_ + "summary: {by: panel, columns: [panl]}\n"),
              HasSubstr("summary: there is no column 'panl'"));
  for (const char* lines : {"", ", x: b", ", y: b", ", series: b, x: c, y: d"}) {
    EXPECT_THAT(Refusal(chart + "lines: {by: a" + lines + "}}\n"),
                HasSubstr("report.yaml:6:44: lines have a 'series', over steps, or a column 'x' and a column 'y'"));
  }
  EXPECT_THAT(Refusal(chart + "bars: [{label: x}]}\n"),
              HasSubstr("report.yaml:6:44: a bar has a 'column' or a 'stack'"));
  EXPECT_THAT(Refusal(head_ + "charts:\n  - {id: 'a b', title: C, label: panel, bars: [{label: x, column: y}]}\n"),
              HasSubstr("'id' may hold"));
  EXPECT_THAT(Refusal(head_ + "  - {name: a, label: A, steps_of: [r, s, t]}\n"),
              HasSubstr("'steps_of' names one column with results, or two"));
  EXPECT_THAT(Refusal(head_ + "  - {name: a, label: A, steps_of: [1]}\n"), HasSubstr("a list of columns' names"));
  EXPECT_THAT(Refusal(head_ + "  - {name: a, label: A, steps_of: [r]}\n  - {name: a_low, label: B}\n"),
              HasSubstr("the column 'a_low' is given twice"));
  EXPECT_THAT(Refusal(head_ + "conclusion:\n  - {text: t, else: [{text: '{x.a}'}]}\n"),
              HasSubstr("report.yaml:6:22: 'text' has '{x.a"));
  const std::string sentence = head_ + "conclusion:\n  - {picks: {x: {}}, text: '";
  for (const char* text : {"{y.a}", "{x}", "{x.a", "}{x.", "{"}) {
    EXPECT_THAT(Refusal(sentence + text + "'}\n"), HasSubstr("report.yaml:6:5: 'text' has")) << text;
  }
  EXPECT_THAT(Refusal(head_ + "conclusion:\n  - {picks: {x: {min: a, max: b}}, text: t}\n"),
              HasSubstr("'max' or 'min', not both"));
}

TEST_F(LoadTest, EveryFaultIsReportedAtItsPlace) {
  const std::string file = (dir_ / "report.yaml").string();
  EXPECT_EQ(Refusal("version: 1\n"
                    "title: [T]\n"
                    "columns:\n"
                    "  - {name: panel, label: P, style: byte, key: 1}\n"
                    "  - panel\n"
                    "  - {name: panel, label: 2, label: Q}\n"
                    "charts:\n"
                    "  - {id: c, title: C, label: panel, bars: [{label: x, stack: [{label: y}]}, {}]}\n"
                    "notes: [a, 1]\n"
                    "conclusion:\n"
                    "  - {picks: {x: {where: {a: [1, [2]]}}}, text: t}\n"
                    "  - {text: '{x.a}'}\n"
                    "sumary: {}\n"),
            file + ":2:8: 'title' must be text\n" +  //
                file +
                ":4:36: unknown style 'byte', did you mean 'bytes'?; there are text, integer, count, bytes, "
                "duration, fraction, percent, signed_percent, factor, flag, number, series, log\n" +
                file + ":4:47: 'key' must be true or false\n" +                          //
                file + ":5:5: this must be a mapping, not \"panel\"\n" +                 //
                file + ":6:5: the column 'panel' is given twice\n" +                     //
                file + ":6:26: 'label' must be text\n" +                                 //
                file + ":6:29: 'label' is given twice\n" +                               //
                file + ":8:63: 'column' is missing\n" +                                  //
                file + ":8:77: 'label' is missing\n" +                                   //
                file + ":9:12: 'notes' must be a list of texts\n" +                      //
                file + ":11:33: 'where' gives a column a value or a list of values\n" +  //
                file + ":12:5: 'text' has '{x.a', but a figure is {pick.column} with one of the sentence's picks\n" +
                file + ":13:1: unknown key 'sumary', did you mean 'summary'?");
  EXPECT_EQ(Refusal("version: 2\ntitel: T\n"), file + ":1:10: version 2, but this program reads 1")
      << "nothing else is known of another version's file";
}

TEST_F(LoadTest, AQueryThatLacksAColumnIsNamed) {
  const Report report = Load(head_ + "  - {name: steady, label: S}\n");
  try {
    RenderRows(report, {{"panel", "failure", "provenance", "emulated", "environment", "command", "stedy"}, {}}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("shows the column 'steady', which its query.sql does not give"));
    EXPECT_THAT(e.message(), HasSubstr("did you mean 'stedy'?"));
  }
}

class FindTest : public LoadTest {
 protected:
  void SetUp() override {
    ::setenv("RIDGELINE_HOME", (dir_ / "installed").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", (dir_ / "config").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("RIDGELINE_HOME");
    ::unsetenv("XDG_CONFIG_HOME");
  }

  std::filesystem::path Put(const std::filesystem::path& folder, const std::string& title = "T") {
    MakeDirs(dir_ / folder);
    WriteFileAtomic(dir_ / folder / "report.yaml",
                    "version: 1\ntitle: " + title + "\ncolumns:\n  - {name: panel, label: P}\n");
    WriteFileAtomic(dir_ / folder / "query.sql", "SELECT 1");
    return dir_ / folder;
  }
};

TEST_F(FindTest, ReportsAreFoundByNameAndNothingElseIs) {
  const auto one = Put("installed/reports/one");
  MakeDirs(dir_ / "installed/reports/not-a-report");
  Put("installed/outside");
  EXPECT_EQ(LoadReport("one", ReportFolders({})).name, "one");
  EXPECT_EQ(FindReports(ReportFolders({})), std::vector<std::filesystem::path>{one});
  for (const char* name : {"oen", "", "..", ".", "../outside", "one/../one", "/etc", "not-a-report"}) {
    try {
      LoadReport(name, ReportFolders({}));
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.hint(), HasSubstr("the reports are one; they are looked for in " + (dir_ / "config").string()));
    }
  }
}

TEST_F(FindTest, TheNearestFolderHasTheReportOfAName) {
  Put("installed/reports/one", "Installed");
  Put("installed/reports/two", "Installed");
  Put("installed/reports/three", "Installed");
  const auto two = Put("config/ridgeline/reports/two", "Configured");
  Put("config/ridgeline/reports/three", "Configured");
  const auto three = Put("own/three", "Own");
  const auto folders = ReportFolders({dir_ / "own", dir_ / "not-there"});
  EXPECT_EQ(LoadReport("one", folders).title, "Installed");
  EXPECT_EQ(LoadReport("two", folders).title, "Configured");
  EXPECT_EQ(LoadReport("three", folders).title, "Own");
  EXPECT_EQ(FindReports(folders), (std::vector<std::filesystem::path>{dir_ / "installed/reports/one", three, two}));
}

TEST_F(FindTest, AFolderOfOnesOwnIsEnough) {
  ::unsetenv("RIDGELINE_HOME");  // and nothing is installed beside this program
  const auto folders = ReportFolders({dir_ / "own"});
  try {
    LoadReport("mine", folders);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "there is no report 'mine'\n  there are none; they are looked for in " +
                                         (dir_ / "own").string() + ", " + (dir_ / "config/ridgeline/reports").string());
  }
  Put("own/mine", "Own");
  EXPECT_EQ(LoadReport("mine", folders).title, "Own");
}

TEST_F(FindTest, TheUsersConfigurationIsInTheHomeFolderWhereNothingElseIsSaid) {
  MakeDirs(dir_ / "installed/reports");
  ::unsetenv("XDG_CONFIG_HOME");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", dir_.path().c_str(), 1);
  const auto mine = Put(".config/ridgeline/reports/mine");
  EXPECT_EQ(FindReports(ReportFolders({})), std::vector<std::filesystem::path>{mine});
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace ridgeline::report
