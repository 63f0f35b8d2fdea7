#include "run/results_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "ridgeline/job_dir.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunResult ResultOf(const std::string& id) {
  RunResult result;
  result.point_id = id;
  return result;
}

std::vector<std::string> NewIn(ResultsReader& reader) {
  std::vector<std::string> ids;
  EXPECT_TRUE(reader.ReadNew([&](const JobLine& line) {
    ids.push_back(line.point_id);
    return true;
  }));
  return ids;
}

std::string ResultLine(const std::string& id) {
  return FormatJobLine({std::string(kResultLine), id, DumpJson(EncodeResult(ResultOf(id)))});
}

TEST(ResultsFile, IsReadOnFromWhereItWasReadTo) {
  const TempDir dir;
  ResultsReader reader(dir.path());
  EXPECT_THAT(NewIn(reader), IsEmpty());  // the file does not exist yet
  ResultsWriter writer(dir.path());
  writer.Append(ResultOf("a"));
  writer.Append(ResultOf("b"));
  EXPECT_FALSE(reader.ReadNew([](const JobLine& line) { return line.point_id != "a"; }));
  EXPECT_THAT(NewIn(reader), ElementsAre("b"));
  EXPECT_THAT(NewIn(reader), IsEmpty());
  writer.Append(ResultOf("c"));
  ResultsReader another(dir.path(), reader.offset());
  EXPECT_THAT(NewIn(another), ElementsAre("c"));
}

TEST(ResultsFile, ALineThatWasCutStaysALineOfItsOwn) {
  const TempDir dir;
  ResultsWriter writer(dir.path());
  writer.Append(ResultOf("a"));
  std::ofstream(ResultsFile(dir.path()), std::ios::app) << ResultLine("b").substr(0, 100);
  writer.Append(ResultOf("c"));
  ResultsReader reader(dir.path());
  EXPECT_THAT(NewIn(reader), ElementsAre("a", "c"));
}

TEST(ResultsFile, SkipsLinesThatAreTooLong) {
  const TempDir dir;
  const std::filesystem::path path = ResultsFile(dir.path());
  std::ofstream(path) << ResultLine("a");
  const auto bytes = static_cast<off_t>(std::filesystem::file_size(path) + 2 * kMaxJobLineBytes + 12345);
  ASSERT_EQ(::truncate(path.c_str(), bytes), 0);
  std::ofstream(path, std::ios::app) << '\n' << ResultLine("b");
  ResultsReader reader(dir.path());
  EXPECT_THAT(NewIn(reader), ElementsAre("a", "b"));
}

TEST(ResultsFile, IsARegularFile) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo(ResultsFile(dir.path()).c_str(), 0600), 0);
  ResultsReader reader(dir.path());
  EXPECT_THROW(NewIn(reader), Error);
  EXPECT_THROW(ResultsWriter writer(dir.path()), Error);
}

std::string Refusal(const std::filesystem::path& job_dir) {
  ResultsReader reader(job_dir);
  try {
    reader.ReadNew([](const JobLine&) { return true; });
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "taken";
}

TEST(ResultsFile, NamesAFileThatIsNoResultsFileAtOnce) {
  const TempDir dir;
  const std::filesystem::path path = ResultsFile(dir.path());
  std::filesystem::create_symlink("/dev/zero", path);
  EXPECT_EQ(Refusal(dir.path()), path.string() + " is a symbolic link, not a regular file");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(Refusal(dir.path()), path.string() + " is a folder, not a regular file");
  std::filesystem::remove(path);
  std::ofstream(path) << ResultLine("a");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);  // an hour of zeros
  EXPECT_EQ(Refusal(dir.path()), path.string() + " has 1099511627776 bytes, and may have 4294967296");
}

TEST(ResultsFile, CountsTheLinesThatAreNone) {
  const TempDir dir;
  std::string damaged = ResultLine("b");
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(ResultsFile(dir.path())) << ResultLine("a") << damaged << ResultLine("c").substr(0, 40) << '\n'
                                         << ResultLine("d");
  ResultsReader reader(dir.path());
  EXPECT_THAT(NewIn(reader), ElementsAre("a", "d"));
  EXPECT_EQ(reader.broken(), 2);
}

// A line names its point, and its checksum covers the name, too.
TEST(ResultsFile, ALineUnderAnothersNameIsNone) {
  const TempDir dir;
  std::string line = ResultLine("first");
  line.replace(line.find("first"), 5, "other");
  std::ofstream(ResultsFile(dir.path())) << line;
  ResultsReader reader(dir.path());
  EXPECT_THAT(NewIn(reader), IsEmpty());
  EXPECT_EQ(reader.broken(), 1);
}

TEST(ResultsFile, ALineThatNobodyWouldReadIsWrittenWithoutItsSeries) {
  const TempDir dir;
  RunResult result = ResultOf("a");
  result.step_ns.median_ns = 7;
  result.step_ns.all_ns.assign(kMaxJobLineBytes / 19, 1'000'000'000'000'000'000);
  ResultsWriter(dir.path()).Append(result);
  ResultsReader reader(dir.path());
  std::string payload;
  reader.ReadNew([&](const JobLine& line) {
    payload = line.payload;
    return true;
  });
  const RunResult read = DecodeResult(ParseJson(payload, "x"), "x");
  EXPECT_EQ(read.step_ns.median_ns, 7);
  EXPECT_TRUE(read.step_ns.all_ns.empty());
  EXPECT_TRUE(read.evidence.contains("series"));
}

TEST(PrintedResults, AreFoundAmongOtherLines) {
  const TempDir dir;
  WriteFileAtomic(dir / "pods.log", "words\n[pod/rl-1-x/ridgeline] " + ResultLine("a") +
                                        FormatJobLine({std::string(kProgressLine), "b", "1 2 3"}) + ResultLine("c"));
  std::vector<std::string> ids;
  const auto take = [&](const JobLine& line) { ids.push_back(line.point_id); };
  ReadPrintedLines(dir / "pods.log", take);
  ReadPrintedLines(dir / "none.log", take);
  EXPECT_THAT(ids, ElementsAre("a", "c"));
}

}  // namespace
}  // namespace ridgeline
