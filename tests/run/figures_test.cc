#include "run/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "run/result.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

TEST(Figures, HaveNamesOfTheirOwnAndWords) {
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  std::set<const void*> members;
  RunResult result;
  for (const Figure& figure : Figures()) {
    EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
    EXPECT_TRUE(keys.insert(figure.key).second) << figure.key;
    std::visit([&](auto at) { EXPECT_TRUE(members.insert(&at(result)).second) << figure.name; }, figure.member);
    EXPECT_EQ(figure.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
    EXPECT_GT(figure.help.size(), 10U) << figure.name;
    EXPECT_EQ(figure.help.find('|'), std::string_view::npos) << figure.name << ": it is a cell of a table";
    if (figure.type() != "text" && figure.type() != "true or false") {
      EXPECT_LT(figure.min, figure.max) << figure.name;
    }
  }
  for (const Figure& figure : Figures()) {
    EXPECT_TRUE(figure.taken_with.empty() || names.contains(figure.taken_with)) << figure.name;
  }
}

TEST(Figures, StandInTheDocumentOfTheStoreAsTheTableHasThem) {
  const std::string text = ReadFile(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "docs/store.md");
  std::string table;
  for (const Figure& figure : Figures()) {
    table += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", figure.name, figure.key, figure.type(), figure.unit,
                         figure.help);
  }
  const std::string head = "| column | in a result's JSON | type | unit | what it is |\n|---|---|---|---|---|\n";
  EXPECT_THAT(text, HasSubstr(head + table + "\n")) << "the table is now:\n" << head << table;
}

std::string Refusal(const std::string& key, const Json& value) {
  const size_t dot = key.find('.');
  Json document = {{"version", 1}, {"status", "ok"}};
  (dot == std::string::npos ? document[key] : document[key.substr(0, dot)][key.substr(dot + 1)]) = value;
  try {
    DecodeResult(document, "result.json");
    return "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(), HasSubstr("result.json: not a RunResult: " + key));
    return e.message();
  }
}

TEST(Figures, RefusesAFigureOfAnotherTypeByName) {
  for (const Figure& figure : Figures()) {
    const std::string key(figure.key);
    EXPECT_NE(Refusal(key, Json::array({Json::array()})), "accepted") << key;
    EXPECT_NE(Refusal(key, figure.type() == "text" ? Json(1) : Json("1")), "accepted") << key;
    EXPECT_NE(Refusal(key, nullptr), "accepted") << key;
  }
}

TEST(Figures, OutsideTheirRangeAreRefusedWithBoth) {
  EXPECT_THAT(Refusal("step_ns.median", -5), HasSubstr("is -5, which is not from 0 to 9e+18"));
  EXPECT_THAT(Refusal("memory.rss_peak_bytes", 1e19), HasSubstr("is 1e+19, which is not from"));
  EXPECT_THAT(Refusal("step_ns.all", Json{7, -1}), HasSubstr("is -1"));
  EXPECT_THAT(Refusal("memory.by_category", {{"parameters", -1}}), HasSubstr("is -1"));
  EXPECT_THAT(Refusal("throughput.steady_tokens_per_s", -0.5), HasSubstr("is -0.5"));
  EXPECT_EQ(Refusal("loss", Json{-3.5, nullptr}), "accepted");
  EXPECT_EQ(Refusal("skipped_steps", 0), "accepted");
}

// A number that is cut to an integer would be a different figure.
TEST(Figures, WritesCountsAsWholeNumbers) {
  const auto refusal = [](const std::string& text) {
    try {
      DecodeResult(ParseJson(R"({"version": 1, "status": "ok", )" + text + "}", "x"), "x");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput) << text;
      return e.message();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(R"("parameters": 1.5)"), HasSubstr("parameters is 1.5, which is not written as a whole number"));
  EXPECT_THAT(refusal(R"("parameters": 1e3)"), HasSubstr("not written as a whole number"));
  EXPECT_THAT(refusal(R"("parameters": 1000.0)"), HasSubstr("not written as a whole number"));
  EXPECT_THAT(refusal(R"("step_ns": {"all": [1, 2.0]})"), HasSubstr("step_ns.all is 2.0"));
  EXPECT_THAT(refusal(R"("memory": {"by_category": {"logits": 0.5}})"), HasSubstr("memory.by_category is 0.5"));
  EXPECT_THAT(refusal(R"("parameters": true)"), HasSubstr("which is not a number"));
  // Beyond the range of integers, signed and unsigned, and beyond any number.
  for (const char* number : {"9223372036854775807", "9223372036854775808", "18446744073709551615",
                             "18446744073709551616", "1e400", "-9223372036854775809"}) {
    EXPECT_NE(refusal(std::string(R"("parameters": )") + number), "accepted") << number;
  }
  EXPECT_EQ(refusal(R"("parameters": 9000000000000000000)"), "accepted");
  EXPECT_EQ(refusal(R"("throughput": {"steady_tokens_per_s": 3})"), "accepted") << "a number may be whole";
}

TEST(Figures, NormsHaveNoSign) {
  EXPECT_THAT(Refusal("grad_norm", Json{0.5, -0.5}), HasSubstr("grad_norm is -0.5, which is not from 0"));
}

TEST(Figures, ARefusalShowsLittleOfWhatItRefuses) {
  EXPECT_LT(Refusal("parameters", Json(std::string(1'000'000, 'x'))).size(), 200U);
  EXPECT_LT(Refusal("emulated", Json(std::vector<int>(100'000, 7))).size(), 200U);
}

const Figure& Named(std::string_view name) {
  for (const Figure& figure : Figures()) {
    if (figure.name == name) return figure;
  }
  throw Error(ErrorKind::kInternal, "no such figure");
}

TEST(Figures, AZeroIsAMeasurementOnlyWhereSomethingElseSaysSo) {
  RunResult result;
  EXPECT_FALSE(WasTaken(result, Named("rss_peak_bytes")));
  EXPECT_FALSE(WasTaken(result, Named("step_cv")));
  EXPECT_FALSE(WasTaken(result, Named("skipped_steps")));
  result.step_ns.median_ns = 5;
  result.loss = {NAN};
  EXPECT_TRUE(WasTaken(result, Named("step_cv")));
  EXPECT_TRUE(WasTaken(result, Named("skipped_steps")));
}

TEST(Figures, AnOptionalOneSaysItselfWhetherItWasTaken) {
  RunResult result;
  EXPECT_TRUE(Named("gpu_others").is_optional());
  EXPECT_TRUE(Named("gpu_clock_limits").is_optional()) << "it is taken with one";
  EXPECT_FALSE(Named("skipped_steps").is_optional());
  EXPECT_FALSE(WasTaken(result, Named("gpu_others")));
  EXPECT_FALSE(WasTaken(result, Named("gpu_clock_limits")));
  result.gpu.others = 0;
  result.gpu.throttled_share = 0;
  EXPECT_TRUE(WasTaken(result, Named("gpu_others")));
  EXPECT_TRUE(WasTaken(result, Named("gpu_clock_limits")));
}

TEST(Figures, WithoutSeriesTheOthersStay) {
  RunResult result;
  result.loss = {1};
  result.grad_norm = {1};
  result.step_ns = {{9, 5}, 5, 6, 0.125};
  result.memory.by_category = {{"parameters", 60}};
  DropSeries(result);
  EXPECT_TRUE(result.loss.empty() && result.grad_norm.empty() && result.step_ns.all_ns.empty());
  EXPECT_EQ(result.step_ns.median_ns, 5);
  EXPECT_EQ(result.memory.by_category.size(), 1U);
}

}  // namespace
}  // namespace ridgeline
