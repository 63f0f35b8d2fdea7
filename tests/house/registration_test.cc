// Every test that is written is run: each case of each tests/**/*_test.cc is a test of CTest's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
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

// What a build without the CUDA toolkit leaves out: by its folder, or by what the source asks for.
bool IsLeftOut(const std::string& file, const std::map<std::string, std::string>& registered) {
  if (registered.contains((SourceDir() / "tests/cuda_on_cpu/faults_test.cc").string())) return false;
  for (const char* folder : {"tests/cuda_on_cpu/", "tests/engine/device/cuda/", "tests/engine/comm/nccl/"}) {
    if (file.starts_with(folder)) return true;
  }
  const std::string text = ReadFile(SourceDir() / file);
  return text.find("#ifdef RIDGELINE_CUDA_TESTS\n") != std::string::npos ||
         text.find("#ifdef RIDGELINE_CUDA_ON_CPU\n") != std::string::npos;
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
  const auto files = FilesBelow("tests", {"_test.cc"});
  EXPECT_GT(files.size(), 10U);
  for (const std::string& file : files) {
    if (IsLeftOut(file, registered)) continue;
    EXPECT_TRUE(registered.contains((SourceDir() / file).string()))
        << file << " is built into no test program: see rl_test in cmake/options.cmake";
  }
}

TEST(Registration, EveryTestIsRunByCTest) {
#ifdef RIDGELINE_SANITIZED
  GTEST_SKIP() << "under sanitizers CTest runs programs, not cases";
#endif
  const Captured listed = ridgeline::Run({"ctest", "--test-dir", RIDGELINE_BINARY_DIR, "-N"});
  ASSERT_TRUE(listed.status.ok()) << listed.stderr_text;
  std::set<std::string> known;
  static const std::regex pattern(R"(\s*Test\s+#\d+: (.*?)(?: \(Disabled\))?)");
  for (const std::string& line : Lines(listed.stdout_text)) {
    std::smatch match;
    if (std::regex_match(line, match, pattern)) known.insert(CaseOf(match[1]));
  }
  const auto registered = Registered();
  for (const auto& [source, program] : registered) {
    if (IsLeftOut(std::filesystem::path(source).lexically_relative(SourceDir()).string(), registered)) continue;
    if (!std::filesystem::exists(program)) continue;  // CTest itself fails for it: <program>_NOT_BUILT
    for (const std::string& name : CasesIn(ReadFile(source))) {
      EXPECT_TRUE(known.contains(name)) << source << ": " << name << " is not one of CTest's tests";
    }
  }
}

TEST(Registration, NoTestIsSwitchedOff) {
  for (const std::string& file : FilesBelow("tests", {"_test.cc"})) {
    for (const std::string& name : CasesIn(ReadFile(SourceDir() / file))) {
      EXPECT_EQ(name.find("DISABLED_"), std::string::npos) << file << ": " << name;
    }
  }
}

}  // namespace
}  // namespace ridgeline
