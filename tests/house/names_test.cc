// Each room of src/ has a namespace, and its files open that one and no other. A type's name stands in one header of
// its namespace: two classes of one name whose inline members are linked into one program are one to the linker, which
// takes the members of either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

// "ridgeline::store" for src/store/store.h and for tests/store/store_test.cc; "ridgeline" for the shared vocabulary and
// for files of no room.
std::string NamespaceOf(const std::string& file) {
  static const std::regex kRoom("(?:src|tests)/([^/]+)/.*");
  std::smatch match;
  if (!std::regex_match(file, match, kRoom)) return "ridgeline";
  const std::string room = match[1];
  if (room == "base" || room == "run" || !std::filesystem::is_directory(SourceDir() / "src" / room)) return "ridgeline";
  return "ridgeline::" + room;
}

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

// The namespaces with a name that a file opens at the beginning of a line, from the outermost to what is in it. Blocks
// of nothing but forward declarations are left out: they say what other namespaces have.
std::vector<std::string> NamespacesOf(const std::string& text) {
  static const std::regex kOpens(R"(^namespace ([\w:]+) \{$)");
  static const std::regex kForward(R"(^(?:(?:class|struct|enum class) [\w ,:]+;|template <.*|//.*|)$)");
  std::vector<std::string> namespaces;
  const std::vector<std::string> lines = Lines(text);
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    std::smatch match;
    if (!std::regex_match(*line, match, kOpens)) continue;
    const auto other =
        std::find_if(line + 1, lines.end(), [](const std::string& each) { return !std::regex_match(each, kForward); });
    const bool only_forward = other != lines.end() && (*other == "}" || *other == "}  // namespace " + match[1].str());
    if (!only_forward) namespaces.push_back(match[1]);
  }
  return namespaces;
}

TEST(Names, ReadsTheNamesOfTypesFromHeaders) {
  EXPECT_THAT(TypesOf("class A {\nstruct B final : public A {\nenum class C {\n  struct Inner {\nstruct D::Impl {\n"
                      "class E;\nstruct F : G {\n"),
              ::testing::ElementsAre("A", "B", "C", "F"));
}

TEST(Names, EachTypeNameIsInOneHeaderOfItsNamespace) {
  std::map<std::string, std::map<std::string, std::string>> first;  // by namespace and name
  size_t types = 0;
  for (const std::string& file : FilesBelow("src", {".h", ".cuh"})) {
    // What is compiled for each class of processor is in HWY_NAMESPACE.
    const std::string space = NamespaceOf(file) + (file.ends_with("-inl.h") ? "::HWY_NAMESPACE" : "");
    for (const std::string& type : TypesOf(ReadFile(SourceDir() / file))) {
      ++types;
      const auto [it, is_new] = first[space].emplace(type, file);
      EXPECT_TRUE(is_new) << type << " is a type of " << it->second << " and of " << file;
    }
  }
  EXPECT_GT(types, 300U) << "the headers were not read";
  for (const auto& [space, names] : first) {
    for (const auto& [type, file] : names) {
      if (space == "ridgeline") continue;
      const auto shared = first["ridgeline"].find(type);
      EXPECT_TRUE(shared == first["ridgeline"].end())
          << type << " of " << file << " hides that of " << shared->second << ", which every room may use";
    }
  }
}

TEST(Names, ARoomHasItsNamespace) {
  EXPECT_EQ(NamespaceOf("src/base/error.h"), "ridgeline");
  EXPECT_EQ(NamespaceOf("src/run/spec.h"), "ridgeline");
  EXPECT_EQ(NamespaceOf("src/store/store.h"), "ridgeline::store");
  EXPECT_EQ(NamespaceOf("src/engine/ops/cuda/gemm.cc"), "ridgeline::engine");
  EXPECT_EQ(NamespaceOf("tests/store/store_test.cc"), "ridgeline::store");
  EXPECT_EQ(NamespaceOf("tests/house/names_test.cc"), "ridgeline");
}

TEST(Names, ReadsWhichNamespacesAFileOpens) {
  const std::string text =
      "namespace other {\nclass A;\nenum class B : int;\n// Why.\ntemplate <typename T>\nstruct C;\n"
      "}  // namespace other\nnamespace CLI {\nclass App;\n}\n\n"
      "namespace ridgeline::room {\nnamespace {\nclass D;\n}  // namespace\nvoid E();\n"
      "namespace words {\nint f;\n}  // namespace words\n}  // namespace ridgeline::room\n"
      "namespace ridgeline {\nclass G;\nint h;\n}  // namespace ridgeline\n";
  EXPECT_THAT(NamespacesOf(text), ::testing::ElementsAre("ridgeline::room", "words", "ridgeline"));
}

TEST(Names, EachFileOfARoomOpensItsNamespaceAndNoOther) {
  // Programs, which are in no namespace, and a header of macros.
  const std::set<std::string> none = {"src/cli/main.cc", "src/engine/cli/train_main.cc",
                                      "src/engine/cli/train_cuda_main.cc", "src/engine/tensor/host_device.h"};
  size_t files = 0;
  for (const std::string& file : FilesBelow("src", {".h", ".cc", ".cu", ".cuh"})) {
    ++files;
    const std::string space = NamespaceOf(file);
    const std::vector<std::string> opened = NamespacesOf(ReadFile(SourceDir() / file));
    EXPECT_EQ(opened.empty(), none.contains(file)) << file << " opens " << opened.size() << " namespaces";
    for (const std::string& each : opened) {
      const bool part = space != "ridgeline" && each.starts_with(space + "::");  // ridgeline::report::svg
      const bool within = !each.starts_with("ridgeline") && each != opened.front();
      EXPECT_TRUE(each == space || part || within) << file << " opens " << each << ", and not " << space;
    }
  }
  EXPECT_GT(files, 500U) << "the sources were not read";
}

// What tests share stands in namespaces of its own, such as ridgeline::testing.
TEST(Names, TestsOfARoomAreInItsNamespace) {
  for (const std::string& file : FilesBelow("tests", {".h", ".cc", ".cu"})) {
    if (NamespaceOf(file) == "ridgeline") continue;
    for (const std::string& each : NamespacesOf(ReadFile(SourceDir() / file))) {
      EXPECT_NE(each, "ridgeline") << file << ": its namespace is " << NamespaceOf(file);
    }
  }
}

}  // namespace
}  // namespace ridgeline
