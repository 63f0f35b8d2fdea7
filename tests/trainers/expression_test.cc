// Formulas over a point's values: their results, and those without a value.
#include "trainers/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<FieldValue> Given(std::string_view name) {
  static const std::map<std::string, FieldValue, std::less<>> given = {
      {"ranks", int64_t{64}}, {"tp", int64_t{4}}, {"zero", int64_t{0}},   {"most", INT64_MAX},
      {"rate", 0.5},          {"on", true},       {"shard", "optimizer"}, {"least", INT64_MIN}};
  const auto it = given.find(name);
  return it == given.end() ? std::nullopt : std::optional(it->second);
}

int64_t Number(const std::string& text) { return Expression(text).Number(Given); }
bool Holds(const std::string& text) { return Expression(text).Holds(Given); }

std::string Refused(const std::string& text) {
  try {
    const Expression read(text);
    if (read.is_condition()) {
      read.Holds(Given);
    } else {
      read.Number(Given);
    }
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

TEST(Expression, CountsAsInSchool) {
  EXPECT_EQ(Number("{{ranks}} / ({{tp}} * 2)"), 8);
  EXPECT_EQ(Number("1 + 2 * 3 - 8 / 4 / 2"), 6);
  EXPECT_EQ(Number("-{{tp}} + 10 % 4 * - 3"), -10);
  EXPECT_EQ(Number("((7))"), 7);
  EXPECT_EQ(Number("{{least}} % -1"), 0);
  EXPECT_TRUE(Holds("{{ranks}} % {{tp}} == 0"));
  EXPECT_TRUE(Holds("{{tp}} == 1 or {{ranks}} >= 64 and ({{tp}} < 5)"));
  EXPECT_FALSE(Holds("({{tp}} != 4 or {{ranks}} > 1) and {{tp}} <= 3"));
  EXPECT_TRUE(Holds("{{shard}} != full and {{on}} == true"));
  EXPECT_TRUE(Holds("{{zero}} == 0 or {{ranks}} / {{zero}} == 1")) << "what decides nothing is not counted";
}

TEST(Expression, NamesAreThoseInItOnce) {
  const Expression read(" {{ranks}} / ({{ tp }} * {{ranks}}) ");
  EXPECT_THAT(read.names(), ElementsAre("ranks", "tp"));
  EXPECT_EQ(read.words(), "ranks / ( tp  * ranks)");
  EXPECT_FALSE(read.is_condition());
  EXPECT_TRUE(Expression("{{tp}} == 1").is_condition());
}

TEST(Expression, ReportsNamesWithoutAValue) {
  EXPECT_EQ(Refused("{{ranks}} / 3"), "64 / 3 is not a whole number");
  EXPECT_EQ(Refused("{{ranks}} / {{zero}}"), "64 is divided by 0");
  EXPECT_EQ(Refused("{{most}} * 2"), "it is beyond 64 bits");
  EXPECT_EQ(Refused("{{least}} / -1"), "it is beyond 64 bits");
  EXPECT_EQ(Refused("{{shard}} + 1"), "shard is optimizer, and no whole number");
  EXPECT_EQ(Refused("{{shard}} < full"), "full is a text, and no number to compare with");
  EXPECT_EQ(Refused("{{rate}} * 2"), "rate is 0.5, and no whole number");
  EXPECT_EQ(Refused("{{none}}"), "none has no value here");
}

TEST(Expression, RefusesWhatIsNoExpression) {
  EXPECT_EQ(Refused(""), "it ends where a value is missing");
  EXPECT_EQ(Refused("1 +"), "it ends where a value is missing");
  EXPECT_EQ(Refused("1 2"), "'2' does not belong here");
  EXPECT_EQ(Refused("(1"), "a parenthesis is not closed");
  EXPECT_THAT(Refused("{{tp | float}}"), HasSubstr("without a filter"));
  EXPECT_THAT(Refused("{{tp"), HasSubstr("without a filter"));
  EXPECT_THAT(Refused("12x"), HasSubstr("12x is not a whole number"));
  EXPECT_THAT(Refused("99999999999999999999"), HasSubstr("not a whole number"));
  EXPECT_THAT(Refused("1 and 2"), HasSubstr("join comparisons"));
  EXPECT_THAT(Refused("(1 == 1) + 1"), HasSubstr("a comparison is not a number"));
  EXPECT_EQ(Refused("1 == 1 == 1"), "'== 1' does not belong here");
  EXPECT_THAT(Refused(std::string(100, '(') + "1"), HasSubstr("parentheses in each other"));
  EXPECT_THAT(Refused(std::string(100, '-') + "1"), HasSubstr("parentheses in each other"));
  std::string many = "1";
  for (int i = 0; i < 300; ++i) many += "+1";
  EXPECT_THAT(Refused(many), HasSubstr("more than 256 parts"));
  EXPECT_THAT(Refused(std::string(2000, ' ')), HasSubstr("more than 1024 bytes"));
}

}  // namespace
}  // namespace ridgeline::trainers
