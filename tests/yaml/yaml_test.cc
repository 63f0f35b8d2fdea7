#include "yaml/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

Json Scalar(const std::string& text) { return ParseYaml(text).scalar; }

std::string FaultOf(const std::string& text) {
  try {
    ParseYaml(text);
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

TEST(Yaml, EveryNodeKnowsItsPlace) {
  const YamlNode node = ParseYaml("a: 1\nb:\n  - x\n  - y\n");
  ASSERT_EQ(node.entries.size(), 2U);
  EXPECT_EQ(node.entries[1].key.place.line, 2);
  EXPECT_EQ(node.entries[1].value.items[1].place.line, 4);
  EXPECT_EQ(node.entries[1].value.items[1].place.column, 5);
}

TEST(Yaml, WhatIsNoDocumentIsAFaultWithAPlace) {
  EXPECT_THAT(FaultOf("a: [1,\nb"), HasSubstr("f.yaml:2:"));
  EXPECT_THAT(FaultOf("a: 1\n---\nb: 2\n"), HasSubstr("f.yaml:2:1: a second document begins here"));
  // Of these the library reads one document after another, and never comes to an end.
  EXPECT_THAT(FaultOf("{name: x},"), HasSubstr("f.yaml:1:10: this , belongs to nothing that stands before it"));
  EXPECT_THAT(FaultOf("[a]]"), HasSubstr("f.yaml:1:4: "));
  EXPECT_THAT(FaultOf("{a: 1}}\n"), HasSubstr("f.yaml:1:7: "));
  // And of these it goes as deep as they do.
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
}  // namespace ridgeline
