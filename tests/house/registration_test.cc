// Every test that is written is run: each case of each tests/**/*_test.cc is a test of CTest's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

// "Suite.Name" of every case in a source.
std::set<std::string> CasesIn(const std::string& text) {
  static const std::regex pattern(R"((?:^|\n)(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\))");
  std::set<std::string> cases;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    cases.insert((*at)[1].str() + "." + (*at)[2].str());
  }
  return cases;
}

// "Suite.Name" of what CTest calls Suite.Name, Instance/Suite.Name/value or Suite/0.Name<Type>.
std::string CaseOf(std::string name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return name;
  std::string suite = name.substr(0, dot);
  name = name.substr(dot + 1);
  name = name.substr(0, name.find_first_of("/<"));
  static const std::regex index("/[0-9]+$");
  suite = std::regex_replace(suite, index, "");
  suite = suite.substr(suite.rfind('/') == std::string::npos ? 0 : suite.rfind('/') + 1);
  return suite + "." + name;
}

// Source -> the program it was compiled into, as rl_test wrote it down.
std::map<std::string, std::string> Registered() {
  std::map<std::string, std::string> programs;
  for (const std::string& line : Lines(ReadFile(std::filesystem::path(RIDGELINE_BINARY_DIR) / "tests/sources.txt"))) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) programs[line.substr(0, space)] = line.substr(space + 1);
  }
  return programs;
}

// Case -> how many tests CTest has of it; with a label, how many of those with that label.
std::map<std::string, int> TestsOfCTest(const std::string& label = "") {
  std::vector<std::string> command{"ctest", "--test-dir", RIDGELINE_BINARY_DIR, "-N"};
  if (!label.empty()) command.insert(command.end(), {"-L", "^" + label + "$"});
  const Captured listed = ridgeline::Run(command);
  EXPECT_TRUE(listed.status.ok()) << listed.stderr_text;
  static const std::regex pattern(R"(\s*Test\s+#\d+: (.*?)(?: \(Disabled\))?)");
  std::map<std::string, int> tests;
  for (const std::string& line : Lines(listed.stdout_text)) {
    std::smatch match;
    if (std::regex_match(line, match, pattern)) ++tests[CaseOf(match[1])];
  }
  return tests;
}

// A case of which a build with the CUDA toolkit has tests that a build without it lacks.
struct AddedCase {
  int tests = 0;
  bool new_case = true;  // false: a build without the toolkit has the case, too, on other targets
  bool operator==(const AddedCase&) const = default;
};
std::ostream& operator<<(std::ostream& out, const AddedCase& added) {
  return out << added.tests << (added.new_case ? " of a new case" : " of a case that every build has");
}
using AddedCases = std::map<std::string, AddedCase>;

std::filesystem::path AddedFile() { return SourceDir() / "tests/golden/cuda/tests.tsv"; }

AddedCases ReadAdded() {
  AddedCases cases;
  for (const std::string& line : Lines(ReadFile(AddedFile()))) {
    if (line.starts_with("#")) continue;
    const size_t tab = line.find('\t');
    cases[line.substr(0, tab)] = {std::stoi(line.substr(tab + 1)), line.ends_with("new")};
  }
  return cases;
}

std::string WrittenAdded(const AddedCases& cases) {
  std::string text =
      "# Tests that need the CUDA toolkit. Columns: case, tests, and whether the case is new with it or has more "
      "tests.\n"
      "# To write this file: RIDGELINE_UPDATE_GOLDENS=1 build/tests/test_house\n";
  for (const auto& [name, added] : cases) {
    text += fmt::format("{}\t{}\t{}\n", name, added.tests, added.new_case ? "new" : "more");
  }
  return text;
}

bool HasEmulatedMachine(const std::map<std::string, std::string>& registered) {
  return registered.contains((SourceDir() / "tests/cuda_on_cpu/faults_test.cc").string());
}

// The cases that this build may lack.
std::set<std::string> CasesLeftOut(const std::map<std::string, std::string>& registered) {
  std::set<std::string> cases;
  if (HasEmulatedMachine(registered)) return cases;
  for (const auto& [name, added] : ReadAdded()) {
    if (added.new_case) cases.insert(name);
  }
  return cases;
}

TEST(Registration, CasesAreFoundInSources) {
  EXPECT_THAT(
      CasesIn("TEST(A, One) {\nTEST_F(B, Two) {\n TEST(Not, This)\n// TEST(Nor, This)\nTEST_P(\n    C, Three) {\n"
              "TYPED_TEST(D, Four) {\n"),
      testing::ElementsAre("A.One", "B.Two", "C.Three", "D.Four"));
}

TEST(Registration, CasesAreFoundInCTestsNames) {
  EXPECT_EQ(CaseOf("A.One"), "A.One");
  EXPECT_EQ(CaseOf("Every/C.Three/llama_bf16"), "C.Three");
  EXPECT_EQ(CaseOf("C.Three/2.5"), "C.Three");
  EXPECT_EQ(CaseOf("D/0.Four<float>"), "D.Four");
}

TEST(Registration, EveryTestSourceIsBuilt) {
  const auto registered = Registered();
  const auto left_out = CasesLeftOut(registered);
  const auto files = FilesBelow("tests", {"_test.cc"});
  EXPECT_GT(files.size(), 10U);
  for (const std::string& file : files) {
    if (registered.contains((SourceDir() / file).string())) continue;
    const auto cases = CasesIn(ReadFile(SourceDir() / file));
    EXPECT_TRUE(!cases.empty() && std::includes(left_out.begin(), left_out.end(), cases.begin(), cases.end()))
        << file << " is built into no test program: see rl_test in cmake/options.cmake, and " << AddedFile();
  }
}

TEST(Registration, EveryTestIsRunByCTest) {
  const auto known = TestsOfCTest();
  const auto registered = Registered();
  const auto left_out = CasesLeftOut(registered);
  for (const auto& [source, program] : registered) {
    if (!std::filesystem::exists(program)) continue;  // CTest itself fails for it: <program>_NOT_BUILT
    if (known.contains(std::filesystem::path(program).filename().string())) continue;  // it is one test
    for (const std::string& name : CasesIn(ReadFile(source))) {
      EXPECT_TRUE(known.contains(name) || left_out.contains(name))
          << source << ": " << name << " is not one of CTest's tests";
    }
  }
}

TEST(Registration, TheListOfTheToolkitsTestsIsRight) {
  const auto registered = Registered();
  const auto known = TestsOfCTest();
  for (const auto& [name, tests] : known) {
    ASSERT_FALSE(name.ends_with("_NOT_BUILT")) << name << ": build all tests first";
  }
  const auto labelled = TestsOfCTest("cuda");
  AddedCases found;
  for (const auto& [name, tests] : labelled) found[name] = {tests, tests == known.at(name)};
  if (HasEmulatedMachine(registered)) {
    if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(AddedFile(), WrittenAdded(found));
    EXPECT_EQ(found, ReadAdded()) << "of what CTest labels cuda and of " << AddedFile()
                                  << ", whose first lines say more";
    return;
  }
  EXPECT_EQ(std::getenv("RIDGELINE_UPDATE_GOLDENS"), nullptr) << "a build without the toolkit cannot write its tests";
  // Where the toolkit is but no emulated machine, on another processor than x86_64, some are there.
  for (const auto& [name, added] : ReadAdded()) {
    EXPECT_EQ(known.contains(name), labelled.contains(name) || !added.new_case)
        << name << ": " << AddedFile() << " says that a build without the toolkit "
        << (added.new_case ? "lacks" : "has") << " this case";
  }
}

// Every build checks the form, so that a person who edits the file by hand needs no toolkit to get it right.
TEST(Registration, TheListOfTheToolkitsTestsHasItsForm) { EXPECT_EQ(ReadFile(AddedFile()), WrittenAdded(ReadAdded())); }

TEST(Registration, NoTestIsSwitchedOff) {
  for (const std::string& file : FilesBelow("tests", {"_test.cc"})) {
    for (const std::string& name : CasesIn(ReadFile(SourceDir() / file))) {
      EXPECT_EQ(name.find("DISABLED_"), std::string::npos) << file << ": " << name;
    }
  }
}

}  // namespace
}  // namespace ridgeline
