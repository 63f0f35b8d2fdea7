#include "regress/gate_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "regress/verdict.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::regress {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using enum GateAnswer;
using enum GateMetric;

// Text that would control a terminal, a page, a shell or a form that used it unescaped.
const std::string kHostile = "a<b>&\"'|`\n::error::no\x1b[31m @team #1 \\ % ]]> \xff";

std::vector<std::string> LinesOfForm(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

GateFinding FindingOf(GateAnswer answer, GateMetric metric, const std::string& point) {
  GateFinding finding;
  finding.answer = answer;
  finding.metric = metric;
  finding.point = point;
  finding.base = metric == kStepTime ? 1e8 : 1e9;
  finding.head = *finding.base * 1.031;
  finding.change = 0.031;
  finding.detectable = 0.025;
  finding.base_runs = 20;
  finding.head_runs = 3;
  return finding;
}

Gate ExampleGate(const std::string& point = "batch_size=1") {
  Gate gate;
  gate.head = "night-22";
  gate.baseline = "night-*";
  gate.findings = {FindingOf(kRegressed, kStepTime, point), FindingOf(kMissing, kResult, point),
                   FindingOf(kInconclusive, kStepTime, point), FindingOf(kPass, kPeakMemory, point),
                   FindingOf(kPass, kStepTime, point)};
  gate.findings[0].words = "slower in both rounds";
  gate.findings[0].low = 0.028;
  gate.findings[0].high = 0.034;
  gate.findings[1] = {};
  gate.findings[1].answer = kMissing;
  gate.findings[1].point = point;
  gate.findings[1].words = "no result in head";
  gate.findings[2].words = "a suspect";
  gate.findings[2].further_runs = 24;
  for (GateFinding& finding : gate.findings) finding.point_id = "1a2b";
  Conclude(gate);
  return gate;
}

// 10,000 cells, with names that every form must escape.
Gate HugeGate() {
  Gate gate;
  gate.head = "night-22";
  gate.baseline = "night-*";
  constexpr int kCells = 10'000;
  for (int i = 0; i < kCells; ++i) {
    const std::string point = "batch_size=" + std::to_string(i) + ", " + kHostile;
    const GateAnswer answer = i % 100 == 0   ? kRegressed
                              : i % 100 == 1 ? kInconclusive
                              : i % 100 == 2 ? kMissing
                                             : kPass;
    gate.findings.push_back(FindingOf(answer, kStepTime, point));
    gate.findings.back().words = answer == kPass ? "" : std::string(500, 'w');
    gate.findings.push_back(FindingOf(kPass, kPeakMemory, point));
  }
  Conclude(gate);
  return gate;
}

TEST(GateText, SaysWhatIsWorstAndWhatAPassWouldHaveSeen) {
  const std::string text = GateText(ExampleGate());
  EXPECT_THAT(text, StartsWith("answer "));
  EXPECT_THAT(
      text, ContainsRegex("REGRESSED +batch_size=1 +step time +100 ms +103 ms +\\+3\\.1 % \\(\\+2\\.8 to \\+3\\.4\\) +"
                          "\\+2\\.5 % +slower in both rounds"));
  EXPECT_THAT(text, ContainsRegex("PASS +batch_size=1 +peak memory +1\\.00 GB +1\\.03 GB"));
  EXPECT_THAT(text, HasSubstr("a suspect; 24 more runs would decide"));
  EXPECT_THAT(text, HasSubstr("\nREGRESSED: 1 regressed, 1 missing, 1 inconclusive, 2 pass; of what passes, a slowdown "
                              "of 2.5 % would have been seen everywhere, in 80 of 100 cases\n"));
  EXPECT_THAT(GateText(ExampleGate(kHostile)), Not(HasSubstr("\x1b")));
  Gate gate = ExampleGate();
  gate.findings[2].further_runs = kMostRuns;
  EXPECT_THAT(GateText(gate), HasSubstr("a suspect; 1000 more runs, or yet more, would decide"));
}

TEST(GateJson, HasEveryFigure) {
  Gate gate = ExampleGate(kHostile);
  gate.findings[0].high = std::numeric_limits<double>::infinity();
  gate.findings[0].effective_steps = 12.5;
  gate.findings[0].warm_up_steps = 4;
  const Json json = ParseJson(GateJson(gate), "the gate");
  EXPECT_EQ(json.at("answer"), "REGRESSED");
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("baseline"), "night-*");
  ASSERT_EQ(json.at("findings").size(), 5U);
  const Json& first = json.at("findings")[0];
  EXPECT_EQ(first.at("metric"), "step time");
  EXPECT_DOUBLE_EQ(first.at("base_step_ns").get<double>(), 1e8);
  EXPECT_DOUBLE_EQ(first.at("change").get<double>(), 0.031);
  EXPECT_DOUBLE_EQ(first.at("change_low").get<double>(), 0.028);
  EXPECT_TRUE(first.at("change_high").is_null());
  EXPECT_DOUBLE_EQ(first.at("head_effective_steps").get<double>(), 12.5);
  EXPECT_EQ(first.at("head_warmup_steps_found"), 4);
  EXPECT_TRUE(json.at("findings")[3].at("head_effective_steps").is_null());
  EXPECT_DOUBLE_EQ(json.at("findings")[3].at("head_peak_bytes").get<double>(), 1.031e9);
}

TEST(GateJunit, IsWhatJenkinsTakes) {
  const char* path = std::getenv("PATH");
  if (FindProgram("xmllint", path == nullptr ? "" : path).empty())
    GTEST_SKIP() << "xmllint is not installed; packages.txt has it (libxml2-utils)";
  const TempDir dir;
  const auto check = [&](const std::string& xml) {
    WriteFileAtomic(dir.path() / "gate.xml", xml);
    return ridgeline::Run({"xmllint", "--noout", "--nonet", "--relaxng",
                           std::string(RIDGELINE_SOURCE_DIR) + "/tests/regress/junit.rng",
                           (dir.path() / "gate.xml").string()});
  };
  for (const std::string& point : {std::string("batch_size=1"), kHostile}) {
    Gate gate = ExampleGate(point);
    gate.head = point;
    const Captured checked = check(GateJunit(gate));
    EXPECT_TRUE(checked.status.ok()) << checked.stderr_text;
  }
  EXPECT_TRUE(check(GateJunit(HugeGate())).status.ok());
  EXPECT_FALSE(check("<testsuites><testsuite name=\"no counts\"/></testsuites>").status.ok());
}

TEST(GateJunit, ARegressionIsAFailureAndWhatIsMissingAnError) {
  const std::string xml = GateJunit(ExampleGate());
  EXPECT_THAT(xml, HasSubstr("tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\""));
  EXPECT_THAT(xml,
              HasSubstr("name=\"batch_size=1: step time\">\n      <failure type=\"REGRESSED\" message=\"base: 100 ms; "
                        "head: 103 ms; change: +3.1 % (+2.8 to +3.4); detects: +2.5 %; note: slower"));
  EXPECT_THAT(xml, HasSubstr("<error type=\"MISSING\" message=\"note: no result in head\"/>"));
  EXPECT_THAT(xml, HasSubstr("<skipped type=\"INCONCLUSIVE\""));
  EXPECT_THAT(xml, HasSubstr("<system-out>base: 1.00 GB;")) << "what passes says what it detects";
}

TEST(GateMarkdown, IsATableThatNotifiesNoGitHubUser) {
  const std::string page = GateMarkdown(ExampleGate(), kMostSummaryBytes);
  EXPECT_THAT(page, StartsWith("### Ridgeline gate: REGRESSED\n\nREGRESSED: 1 regressed"));
  EXPECT_THAT(page, HasSubstr("| REGRESSED | batch_size=1 | step time | 100 ms |"));
  const std::string hostile = GateMarkdown(ExampleGate(kHostile), kMostSummaryBytes);
  EXPECT_THAT(hostile, Not(HasSubstr("@team")));
  EXPECT_THAT(hostile, Not(HasSubstr("#1")));
  EXPECT_THAT(hostile, Not(HasSubstr("<b>")));
  EXPECT_THAT(hostile, Not(HasSubstr("\n::error")));
  EXPECT_EQ(LinesOfForm(hostile).size(), LinesOfForm(page).size());
}

TEST(GateMarkdown, SaysWhatItHasNoRoomFor) {
  Gate gate;
  for (int i = 0; i < 3000; ++i) {
    gate.findings.push_back(FindingOf(i < 2 ? kRegressed : kPass, kStepTime, "seed=" + std::to_string(i)));
  }
  Conclude(gate);
  const std::string comment = GateMarkdown(gate, kMostCommentBytes);
  EXPECT_LE(comment.size(), kMostCommentBytes);
  EXPECT_GT(comment.size(), kMostCommentBytes - 1000) << "there was room";
  EXPECT_THAT(comment, HasSubstr("| REGRESSED | seed=1 |"));
  std::smatch left_out;
  ASSERT_TRUE(std::regex_search(comment, left_out,
                                std::regex("\nThere is no room here for (\\d+) more findings: (\\d+) pass\\.\n$")));
  const auto shown = std::count(comment.begin(), comment.end(), '\n');
  EXPECT_EQ(left_out[1], left_out[2]);
  EXPECT_NEAR(static_cast<double>(shown + std::stoi(left_out[1])), 3000, 12);
  const std::string all = GateMarkdown(gate, kMostSummaryBytes);
  EXPECT_THAT(all, HasSubstr("seed=2999"));
  EXPECT_THAT(all, Not(HasSubstr("no room")));
  gate.findings[0].point.assign(kMostSummaryBytes, 'x');
  gate.head.assign(kMostSummaryBytes, 'y');
  EXPECT_LE(GateMarkdown(gate, kMostSummaryBytes).size(), kMostSummaryBytes);
}

TEST(GateAnnotations, AreCommandsOfOneLine) {
  const std::vector<std::string> lines = LinesOfForm(GateAnnotations(ExampleGate()));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0],
            "::error title=REGRESSED%3A step time::batch_size=1: +3.1 %25 (+2.8 to +3.4), slower in both rounds");
  EXPECT_THAT(lines[1], StartsWith("::error title=MISSING%3A result::batch_size=1: no result"));
  EXPECT_THAT(lines[2], StartsWith("::warning title=INCONCLUSIVE"));
  const std::vector<std::string> hostile = LinesOfForm(GateAnnotations(ExampleGate(kHostile)));
  ASSERT_EQ(hostile.size(), 3U);
  EXPECT_THAT(hostile[0], Not(HasSubstr("\x1b")));
  EXPECT_THAT(hostile[0], HasSubstr("\\n::error::no"));
  Gate gate = ExampleGate();
  gate.findings.erase(gate.findings.begin(), gate.findings.begin() + 3);
  EXPECT_THAT(GateAnnotations(gate), IsEmpty()) << "of passes";
}

TEST(GateAnnotations, AreNoMoreThanGitHubShows) {
  Gate gate;
  for (int i = 0; i < 25; ++i) gate.findings.push_back(FindingOf(kRegressed, kStepTime, "seed=" + std::to_string(i)));
  Conclude(gate);
  const std::vector<std::string> lines = LinesOfForm(GateAnnotations(gate));
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_THAT(lines.back(), StartsWith("::error title=ridgeline gate::16 more: "));
}

TEST(GateForms, AHugeGateFitsTheSizeLimitsOfEachForm) {
  const Gate gate = HugeGate();
  const std::string summary = GateMarkdown(gate, kMostSummaryBytes);
  EXPECT_LE(summary.size(), size_t{1024} * 1024) << "GitHub refuses the summary of a step that is larger";
  EXPECT_GT(summary.size(), size_t{1000} * 1024) << "there was room";
  EXPECT_THAT(summary, HasSubstr("100 regressed, 100 missing, 100 inconclusive, 19700 pass"));
  const std::string comment = GateMarkdown(gate, kMostCommentBytes);
  EXPECT_LE(comment.size(), size_t{65'536}) << "GitHub refuses a comment that is longer";
  EXPECT_THAT(comment, HasSubstr("There is no room here for"));

  const std::vector<std::string> lines = LinesOfForm(GateAnnotations(gate));
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("::error "); }),
            10);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("::warning "); }),
            10);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 4096U) << "GitHub cuts a message that is longer";

  const std::vector<std::string> metrics = LinesOfForm(GateOpenMetrics(gate));
  EXPECT_EQ(std::count_if(metrics.begin(), metrics.end(),
                          [](const auto& line) { return line.starts_with("ridgeline_gate_step_time_seconds{"); }),
            10'000)
      << "GitLab's metrics report has no limit but that of an artifact";
  EXPECT_EQ(ParseJson(GateJson(gate), "the gate").at("findings").size(), 20'000U);
}

// A sample as GitLab reads it: text behind a # is a comment, then come words as in a shell. The first word is the name.
std::string NameToGitLab(const std::string& line) {
  std::string name;
  bool quoted = false;
  for (size_t i = 0; i < line.size() && line[i] != '#'; ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      name += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ' ' && !quoted) {
      return name;
    } else {
      name += line[i];
    }
  }
  return quoted ? "a quote that nothing ends" : name;
}

TEST(GateOpenMetrics, IsWellFormed) {
  for (const std::string& point : {std::string("batch_size=1, seed=2"), kHostile}) {
    const std::vector<std::string> lines = LinesOfForm(GateOpenMetrics(ExampleGate(point)));
    ASSERT_GT(lines.size(), 10U);
    EXPECT_EQ(lines.back(), "# EOF");
    static const std::regex kSample(
        R"re((ridgeline_gate_\w+)\{\w+="([^"\\]|\\["\\n])*"(,\w+="([^"\\]|\\["\\n])*")*\} -?[0-9.e+-]+)re");
    static const std::regex kMeta(R"re(# (TYPE|UNIT|HELP) (ridgeline_gate_\w+) (.+))re");
    std::string family;
    std::set<std::string> families;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      std::smatch match;
      if (std::regex_match(lines[i], match, kMeta)) {
        if (match[1] == "TYPE") {
          family = match[2];
          EXPECT_TRUE(families.insert(family).second) << family << " comes twice";
          EXPECT_EQ(match[3], "gauge");
        }
        const bool has_its_unit = match[1] != "UNIT" || family.ends_with("_" + match[3].str());
        EXPECT_TRUE(has_its_unit) << lines[i];
        EXPECT_EQ(match[2], family);
        continue;
      }
      ASSERT_TRUE(std::regex_match(lines[i], match, kSample)) << lines[i];
      EXPECT_EQ(match[1], family);
      EXPECT_THAT(NameToGitLab(lines[i]), StartsWith(family + "{")) << lines[i];
      EXPECT_THAT(NameToGitLab(lines[i]), ::testing::EndsWith("}")) << lines[i];
    }
  }
}

TEST(GateOpenMetrics, HasBaseUnits) {
  const std::string text = GateOpenMetrics(ExampleGate());
  EXPECT_THAT(text, HasSubstr("ridgeline_gate_step_time_seconds{point=\"1a2b\",cell=\"batch_size=1\"} 0.1031\n"));
  EXPECT_THAT(
      text,
      HasSubstr("ridgeline_gate_step_time_change_ratio{point=\"1a2b\",cell=\"batch_size=1\",baseline=\"rolling\"} "
                "0.031\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_gate_findings{answer=\"pass\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_gate_findings{answer=\"fails\"} 0\n"));
  Gate of_sweep;
  of_sweep.sweep = "night\"ly";
  EXPECT_THAT(GateOpenMetrics(of_sweep), HasSubstr("{sweep=\"night\\\"ly\",answer=\"pass\"} 0\n"));
}

}  // namespace
}  // namespace ridgeline::regress
