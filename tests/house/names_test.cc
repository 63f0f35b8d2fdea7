// A type's name stands in one header: rooms share a namespace, and two classes of one name whose inline members are
// linked into one program are one to the linker, which takes the members of either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

// "class Name {", "struct Name : Base {", "enum class Name {" at the beginning of a line; not "struct Outer::Inner {".
std::vector<std::string> TypesOf(const std::string& text) {
  static const std::regex kType(R"(^(?:class|struct|enum class) (\w+)(?: final)?(?: :[^:].*)? \{)");
  std::vector<std::string> types;
  for (const std::string& line : Lines(text)) {
    std::smatch match;
    if (std::regex_search(line, match, kType)) types.push_back(match[1]);
  }
  return types;
}

TEST(Names, ReadsTheNamesOfTypesFromHeaders) {
  EXPECT_THAT(TypesOf("class A {\nstruct B final : public A {\nenum class C {\n  struct Inner {\nstruct D::Impl {\n"
                      "class E;\nstruct F : G {\n"),
              ::testing::ElementsAre("A", "B", "C", "F"));
}

TEST(Names, EachTypeNameIsInOneHeader) {
  std::map<std::string, std::string> first;
  size_t types = 0;
  for (const std::string& file : FilesBelow("src", {".h"})) {
    for (const std::string& type : TypesOf(ReadFile(SourceDir() / file))) {
      ++types;
      const auto [it, is_new] = first.emplace(type, file);
      EXPECT_TRUE(is_new) << type << " is a type of " << it->second << " and of " << file;
    }
  }
  EXPECT_GT(types, 300U) << "the headers were not read";
}

}  // namespace
}  // namespace ridgeline
