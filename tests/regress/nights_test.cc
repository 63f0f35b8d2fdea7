// The records of nights, and which night begins next.
#include "regress/nights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "regress/gate.h"
#include "regress/gate_forms.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kNoonNs = 1'770'000'000'000'000'000;  // 2026-02-02T02:40:00Z

Night NightOf(const std::string& name, int exit_code, int64_t started_unix_s, int64_t ended_unix_s) {
  Night night;
  night.name = name;
  night.sweep = "/sweeps/it's \"one\".yaml";
  night.sweep_name = "nights";
  night.exit_code = exit_code;
  night.started_unix_s = started_unix_s;
  night.ended_unix_s = ended_unix_s;
  night.words = "2 pass\n";
  return night;
}

Night NightThatFoundWorse(const std::string& name, const std::vector<NightCell>& worse) {
  Night night = NightOf(name, worse.empty() ? 0 : 1, 1, 2);
  for (const NightCell& cell : worse) night.worse.push_back({.cell = cell});
  return night;
}

Night NightThatSuspected(const std::string& name, const NightCell& cell) {
  Night night = NightOf(name, 4, 1, 2);
  night.worse = {{.cell = cell, .is_open = true}};
  return night;
}

// Accepts everything that it found worse, after all nights by default.
void Accept(Night& night, int64_t unix_s = 1000) {
  for (const WorseCell& worse : night.worse) night.accepted.push_back({worse.cell, "why", "ada", unix_s});
}

// "night-1" for a whole night, "night-1 point" for a cell.
std::vector<std::string> LeftOutNames(const std::vector<Night>& nights) {
  std::vector<std::string> names;
  for (const LeftOutMeasurements& each : LeftOutOf(nights)) {
    names.push_back(each.campaign + (each.point_id.empty() ? "" : " " + each.point_id));
  }
  return names;
}

TEST(Nights, AreReadAsTheyWereWrittenInTheOrderOfTheirStarts) {
  const TempDir dir;
  Night written = NightOf("night-b", 0, 10, 20);
  written.worse = {{{"point", "{\"setup\": 1}"}, "seed=0", true, "night-0"}, {.cell = {"other", ""}}};
  written.lost = {{"lost", ""}};
  written.absent = {{"absent", ""}};
  written.was_gated = true;
  written.worse[0].metrics = {{GateMetric::kStepTime, {0.05, 0.04}}, {GateMetric::kPinnedPeakMemory, {0.1}}};
  written.worse[0].base_build = "v1 in /base";
  written.accepted = {{written.worse[0].cell, "a reason", "ada", 30}};
  WriteNight(written, dir.path());
  WriteNight(NightOf("night-a", 3, 30, 0), dir.path());
  std::vector<std::string> problems;
  const std::vector<Night> nights = ReadNights(dir.path(), &problems);
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_THAT(nights, SizeIs(2));
  EXPECT_EQ(nights[0].name, "night-b");
  EXPECT_EQ(nights[0].sweep, "/sweeps/it's \"one\".yaml");
  EXPECT_EQ(nights[0].sweep_name, "nights");
  EXPECT_EQ(nights[0].words, "2 pass\n");
  EXPECT_EQ(nights[0].worse, written.worse);
  EXPECT_EQ(nights[0].lost, written.lost);
  EXPECT_EQ(nights[0].absent, written.absent);
  EXPECT_TRUE(nights[0].was_gated);
  EXPECT_EQ(nights[0].accepted, written.accepted);
  EXPECT_THAT(nights[1].accepted, IsEmpty());
  EXPECT_TRUE(nights[0].is_good());
  EXPECT_FALSE(nights[1].is_over());
}

TEST(Nights, ADamagedRecordIsNamedAndHidesNoOther) {
  const TempDir dir;
  WriteNight(NightOf("night-a", 0, 10, 20), dir.path());
  for (const char* text : {"{", "[]", "{\"version\": 1}", "{\"version\": 2}", "{\"version\": \"1\"}"}) {
    MakeDirs(dir.path() / "night-b");
    WriteFile(dir.path() / "night-b/night.json", text);
    std::vector<std::string> problems;
    EXPECT_THAT(ReadNights(dir.path(), &problems), SizeIs(1)) << text;
    EXPECT_THAT(problems, ElementsAre(HasSubstr("night-b/night.json: "))) << text;
  }
  std::vector<std::string> problems;
  EXPECT_THAT(ReadNights(dir.path() / "nothing", &problems), IsEmpty());
}

TEST(Nights, AForgedRecordIsRefusedWithItsPlace) {
  const TempDir dir;
  MakeDirs(dir.path() / "night-b");
  const auto file = dir.path() / "night-b/night.json";
  const auto problem = [&](const std::string& key, const std::string& value) {
    WriteNight(NightOf("night-b", 0, 10, 20), dir.path());
    Json json = ReadJsonFile(file);
    json[key] = ParseJson(value, "the test");
    WriteFile(file, DumpJson(json));
    std::vector<std::string> problems;
    EXPECT_THAT(ReadNights(dir.path(), &problems), IsEmpty()) << value;
    return problems.empty() ? "none" : problems.front();
  };
  for (const char* key : {"started_unix_s", "ended_unix_s", "run_exit", "exit_code"}) {
    for (const char* value : {"1e300", "-1", "1.5", "18446744073709551615", "9223372036854775807", "true"}) {
      EXPECT_THAT(problem(key, value), HasSubstr("'" + std::string(key) + "' is not an integer from 0 to")) << value;
    }
  }
  EXPECT_THAT(problem("version", "1e300"), HasSubstr("this program reads 1"));
  EXPECT_THAT(problem("night", R"("../../etc")"), HasSubstr("'../../etc'")) << "it would be written there";
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  std::vector<std::string> problems;
  EXPECT_THAT(ReadNights(dir.path(), &problems), IsEmpty()) << "it has no end";
}

TEST(Nights, SaysLostCellsBesideTheWorstVerdict) {
  Night night = NightOf("a", 1, 1, 2);
  night.was_gated = true;
  night.lost = {{"point", ""}};
  night.words = "REGRESSED: 1 regressed, 1 missing";
  EXPECT_EQ(NightAnswer(night), "REGRESSED, MISSING");
  EXPECT_EQ(NightWords(night), "1 regressed, 1 missing");
  EXPECT_EQ(NightAt({night}, "nights", kNoonNs), "night-2026-02-02");
  night.name = "night-2026-02-02";
  EXPECT_EQ(NightAt({night}, "nights", kNoonNs), night.name) << "what was lost is made up for that day";
  night.exit_code = 3;
  EXPECT_EQ(NightAnswer(night), "MISSING");
  EXPECT_THAT(LeftOutNames({night}), IsEmpty()) << "what was not lost counts";
  night.was_gated = false;
  EXPECT_EQ(NightAnswer(night), "FAILED");
}

TEST(Nights, ASuspectThatALaterNightPassesWasNoise) {
  const NightCell a{"a", ""};
  std::vector<Night> nights = {NightThatFoundWorse("1", {}), NightThatSuspected("2", a)};
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("2 a"));
  Night lost = NightOf("3", 3, 1, 2);
  lost.was_gated = true;
  lost.lost = {a};
  nights.push_back(lost);
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("2 a")) << "a night that lost it says nothing";
  nights.push_back(NightThatFoundWorse("4", {}));
  nights.back().absent = {a};
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("2 a")) << "so does one whose sweep does not have it";
  nights.push_back(NightThatFoundWorse("5", {}));
  EXPECT_THAT(LeftOutNames(nights), IsEmpty());
}

TEST(Nights, NightsThatShowedARegressionTogetherAreInNoBaseline) {
  const NightCell a{"a", ""};
  std::vector<Night> nights = {NightThatFoundWorse("1", {}), NightThatSuspected("2", a), NightThatFoundWorse("3", {}),
                               NightThatFoundWorse("4", {a}), NightThatFoundWorse("5", {})};
  nights[3].worse[0].since = "2";
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("2 a", "3 a", "4 a"));
  Accept(nights[3]);
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("1 a")) << "the baseline begins with the first of them";
}

TEST(Nights, FailedNightsAreInNoBaseline) {
  EXPECT_THAT(LeftOutNames({NightOf("passed", 0, 1, 2), NightOf("regressed", 1, 1, 2), NightOf("refused", 2, 1, 2),
                            NightOf("failed", 3, 1, 2), NightOf("inconclusive", 4, 1, 2), NightOf("stopped", 130, 1, 2),
                            NightOf("cut short", 0, 1, 0)}),
              ElementsAre("refused", "failed", "stopped", "cut short"));
}

TEST(Nights, ARegressionIsInNoBaselineUntilItIsAccepted) {
  const NightCell a{"a", ""};
  const NightCell b{"b", ""};
  std::vector<Night> nights = {
      NightThatFoundWorse("1", {}),     NightThatFoundWorse("2", {a}), NightThatFoundWorse("3", {}),
      NightThatFoundWorse("4", {a, b}), NightOf("5", 3, 1, 2),         NightThatFoundWorse("6", {a}),
      NightThatFoundWorse("7", {a, b}), NightThatFoundWorse("8", {})};
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("2 a", "4 a", "4 b", "5", "6 a", "7 a", "7 b"));
  Accept(nights[5]);  // only of cell a, which is worse since 4: nights that failed say nothing
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("1 a", "2 a", "3 a", "4 b", "5", "7 a", "7 b"))
      << "what is worse after it is worse than what was accepted";
  Accept(nights[6]);
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("1 a", "1 b", "2 a", "2 b", "3 a", "3 b", "4 b", "5", "6 b"));
}

// An accepted change shifts its cell's older measurements by as much, and leaves none of them out.
TEST(Nights, SubtractsAnAcceptedChange) {
  const NightCell a{"a", ""};
  std::vector<Night> nights = {NightThatFoundWorse("1", {}), NightThatFoundWorse("2", {a}),
                               NightThatFoundWorse("3", {a}), NightThatFoundWorse("4", {a}),
                               NightThatFoundWorse("5", {a})};
  for (size_t i = 0; i < nights.size(); ++i) {
    nights[i].started_unix_s = 100 * static_cast<int64_t>(i + 1);
    nights[i].ended_unix_s = nights[i].started_unix_s + 50;
    for (WorseCell& worse : nights[i].worse) {
      worse.metrics[GateMetric::kStepTime] = {0.01 * static_cast<double>(i), 0.02};
      worse.base_build = "v1 in /base";
    }
  }
  Accept(nights[2], 460);
  EXPECT_THAT(LeftOutNames(nights), ElementsAre("4 a", "5 a"));
  std::vector<AcceptedChange> changes = AcceptedOf(nights);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].night, "3");
  EXPECT_EQ(changes[0].author, "ada");
  EXPECT_THAT(changes[0].before, ElementsAre("1"));
  EXPECT_EQ(changes[0].begun_unix_ns, 200'000'000'000);
  EXPECT_EQ(changes[0].up.at(GateMetric::kStepTime), 0.02);
  EXPECT_EQ(changes[0].up.at(GateMetric::kPinnedStepTime), 0.02) << "nothing was pinned that night";
  EXPECT_EQ(changes[0].step_time_in_turns, 0.02);
  EXPECT_EQ(changes[0].base_build, "v1 in /base");

  Accept(nights[3], 480);  // when that night ended, night 3 was not yet accepted
  changes = AcceptedOf(nights);
  ASSERT_THAT(changes, SizeIs(1)) << "both found one change";
  EXPECT_EQ(changes[0].night, "4");
  EXPECT_THAT(changes[0].before, ElementsAre("1"));

  Accept(nights[4], 600);  // that night knew it, so it found more
  changes = AcceptedOf(nights);
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_THAT(changes[1].before, ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(LeftOutNames(nights), IsEmpty());
  EXPECT_EQ(AcceptedWords(nights[4]), "accepted by ada: why (1 point)");
}

TEST(Nights, ListsWhatTheRollingBaselineFoundWorseAndNobodyCleared) {
  Gate gate;
  const auto add = [&](GateAnswer answer, GateMetric metric, bool suspect, const std::string& point) {
    GateFinding& finding = gate.findings.emplace_back();
    finding.answer = answer;
    finding.metric = metric;
    finding.suspect = suspect;
    finding.point = finding.point_id = point;
    finding.setup = "setup";
  };
  using enum GateAnswer;
  using enum GateMetric;
  add(kRegressed, kPeakMemory, true, "more memory");
  add(kRegressed, kResult, false, "fails");
  add(kInconclusive, kStepTime, true, "suspect");
  add(kRegressed, kStepTime, true, "more memory");
  add(kInconclusive, kStepTime, false, "too few runs");
  add(kPass, kStepTime, true, "cleared");
  add(kRegressed, kPinnedStepTime, true, "crept");
  add(kMissing, kResult, false, "missing");
  gate.findings[3].acceptable = 0.06;
  gate.findings[3].high = 0.05;
  gate.findings[3].base_build = "v1 in /base";
  add(kRegressed, kPinnedStepTime, true, "more memory");
  gate.findings.back().acceptable = 0.07;
  EXPECT_THAT(WorseCells(ParseJson(GateJson(gate), "the gate")),
              ElementsAre(WorseCell{{"fails", "setup"}, "fails"},
                          WorseCell{.cell = {"more memory", "setup"},
                                    .point = "more memory",
                                    .metrics = {{kStepTime, {0.06, 0.05}}, {kPinnedStepTime, {0.07}}},
                                    .base_build = "v1 in /base"},
                          WorseCell{{"suspect", "setup"}, "suspect", true}));
  EXPECT_THAT(LostCells(ParseJson(GateJson(gate), "the gate")), ElementsAre(NightCell{"missing", "setup"}));
  EXPECT_TRUE(MeasuredAnything(ParseJson(GateJson(gate), "the gate")));
  EXPECT_THAT(AbsentCells(ParseJson(GateJson(gate), "the gate"),
                          {NightThatSuspected("1", {"suspect", "setup"}), NightThatSuspected("2", {"missing", "setup"}),
                           NightThatSuspected("3", {"suspect", "other"}), NightThatFoundWorse("4", {{"gone", ""}})}),
              ElementsAre(NightCell{"suspect", "other"}));
  for (const char* text : {"[]", "{}", R"({"findings": [1]})", R"({"findings": [{"metric": 1}]})"}) {
    EXPECT_THROW(WorseCells(ParseJson(text, "a test")), Error) << text;
  }
}

TEST(Nights, OneThatIsNotOverOrThatTheInfrastructureCostIsGoneOnWithThatDay) {
  EXPECT_EQ(NightAt({}, "nights", kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-01", 3, 1, 2)}, "nights", kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 0, 1, 0)}, "nights", kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 3, 1, 2)}, "nights", kNoonNs), "night-2026-02-02");
  for (const int over : {0, 1, 2, 4}) {
    EXPECT_EQ(NightAt({NightOf("night-2026-02-02", over, 1, 2)}, "nights", kNoonNs), "night-2026-02-02-2");
  }
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 0, 1, 2), NightOf("night-2026-02-02-2", 3, 3, 4)}, "nights", kNoonNs),
            "night-2026-02-02-2");
  Night night = NightOf("night-2026-02-02", 3, 1, 2);
  EXPECT_EQ(NightAt({night}, "nights", kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({night}, "others", kNoonNs), "night-2026-02-02-2") << "another sweep's night is not its";
  night.lost = {{"lost", ""}};
  night.worse = {{.cell = {"point", ""}}};
  Accept(night);
  EXPECT_EQ(NightAt({night}, "nights", kNoonNs), "night-2026-02-02-2") << "what a person said of it stays";
}

TEST(Nights, TheLastGoodOneIsTheLastThatPassed) {
  EXPECT_FALSE(LastGoodNight({NightOf("a", 1, 1, 2), NightOf("b", 4, 3, 4)}));
  EXPECT_EQ(
      LastGoodNight({NightOf("a", 0, 1, 2), NightOf("b", 0, 3, 4), NightOf("c", 3, 5, 6), NightOf("d", 0, 7, 0)})->name,
      "b");
}

}  // namespace
}  // namespace ridgeline::regress
