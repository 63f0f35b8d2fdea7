// What the Kubernetes launcher keeps of its jobs on disk: results from logs, and the journal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"
#include "common/remote_job.h"
#include "kubernetes/journal.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using ::testing::HasSubstr;

class KubernetesResults : public ::testing::Test {
 protected:
  static std::string Line(const std::string& id, const std::string& payload, std::string_view kind = kResultLine) {
    std::string line = FormatJobLine({std::string(kind), id, payload});
    line.pop_back();
    return line;
  }
  Record MakeRecord() const {
    Record record;
    record.key = "rl-1";
    record.job_dir = dir_.path();
    record.points = {"a", "b"};
    return record;
  }
  plugin::JobOutput Output() const { return {dir_.path(), {"a", "b"}}; }
  std::string Of(const std::string& id) const {
    std::string payload;
    std::ifstream file(ResultsFile(dir_.path()));
    for (std::string text; std::getline(file, text);) {
      if (const auto line = ParseJobLine(text); line && line->point_id == id) payload = line->payload;
    }
    return payload;
  }

  TempDir dir_;
};

TEST_F(KubernetesResults, TakesWholeLinesOfItsOwnPoints) {
  plugin::JobOutput results = Output();
  results.TakeLine("some words");
  results.TakeLine(Line("a", "3 10 5.5", kProgressLine));
  EXPECT_EQ(ReadFile(dir_ / "points/a/progress"), "3 10 5.5\n");
  results.TakeLine(Line("a", "{\"x\": 1}"));
  EXPECT_EQ(Of("a"), "{\"x\": 1}");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "points/a"));
  results.TakeLine(Line("../../etc", "{}"));
  results.TakeLine(Line("c", "{}"));
  results.TakeLine(Line("b", "{\"long\": 12345}").substr(0, 50));
  EXPECT_EQ(Of("b"), "");
  EXPECT_FALSE(results.HasAll());
  EXPECT_THAT(results.log_tail(), HasSubstr("some words"));
  results.TakeLastWords(Line("a", "{}") + "\n" + Line("b", "{\"headline\": 1}") +
                        "\ncut off: " + Line("b", "{}").substr(0, 9));
  EXPECT_EQ(Of("a"), "{\"x\": 1}");  // whole results stay
  EXPECT_EQ(Of("b"), "{\"headline\": 1}");
  EXPECT_TRUE(results.HasAll());
}

TEST_F(KubernetesResults, AreKnownAgainByTheNextProcess) {
  Output().TakeLine(Line("a", "{}"));
  TempDir volume;
  WriteFileAtomic(volume / "results.log", Line("a", "{\"other\": 1}") + '\n' + Line("c", "{}") + '\n' +
                                              Line("b", "{\"b\": 0}") + '\n' + Line("b", "{\"b\": 1}") + '\n' +
                                              Line("b", "{\"b\": 2}"));  // cut
  plugin::JobOutput results = Output();
  EXPECT_FALSE(results.HasAll());
  results.CopyMissing(volume.path());
  EXPECT_TRUE(results.HasAll());
  EXPECT_EQ(Of("a"), "{}");
  EXPECT_EQ(Of("b"), "{\"b\": 1}");
}

TEST_F(KubernetesResults, WithoutItsLogWhatHasNoResultMayHaveBegun) {
  plugin::JobOutput results = Output();
  results.TakeLastWords(Line("a", "{}"));
  EXPECT_FALSE(std::filesystem::exists(PointDir(dir_.path(), "b")));
  results.TakeOthersAsBegun();
  EXPECT_TRUE(std::filesystem::exists(PointDir(dir_.path(), "b")));
  EXPECT_FALSE(std::filesystem::exists(PointDir(dir_.path(), "a")));
}

TEST_F(KubernetesResults, KnowsWhetherATrainerBegan) {
  plugin::JobOutput results = Output();
  results.TakeLine("some words");
  EXPECT_FALSE(results.AnyBegan());
  results.TakeLine(Line("a", "", kProgressLine));
  EXPECT_TRUE(results.AnyBegan());
  results.TakeLine(Line("a", "{}"));
  EXPECT_TRUE(Output().AnyBegan());
}

TEST_F(KubernetesResults, ALogThatIsReadAgainAddsNothing) {
  for (int process = 0; process < 2; ++process) {
    plugin::JobOutput results = Output();
    for (int times = 0; times < 3; ++times) {
      results.Rewind();
      results.TakeLine(Line("a", "{\"x\": 1}"));
      results.TakeLine(Line("b", "{}"));
    }
  }
  EXPECT_EQ(ReadFile(ResultsFile(dir_.path())), Line("a", "{\"x\": 1}") + '\n' + Line("b", "{}") + '\n');
}

TEST_F(KubernetesResults, KeepsWhatPodsSayOfTheirPartsOnceEach) {
  const std::string part = Line("a", "1 {}", kPartLine);
  for (int process = 0; process < 2; ++process) {
    plugin::JobOutput results = Output();
    for (int times = 0; times < 2; ++times) {
      results.Rewind();
      results.TakeLine(part);
      results.TakeLine(Line("c", "1 {}", kPartLine));
      results.TakeLine(Line("b", "1 " + std::string(kMaxPartBytes, 'x'), kPartLine));
      results.TakeLine(Line("a", "0 {}", kPartLine));
    }
    EXPECT_FALSE(results.HasAll());
  }
  EXPECT_EQ(ReadFile(PartsFile(dir_.path())), part + '\n' + Line("a", "0 {}", kPartLine) + '\n');
  EXPECT_FALSE(std::filesystem::exists(ResultsFile(dir_.path())));
}

TEST_F(KubernetesResults, ALineThatAKilledProcessBeganStaysAlone) {
  WriteFileAtomic(ResultsFile(dir_.path()), Line("a", "{\"x\": 1}").substr(0, 20));
  Output().TakeLine(Line("a", "{}"));
  EXPECT_EQ(Of("a"), "{}");
}

TEST(KubernetesJournal, KeepsWhatItWasToldAcrossProcesses) {
  const TempDir dir;
  std::string store;
  {
    Journal journal(dir.path());
    store = journal.store();
    EXPECT_EQ(journal.Find("rl-1"), nullptr);
    Record record;
    record.key = "rl-1";
    record.uid = "u";
    record.points = {"a"};
    record.evidence = {{"end", "lost"}, {"text", "\xff"}};
    journal.Write(record);
  }
  Journal journal(dir.path());
  EXPECT_EQ(journal.store(), store);
  ASSERT_NE(journal.Find("rl-1"), nullptr);
  EXPECT_EQ(journal.Find("rl-1")->uid, "u");
  EXPECT_EQ(journal.Find("rl-1")->evidence.at("end"), "lost");
  EXPECT_EQ(journal.Find("../store"), nullptr);
  WriteFileAtomic(dir / "jobs/rl-2.json", "{\"key\": ");
  EXPECT_THROW(journal.Find("rl-2"), Failure);
}

TEST(JobLine, ComesBackWholeOrNotAtAll) {
  const JobLine line{"result", "p1", "{\"a\": \"b c\"}"};
  std::string text = FormatJobLine(line);
  EXPECT_EQ(text.back(), '\n');
  text.pop_back();
  EXPECT_EQ(ParseJobLine(text), line);
  std::string empty = FormatJobLine({"progress", "p1", ""});
  empty.pop_back();
  EXPECT_EQ(ParseJobLine(empty), (JobLine{"progress", "p1", ""}));
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(ParseJobLine(text.substr(0, size))) << size;
  std::string changed = text;
  changed[changed.size() - 3] = 'x';
  EXPECT_FALSE(ParseJobLine(changed));
  EXPECT_FALSE(ParseJobLine("x" + text));
}

}  // namespace
}  // namespace ridgeline::kubernetes
