#include "plan/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "run/spec.h"

namespace ridgeline::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const sweep::Sweep& TheSweep() {
  static const sweep::Sweep sweep = sweep::ParseSweep(
      "name: s\ndefaults: {model: llama-10m}\nmatrix: {batch_size: [1, 8], learning_rate: [1e-4]}\n"
      "exclude: [{batch_size: 2}]",
      "s.yaml");
  return sweep;
}

Plan PlanOf(const std::vector<Point>& points) {
  PlanOptions options;
  options.node = {5'000'000 + predict::kProcessBaseBytes, "free here"};
  return MakePlan(TheSweep(), points, options, [](const RunSpec& spec) {
    return predict::MemoryForecast{spec.batch_size * 1'000'000, {}};
  });
}

std::string Written(std::string_view format, sweep::Expansion* expansion = nullptr) {
  std::string text;
  sweep::Expansion result = WriteExpanded(TheSweep(), format, [&](std::string_view part) { text += part; });
  if (expansion != nullptr) *expansion = result;
  return text;
}

TEST(Show, ThePlanForPrograms) {
  const auto points = sweep::Expand(TheSweep());
  const Table table = PlanTable(TheSweep(), points, PlanOf(points), Audience::kPrograms);
  EXPECT_THAT(table.columns, ElementsAre("point", "batch_size", "learning_rate", "parameters", "predicted_peak_bytes",
                                         "verdict", "available_bytes", "basis"));
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.rows[0], (std::vector<Cell>{points[0].id, int64_t{1}, 1e-4, int64_t{10'096'896}, int64_t{1'000'000},
                                              "fits", int64_t{5'000'000}, "free here"}));
  EXPECT_EQ(table.rows[1], (std::vector<Cell>{points[1].id, int64_t{8}, 1e-4, int64_t{10'096'896}, int64_t{8'000'000},
                                              "out_of_memory", int64_t{5'000'000}, "free here"}));
}

TEST(Show, HowRanksAreSplitIsAColumnWhereTheyShareAModel) {
  const sweep::Sweep sweep = sweep::ParseSweep(
      "name: s\ndefaults: {model: llama-8b, ranks: 16}\nmatrix: {tensor_parallel: [1, 4]}\n"
      "launch: {trainer: [./mine]}\n",
      "s.yaml");
  const auto points = sweep::Expand(sweep);
  const Plan plan = MakePlan(sweep, points, {}, [](const RunSpec&) { return predict::MemoryForecast{1, {}}; });
  const Table table = PlanTable(sweep, points, plan, Audience::kPrograms);
  ASSERT_THAT(table.columns, SizeIs(8));
  EXPECT_EQ(table.columns[2], "split");
  EXPECT_EQ(table.rows[0][2], Cell(""));
  EXPECT_EQ(table.rows[1][2], Cell("DP 4, TP 4"));
}

std::vector<std::string> JobLinesOf(const std::string& launch) {
  const sweep::Sweep sweep = sweep::ParseSweep(
      "name: s\ndefaults: {model: llama-10m}\nmatrix: {ranks: [1, 2, 8]}\nlaunch: {" + launch + "}", "s.yaml");
  const auto points = sweep::Expand(sweep);
  return JobLines(sweep, MakePlan(sweep, points, {}, [](const RunSpec&) { return predict::MemoryForecast{1, {}}; }));
}

TEST(Show, ShowsOneLineForEachDifferentRequest) {
  EXPECT_THAT(JobLinesOf("bundle: 2"), ::testing::IsEmpty());
  EXPECT_THAT(JobLinesOf("cpus: 2"), ElementsAre("3 jobs of 3 points: 1 node, 2 cores"));
  EXPECT_THAT(
      JobLinesOf("bundle: 2, ranks_per_node: 4, rules: [{when: {ranks: 8}, set: {memory_limit: 8GB, "
                 "time_limit: 90s, environment: {A: \"b\\e[2J\"}, local: {x: 1}}}]"),
      ElementsAre("1 job of 2 points: 1 node",
                  "1 job of 1 point: 2 nodes, 8.00 GB, at most 1 min 30 s a point, A=b\\x1b[2J, local: {\"x\":1}"));
}

TEST(Show, ThePlanForPeople) {
  const auto points = sweep::Expand(TheSweep());
  const Table table = PlanTable(TheSweep(), points, PlanOf(points), Audience::kPeople);
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.columns[4], "predicted_peak");
  EXPECT_EQ(table.rows[0],
            (std::vector<Cell>{points[0].id.substr(0, 8), int64_t{1}, 1e-4, "10.1M", "1.00 MB", "fits", "5.00 MB"}));
}

TEST(Show, Summaries) {
  const auto points = sweep::Expand(TheSweep());
  EXPECT_EQ(PlanSummary(points, PlanOf(points)),
            "2 points: 1 fits (the largest needs 1.00 MB), 1 out of memory; available 5.00 MB (free here)");
  PlanOptions options;
  EXPECT_EQ(PlanSummary({}, Plan()), "0 points");
  const Plan unknown = MakePlan(TheSweep(), points, options, [](const RunSpec&) {
    return predict::MemoryForecast{1'000'000, {}};
  });
  EXPECT_EQ(PlanSummary(points, unknown),
            "2 points: 2 unknown (the largest needs 1.00 MB); what memory they will have is not known here (--memory "
            "says it)");
  EXPECT_EQ(ExpansionSummary({1, 0, 0, {}}), "1 point");
  EXPECT_EQ(ExpansionSummary({3, 2, 1, {}}), "3 points; 2 combinations excluded; 1 duplicate left out");
}

TEST(Show, WhyPointsAreOutOfMemoryIsSaidOnceForEachReason) {
  Plan plan;
  EXPECT_EQ(OutOfMemoryWhy(plan), "");
  plan.points = {{0, Verdict::kOutOfMemory, {}, {8, "a"}, true}, {1, Verdict::kFits, {}, {8, "b"}, false}};
  EXPECT_EQ(OutOfMemoryWhy(plan), "a; 1 would fit with shard: full");
  for (const char* basis : {"a", "b", "c", "d", "e"}) {
    plan.points.push_back({2, Verdict::kOutOfMemory, {}, {8, basis}, false});
  }
  EXPECT_EQ(OutOfMemoryWhy(plan), "a; b; c; and 2 more; 1 would fit with shard: full");
}

TEST(Show, JsonLinesHoldWholeSpecs) {
  sweep::Expansion expansion;
  std::istringstream lines(Written("jsonl", &expansion));
  const auto points = sweep::Expand(TheSweep());
  size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    const Json document = ParseJson(line, "line");
    EXPECT_EQ(document.at("id"), points.at(i).id);
    EXPECT_EQ(PointId(DecodeSpec(document.at("spec"), "line")), points.at(i).id);
  }
  EXPECT_EQ(i, points.size());
  EXPECT_EQ(expansion.points, 2);
  EXPECT_THAT(expansion.warnings, SizeIs(1));
}

TEST(Show, JsonIsOneArray) {
  const Json document = ParseJson(Written("json"), "json");
  ASSERT_EQ(document.size(), 2U);
  EXPECT_EQ(document[1].at("spec").at("batch_size"), 8);
  std::string empty;
  WriteExpanded(sweep::ParseSweep("name: s\ndefaults: {model: llama-10m}\nexclude: [{batch_size: 1}]", "s"), "json",
                [&](std::string_view part) { empty += part; });
  EXPECT_EQ(ParseJson(empty, "json"), Json::array());
}

TEST(Show, OtherFormatsAreTablesOfWhatVaries) {
  const auto points = sweep::Expand(TheSweep());
  EXPECT_THAT(Written("csv"), HasSubstr("point,batch_size,learning_rate\r\n" + points[0].id + ",1,0.0001\r\n"));
  EXPECT_THAT(Written("text"), HasSubstr(points[1].id.substr(0, 8)));
  EXPECT_THROW(Written("yaml"), Error);
}

TEST(Show, EveryFieldIsListed) {
  const Table table = FieldsTable();
  EXPECT_EQ(table.rows.size(), Fields().size() + Settings().size() + 1);
  EXPECT_THAT(table.columns, ElementsAre("field", "type", "values", "meaning"));
  const auto row = [&](const std::string& name) {
    for (const auto& cells : table.rows) {
      if (cells[0] == Cell(name)) return CellText(cells[1]) + "; " + CellText(cells[2]);
    }
    return std::string();
  };
  EXPECT_EQ(row("precision"), "text; fp32 tf32 bf16 fp16 fp8 mxfp8 nvfp4");
  EXPECT_EQ(row("batch_size"), "integer; 1 to 1048576");
  EXPECT_EQ(row("tied_head"), "true or false; true false");
  EXPECT_EQ(row("model"), "text; ");
}

}  // namespace
}  // namespace ridgeline::plan
