// What is known of each night, and which is begun.
#include "regress/nights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
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
  night.exit_code = exit_code;
  night.started_unix_s = started_unix_s;
  night.ended_unix_s = ended_unix_s;
  night.words = "2 pass\n";
  return night;
}

TEST(Nights, AreReadAsTheyWereWrittenInTheOrderOfTheirStarts) {
  const TempDir dir;
  WriteNight(NightOf("night-b", 0, 10, 20), dir.path());
  WriteNight(NightOf("night-a", 3, 30, 0), dir.path());
  std::vector<std::string> problems;
  const std::vector<Night> nights = ReadNights(dir.path(), &problems);
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_THAT(nights, SizeIs(2));
  EXPECT_EQ(nights[0].name, "night-b");
  EXPECT_EQ(nights[0].sweep, "/sweeps/it's \"one\".yaml");
  EXPECT_EQ(nights[0].words, "2 pass\n");
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

TEST(Nights, OneThatIsNotOverOrThatTheInfrastructureCostIsGoneOnWithThatDay) {
  EXPECT_EQ(NightAt({}, kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-01", 3, 1, 2)}, kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 0, 1, 0)}, kNoonNs), "night-2026-02-02");
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 3, 1, 2)}, kNoonNs), "night-2026-02-02");
  for (const int over : {0, 1, 2, 4}) {
    EXPECT_EQ(NightAt({NightOf("night-2026-02-02", over, 1, 2)}, kNoonNs), "night-2026-02-02-2");
  }
  EXPECT_EQ(NightAt({NightOf("night-2026-02-02", 0, 1, 2), NightOf("night-2026-02-02-2", 3, 3, 4)}, kNoonNs),
            "night-2026-02-02-2");
}

TEST(Nights, TheLastGoodOneIsTheLastThatPassed) {
  EXPECT_FALSE(LastGoodNight({NightOf("a", 1, 1, 2), NightOf("b", 4, 3, 4)}));
  EXPECT_EQ(
      LastGoodNight({NightOf("a", 0, 1, 2), NightOf("b", 0, 3, 4), NightOf("c", 3, 5, 6), NightOf("d", 0, 7, 0)})->name,
      "b");
}

}  // namespace
}  // namespace ridgeline
