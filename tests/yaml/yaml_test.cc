#include "yaml/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace ridgeline::yaml {
namespace {

using ::testing::HasSubstr;

Json Scalar(const std::string& text) { return ParseYaml(text).scalar; }

std::string FaultOf(const std::string& text, const YamlLimits& limits = {}) {
  try {
    ParseYaml(text, limits);
  } catch (const Fault& fault) {
    return FaultText("f.yaml", fault);
  }
  return "none";
}

TEST(Yaml, ScalarsAreThoseOfTheCoreSchema) {
  EXPECT_EQ(Scalar("8"), 8);
  EXPECT_EQ(Scalar("0x10"), 16);
  EXPECT_EQ(Scalar("1e-4"), 1e-4);
  EXPECT_EQ(Scalar("true"), true);
  EXPECT_EQ(Scalar("yes"), "yes");
  EXPECT_EQ(Scalar("\"8\""), "8");
  EXPECT_TRUE(Scalar("a: ~").is_null());
}

TEST(Yaml, CharactersMayBeEscapedAsInJson) {
  const std::string smile = "\U0001F642";
  const YamlNode node = ParseYaml(R"({"a": "x\ud83d\ude42 \\ud83d \ud83d\uDE42", "b": ["\ud83d\ude42"]})");
  EXPECT_EQ(node.entries.at(0).value.scalar, "x" + smile + " \\ud83d " + smile);
  EXPECT_EQ(node.entries.at(1).value.items.at(0).scalar, smile);
  const YamlNode mixed =
      ParseYaml("a: '\\ud83d\\ude42'\nb: \"\\ud83d\\ude42\"\nc: \\ud83d\\ude42\nd: \"\\ud83d\\ude42\"\n");
  EXPECT_EQ(mixed.entries.at(0).value.scalar, "\\ud83d\\ude42") << "in single quotes it is no escape";
  EXPECT_EQ(mixed.entries.at(1).value.scalar, smile);
  EXPECT_EQ(mixed.entries.at(2).value.scalar, "\\ud83d\\ude42");
  EXPECT_EQ(mixed.entries.at(3).value.scalar, smile);
  for (const char* half : {"\"\\ud83d\"", "\"\\ud83d\\u0041\"", "\"\\ude42\\ud83d\"", "\"\\ud83d"}) {
    EXPECT_THAT(FaultOf(half), HasSubstr("not YAML: invalid unicode")) << half;
  }
}

TEST(Yaml, EveryNodeKnowsItsPlace) {
  const YamlNode node = ParseYaml("a: 1\nb:\n  - x\n  - y\n");
  ASSERT_EQ(node.entries.size(), 2U);
  EXPECT_EQ(node.entries[1].key.place.line, 2);
  EXPECT_EQ(node.entries[1].value.items[1].place.line, 4);
  EXPECT_EQ(node.entries[1].value.items[1].place.column, 5);
}

TEST(Yaml, ReportsWhatIsNoDocumentAtItsPlace) {
  EXPECT_THAT(FaultOf("a: [1,\nb"), HasSubstr("f.yaml:2:"));
  EXPECT_THAT(FaultOf("a: 1\n---\nb: 2\n"), HasSubstr("f.yaml:2:1: a second document begins here"));
  // In these the library reads one document after another, and never ends.
  EXPECT_THAT(FaultOf("{name: x},"), HasSubstr("f.yaml:1:10: this , belongs to nothing that stands before it"));
  EXPECT_THAT(FaultOf("[a]]"), HasSubstr("f.yaml:1:4: "));
  EXPECT_THAT(FaultOf("{a: 1}}\n"), HasSubstr("f.yaml:1:7: "));
  // In these it recurses as deep as they are nested.
  for (const char* open : {"[", "{a: ", "- "}) {
    std::string deep;
    for (int i = 0; i < 200'000; ++i) deep += open;
    EXPECT_THAT(FaultOf(deep), HasSubstr("nested too deeply")) << open;
  }
  EXPECT_THAT(FaultOf("a: !!python/object x"), HasSubstr("the tag"));
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [*a" + before + ", *a" + before + "]\n";
  }
  EXPECT_NE(FaultOf(bomb), "none");
}

// Each of a file's budgets has one sentence, with the place where the budget is used up.
TEST(Yaml, RefusesWhatTakesTooMuch) {
  EXPECT_EQ(FaultOf("a: [1, 2]\n", {.bytes = 9}), "f.yaml:1:1: the file is larger than 9 B");
  EXPECT_EQ(FaultOf("a: [1, 2]\n", {.bytes = 10}), "none");
  EXPECT_EQ(FaultOf("a:\n- 1\n- 2\n- 3\n", {.nodes = 5}),
            "f.yaml:4:3: with this the file holds more than 5 values, its aliases written out");
  EXPECT_EQ(FaultOf("a:\n- 1\n- 2\n- 3\n", {.nodes = 6}), "none");
  EXPECT_EQ(FaultOf("[long, words]", {.text_bytes = 8}),
            "f.yaml:1:8: with this the file holds more than 8 B of text, its aliases written out");
  EXPECT_EQ(FaultOf("{a: {b: {c: 1}}}", {.depth = 2}), "f.yaml:1:9: this is nested too deeply");
  EXPECT_EQ(FaultOf("{a: {b: 1}}", {.depth = 2}), "none");
  EXPECT_THAT(FaultOf("a: 1\n", {.time = std::chrono::nanoseconds(-1)}),
              HasSubstr("f.yaml:1:1: in -1e-09 s of a processor reading came as far as this"));
}

// The contents of an alias count each time it is used, so a "billion laughs" bomb is refused.
TEST(Yaml, CountsWhatAliasesUnfoldTo) {
  const std::string text = "a: &x [1, 2, 3]\nb: [*x, *x]\n";
  // 3 for the mapping and its keys, 4 for the list, 4 for its anchor, 1 for the other list and 4 for each alias.
  EXPECT_EQ(FaultOf(text, {.nodes = 20}), "none");
  EXPECT_THAT(FaultOf(text, {.nodes = 19}), HasSubstr("f.yaml:2:9: with this the file holds more than 19 values"));
  const YamlNode node = ParseYaml(text);
  EXPECT_EQ(node.entries[1].value.items[1].items[2].scalar, 3);

  // Few values, but much text.
  const std::string words = "a: &x " + std::string(100'000, 'x') + "\nb: [*x";
  std::string aliases;
  for (int i = 0; i < 1000; ++i) aliases += ", *x";
  EXPECT_THAT(FaultOf(words + aliases + "]"), HasSubstr("more than 67.1 MB of text"));
  // Nested anchors: each is a copy of everything in it.
  std::string nested;
  for (int i = 0; i < 60; ++i) nested += "&a" + std::to_string(i) + " [";
  for (int i = 0; i < 50'000; ++i) nested += "1, ";
  EXPECT_THAT(FaultOf(nested + std::string(60, ']')), HasSubstr("more than 2000000 values"));
}

TEST(Yaml, AnAliasOfWhatItStandsInIsAFault) {
  EXPECT_THAT(FaultOf("a: &x [1, *x]\n"), HasSubstr("f.yaml:1:11: this alias stands for something that contains it"));
  EXPECT_THAT(FaultOf("&x {a: *x}\n"), HasSubstr("f.yaml:1:8: this alias stands for"));
  EXPECT_NE(FaultOf("a: *nobody\n"), "none");
}

TEST(Yaml, IsUtf8WithoutControls) {
  EXPECT_EQ(FaultOf("a: \xff\n"), "f.yaml:1:4: the byte \\xff is no UTF-8");
  EXPECT_EQ(FaultOf("# é\nb: \x1b[2J\n"), "f.yaml:2:4: the control character \\x1b cannot stand in YAML");
  EXPECT_EQ(FaultOf("a: \xC2\x9B"), "f.yaml:1:4: the control character \\u009b cannot stand in YAML");
  EXPECT_EQ(FaultOf("a: é\xED\xA0\x80"), "f.yaml:1:5: the byte \\xed is no UTF-8");
  EXPECT_EQ(FaultOf("\xEF\xBB\xBF"
                    "a: 漢 \xC2\x85\n"),
            "none");  // a byte-order mark, and an old kind of line end
  EXPECT_EQ(ParseYaml("\"\\x1b\\u202e\"").scalar,
            "\x1b\xE2\x80\xAE");  // an escaped character is the author's own choice
}

TEST(Yaml, FaultsAreOneLineThatAPersonReads) {
  const std::string fault = FaultOf("a: !" + std::string(10'000, 't') + " x");
  EXPECT_LT(fault.size(), 600U);
  EXPECT_EQ(FaultText("f\x1b.yaml", {{3, 4}, "'a\nb\xE2\x80\xAE' is wrong"}),
            "f\\x1b.yaml:3:4: 'a\\nb\\u202e' is wrong");
  EXPECT_LT(Describe(ParseYaml(std::string(10'000, 'x'))).size(), 200U);
}

TEST(Yaml, UnknownTagsAreFaultsOfWhateverTheyTag) {
  for (const char* text : {"a: !!python/object x", "a: !thing [1]", "a: !thing {b: 1}", "!thing x"}) {
    EXPECT_THAT(FaultOf(text), HasSubstr("is not known here")) << text;
  }
  EXPECT_EQ(FaultOf("!!map {a: !!seq [1], b: !!str 2}"), "none");
}

TEST(Yaml, DescribesWhatJsonHasNoWordFor) {
  EXPECT_EQ(Describe(ParseYaml(".nan")), "nan");
  EXPECT_EQ(Describe(ParseYaml("-.inf")), "-inf");
  EXPECT_EQ(Describe(ParseYaml("1.5")), "1.5");
  EXPECT_EQ(Describe(ParseYaml("\"8\"")), "\"8\"");
  EXPECT_EQ(Describe(ParseYaml("[1]")), "a list");
}

TEST(Yaml, FaultsAreThrownSortedAndNotWithoutEnd) {
  std::vector<Fault> faults;
  for (int line = 100; line > 0; --line) faults.push_back({{line, 1}, "wrong"});
  try {
    ThrowFaults("f.yaml", faults, "look there");
  } catch (const Error& error) {
    EXPECT_TRUE(error.message().starts_with("f.yaml:1:1: wrong\nf.yaml:2:1: wrong\n")) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("and 50 more"));
    EXPECT_EQ(error.hint(), "look there");
  }
}

}  // namespace
}  // namespace ridgeline::yaml
