// The kit for jobs that share no folder with us, and the lines in which they report.
#include "common/remote_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "ridgeline/job_dir.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/manual_clock.h"

namespace ridgeline::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

JobLine LongLine(const std::string& id = "a") {
  std::string payload = "{\"x\": \"";
  while (payload.size() < 3 * kMostPrintedBytes) payload += "0123456789 \u00e9";
  return {std::string(kResultLine), id, payload + "\"}"};
}

TEST(PrintedLines, AreNoLongerThanServicesKeepAndAreJoinedAgain) {
  const JobLine line = LongLine();
  const std::vector<std::string> lines = LinesOf(FormatPrintedLines(line));
  EXPECT_EQ(lines.size(), 4U);
  JobLineJoiner joiner;
  std::vector<JobLine> joined;
  for (const std::string& text : lines) {
    EXPECT_LT(text.size(), kMostPrintedBytes);
    const auto piece = ParseJobLine(text);
    ASSERT_TRUE(piece);
    EXPECT_EQ(BytesOfWholeCharacters(piece->payload, piece->payload.size()), piece->payload.size());
    if (const auto whole = joiner.Join(*piece)) joined.push_back(*whole);
  }
  EXPECT_THAT(joined, ElementsAre(line));
  EXPECT_EQ(FormatPrintedLines({"result", "a", "{}"}), FormatJobLine({"result", "a", "{}"})) << "short ones are whole";
}

TEST(PrintedLines, LinesOfTwoNodesMayBeMixedAndThoseOfOneMayRepeat) {
  const std::vector<std::string> of_a = LinesOf(FormatPrintedLines(LongLine("a")));
  const std::vector<std::string> of_b = LinesOf(FormatPrintedLines(LongLine("b")));
  JobLineJoiner joiner;
  std::vector<std::string> joined;
  const auto take = [&](const std::string& text) {
    if (const auto whole = joiner.Join(*ParseJobLine(text))) joined.push_back(whole->point_id);
  };
  for (size_t i = 0; i < 2; ++i) take(of_a[i]);  // a stream broke off here
  for (size_t i = 0; i < of_a.size(); ++i) {
    take(of_a[i]);
    take(of_b[i]);
  }
  EXPECT_THAT(joined, ElementsAre("a", "b"));
}

TEST(PrintedLines, ALineThatLacksAPieceIsIgnored) {
  const std::vector<std::string> lines = LinesOf(FormatPrintedLines(LongLine()));
  JobLineJoiner joiner;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 1) {
      EXPECT_FALSE(joiner.Join(*ParseJobLine(lines[i]))) << i;
    }
  }
  for (const char* payload : {"", "result", "result 1 1 sum", "result 0 1 sum x", "result 2 1 sum x",
                              "result 1 1 sum x", "result -1 99999999999999999999 sum x"}) {
    EXPECT_FALSE(joiner.Join({std::string(kPieceLine), "a", payload})) << payload;
  }
}

class RemoteJob : public ::testing::Test {
 protected:
  static std::string Line(const std::string& id, const std::string& payload) {
    std::string line = FormatJobLine({std::string(kResultLine), id, payload});
    line.pop_back();
    return line;
  }
  JobOutput Output() const { return {dir_.path(), {"a", "b"}}; }
  TempDir dir_;
};

TEST_F(RemoteJob, KeepsALongResultOnceAsOneLine) {
  const JobLine line = LongLine();
  JobOutput output = Output();
  for (int again = 0; again < 2; ++again) {
    for (const std::string& text : LinesOf(FormatPrintedLines(line))) output.TakeLine(text);
    output.Rewind();
  }
  EXPECT_EQ(ReadFile(ResultsFile(dir_.path())), FormatJobLine(line));
}

TEST_F(RemoteJob, AJobThatEndedWithoutAResultSaysWhyItsEndIsUnknown) {
  JobOutput output = Output();
  output.TakeLine(Line("a", "{}"));
  output.TakeLine("last words");
  Evidence evidence = {{"exit_code", "0"}};
  output.CompleteEnd("", "keep its folder", evidence);
  EXPECT_THAT(evidence.at("message"), HasSubstr("its log has no result of this point"));
  EXPECT_EQ(evidence.at("hint"), "keep its folder");
  EXPECT_THAT(evidence.at("log_tail"), HasSubstr("last words"));
  EXPECT_TRUE(std::filesystem::exists(PointDir(dir_.path(), "b"))) << "it may have begun";
}

TEST_F(RemoteJob, AJobWithAllResultsNeedsNoExplanation) {
  JobOutput output = Output();
  for (const char* id : {"a", "b"}) output.TakeLine(Line(id, "{}"));
  Evidence evidence = {{"exit_code", "0"}};
  output.CompleteEnd("", "keep its folder", evidence);
  EXPECT_THAT(evidence, ElementsAre(std::pair("exit_code", "0")));
}

TEST_F(RemoteJob, WaitsSomeTimeForItsLastOutput) {
  testing::ManualClock clock;
  LastOutput last(clock);
  EXPECT_TRUE(last.MayCome(false));
  clock.Later(std::chrono::seconds(9));
  EXPECT_TRUE(last.MayCome(false));
  EXPECT_FALSE(last.MayCome(true)) << "it has come";
  clock.Later(std::chrono::seconds(2));
  EXPECT_FALSE(last.MayCome(false)) << "it will not come";
}

TEST_F(RemoteJob, GetsThePathsOfTheOtherMachine) {
  const Json job = {{"exec", {"/here/ridgeline", "exec", "/here/job.json"}}, {"job_file", "/here/job.json"}};
  EXPECT_TRUE(ReadsJobFile(job));
  EXPECT_THAT(
      ExecThere(job, {{"ridgeline"}, "/job", "/work/jobs/rl-1", "/sum"}),
      ElementsAre("ridgeline", "exec", "--print-results", "--summary", "/sum", "--job-dir", "/work/jobs/rl-1", "/job"));
  const Json other = {{"exec", {"/bin/sh", "-c", "true"}}};
  EXPECT_FALSE(ReadsJobFile(other));
  EXPECT_THAT(ExecThere(other, {{"/bin/sh"}, "/job", "/work", ""}), ElementsAre("/bin/sh", "-c", "true"));
}

TEST_F(RemoteJob, AJobWithABadResultsFileHasNoResults) {
  ASSERT_EQ(::mkfifo(ResultsFile(dir_.path()).c_str(), 0600), 0);
  EXPECT_FALSE(Output().HasAll());
  std::filesystem::remove(ResultsFile(dir_.path()));
  WriteFile(ResultsFile(dir_.path()), FormatJobLine({std::string(kResultLine), "a", "{}"}));
  EXPECT_TRUE(Output().AnyBegan());
  std::filesystem::resize_file(ResultsFile(dir_.path()), std::uintmax_t{1} << 40);
  EXPECT_FALSE(Output().AnyBegan()) << "it is too long to be read";
}

TEST_F(RemoteJob, HasASecretOfItsOwn) {
  EXPECT_EQ(NewSecret().size(), 64U);
  EXPECT_NE(NewSecret(), NewSecret());
}

TEST_F(RemoteJob, HasTextInPartsBetweenCharacters) {
  EXPECT_THAT(TextParts("", 3), IsEmpty());
  EXPECT_THAT(TextParts("ab\u00e9cd", 3), ElementsAre("ab", "\u00e9c", "d"));
  EXPECT_THAT(TextParts("\x80\x80\x80\x80", 3), ElementsAre("\x80\x80\x80", "\x80")) << "which is no text";
}

}  // namespace
}  // namespace ridgeline::plugin
