// The tables of docs/prediction-accuracy.md match the stored data to the letter. bench/prediction/accuracy.cc prints
// them. With RIDGELINE_UPDATE_GOLDENS=1 this test rewrites the page's tables.
#include "tests/predict/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/files.h"

namespace ridgeline::predict {
namespace {

const std::filesystem::path kSourcesOfPage = RIDGELINE_SOURCE_DIR;

// A table of the page stands between two comments that name it.
TEST(Accuracy, ThePageHasWhatIsStored) {
  const std::filesystem::path file = kSourcesOfPage / "docs/prediction-accuracy.md";
  const std::string page = ReadFile(file);
  std::string as_stored = page;
  for (const AccuracyTable& table : AccuracyTables()) {
    const std::string begin = fmt::format("<!-- {} -->\n", table.name);
    const size_t from = as_stored.find(begin);
    const size_t to = as_stored.find("<!-- end -->", from);
    ASSERT_NE(to, std::string::npos) << "the page has no table '" << table.name << "'";
    as_stored.replace(from + begin.size(), to - from - begin.size(), "\n" + table.markdown + "\n");
  }
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(file, as_stored);
  EXPECT_EQ(page, as_stored) << "RIDGELINE_UPDATE_GOLDENS=1 writes the tables anew";
}

// The program's constants are the page's figures, rounded as the page rounds them.
TEST(Accuracy, TheConstantsAreThePages) {
  const std::string page = ReadFile(kSourcesOfPage / "docs/prediction-accuracy.md");
  const auto folder = kSourcesOfPage / "frameworks";
  const auto shares = [](const Efficiency& e, const std::string& power) {
    return fmt::format(" | {:.2f} | {:.2f} | {:.2f} | {} |", e.products, e.products_fp8, e.attention, power);
  };
  const Efficiency torchtitan = FindFramework("torchtitan", {folder}).efficiency;
  using ::testing::HasSubstr;
  EXPECT_THAT(page, HasSubstr("half of all rows | 28" + shares({}, fmt::format("{:.2f}", Efficiency{}.power))));
  EXPECT_THAT(page, HasSubstr("torchtitan | 17" + shares(torchtitan, fmt::format("{:.2f}", torchtitan.power))));
  EXPECT_THAT(page, HasSubstr("megatron | 30" + shares(FindFramework("megatron", {folder}).efficiency, "")));
  for (const auto& [what, factor] :
       {std::pair{
            "the configuration",
            FindFramework("torchtitan", {folder}).Spread("h100", {.tokens = 8192, .ranks = 8, .parameters = 8e9})},
        {"the GPU", kSpreadOfGpu},
        {"the program", kSpreadOfProgram},
        {"the program, but for one run", kSpreadOfOneRun},
        {"the program, but for its other configurations", kSpreadOfRuns},
        {"the program and the GPU", kSpreadOfBoth}}) {
    EXPECT_THAT(page, HasSubstr(fmt::format("| {} | {:.2f} |", what, factor)));
  }
  EXPECT_THAT(page, HasSubstr(fmt::format("lie within a factor of {:.2f}.", kSpreadHere)));
}

// The error that a framework's file claims is that of rows that were left out of the fit.
TEST(Accuracy, TheErrorOfAFileIsThePages) {
  const Framework file = FindFramework("torchtitan", {kSourcesOfPage / "frameworks"});
  EXPECT_EQ(file.time_evidence.rows, 17);
  EXPECT_THAT(
      ReadFile(kSourcesOfPage / "docs/prediction-accuracy.md"),
      ::testing::HasSubstr(fmt::format("torchtitan, each with what its other configurations set | 17 | {:.1f} %",
                                       100 * file.time_evidence.error)));
}

}  // namespace
}  // namespace ridgeline::predict
