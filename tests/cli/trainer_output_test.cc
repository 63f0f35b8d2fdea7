// A trainer's output among the lines of `ridgeline exec`.
#include "cli/trainer_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "ridgeline/job_line.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TrainerOutputTest : public ::testing::Test {
 protected:
  TrainerOutputTest() { Say(""); }
  void Say(const std::string& text) const { std::ofstream(dir_ / "log", std::ios::app) << text; }

  TempDir dir_;
};

TEST_F(TrainerOutputTest, IsToldInWholeLinesAsItComes) {
  TrainerOutput output(dir_ / "log");
  EXPECT_EQ(output.Next(false), "");
  Say("step 1\nstep");
  EXPECT_EQ(output.Next(false), "| step 1\n");
  EXPECT_EQ(output.Next(false), "");
  Say(" 2\n\n50%\r100%\rlast words");
  EXPECT_EQ(output.Next(false), "| step 2\n| 50%\n| 100%\n");
  EXPECT_EQ(output.Next(true), "| last words\n");
  EXPECT_EQ(output.Next(true), "");
}

TEST_F(TrainerOutputTest, AFloodIsCutToTheNewestLinesAndTheCutIsReported) {
  TrainerOutput output(dir_ / "log");
  for (int i = 0; i < 100'000; ++i) Say("line " + std::to_string(i) + "\n");
  const std::string told = output.Next(false);
  EXPECT_LT(told.size(), 16'000U);
  EXPECT_THAT(told, StartsWith("| … 1.08 MB are left out here\n| line "));
  EXPECT_THAT(told, HasSubstr("| line 99999\n"));
  Say("and on\n");
  EXPECT_EQ(output.Next(true), "| and on\n");
}

TEST_F(TrainerOutputTest, ALineWithoutEndIsCut) {
  TrainerOutput output(dir_ / "log");
  Say(std::string(5000, 'x'));
  const std::string told = output.Next(false);
  EXPECT_EQ(told, "| " + std::string(1000, 'x') + " …\n");
  Say(std::string(1'000'000, '\0') + "\nend\n");
  EXPECT_THAT(output.Next(true), HasSubstr("| end\n"));
}

TEST_F(TrainerOutputTest, AMissingFileOrAFolderGivesNoOutput) {
  EXPECT_EQ(TrainerOutput(dir_ / "nowhere").Next(true), "");
  EXPECT_EQ(TrainerOutput(dir_.path()).Next(true), "");
}

TEST_F(TrainerOutputTest, CannotPretendToBeALineOfTheJob) {
  const std::string forged = FormatJobLine({std::string(kResultLine), "0123", "{\"status\": \"ok\"}"});
  TrainerOutput output(dir_ / "log");
  Say(forged + "\x1b[1K\r" + forged + "prefix " + forged);
  std::istringstream lines(output.Next(true));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    // No search finds it, neither at the beginning of a line nor behind a log's prefix.
    for (size_t at = line.find('r'); at != std::string::npos; at = line.find('r', at + 1)) {
      EXPECT_FALSE(ParseJobLine(line.substr(at))) << line;
    }
    EXPECT_THAT(line, Not(HasSubstr(std::string(kJobLineMark))));
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  }
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace ridgeline::cli
