// A flipped bit in a record of a job is detected and reported, or has no meaning. Also tests kept records, two of which
// have no checksum, as if a person or another program had written them.
#include "tests/base/flips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/checksum.h"
#include "ridgeline/sealed_json.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using testing::ExpectFlipsFound;
using ::testing::HasSubstr;
using testing::kRefused;

constexpr int kFlips = 300;  // flips of each kind

std::filesystem::path Kept(const std::string& name) {
  return std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/run/kept" / name;
}

// The output of `read`, or its error. Anything but an Error ends the test.
template <typename Read>
std::string Became(Read read) {
  try {
    return read();
  } catch (const Error& e) {
    return kRefused + e.message();
  }
}

Job KeptJob() { return DecodeJob(ParseJson(ReadFile(Kept("job.json")), "the kept job"), "the kept job"); }

RunResult KeptResult() {
  return ParseTrainerResult(ReadFile(Kept("result.json")), KeptJob().points.at(0).spec, "the kept result");
}

TEST(Kept, AJobAResultAndItsLinesAreRead) {
  const Job job = KeptJob();
  EXPECT_EQ(job.key, "rl-2f57dd355bb2f107f5aa314b0b907f0a");
  ASSERT_EQ(job.points.size(), 1U);
  EXPECT_EQ(PointId(job.points[0].spec), job.points[0].id);
  const RunResult result = KeptResult();
  EXPECT_EQ(result.status, RunStatus::kOk);
  EXPECT_EQ(result.point_id, job.points[0].id);
  EXPECT_EQ(result.step_ns.median_ns, 45865);

  const TempDir dir;
  WriteFile(ResultsFile(dir.path()), ReadFile(Kept("results.log")));
  ResultsReader reader(dir.path());
  int lines = 0;
  reader.ReadNew([&](const JobLine& line) {
    ++lines;
    EXPECT_EQ(line.point_id, job.points[0].id);
    EXPECT_EQ(DecodeResult(ParseJson(line.payload, "x"), "x").step_ns.median_ns, 201919);
    return true;
  });
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(reader.broken(), 0);
}

TEST(Flips, FindsAFlippedBitInAResult) {
  const RunSpec spec = KeptJob().points.at(0).spec;
  const std::string text = SealedText(EncodeResult(KeptResult())) + "\n";
  ExpectFlipsFound("result.json", text, kFlips, [&](const std::string& flipped) {
    return Became([&] { return DumpJson(EncodeResult(ParseTrainerResult(flipped, spec, "its result"))); });
  });
}

TEST(Flips, FindsAFlippedBitInAJobFile) {
  ExpectFlipsFound("job.json", JobText(KeptJob()), kFlips, [&](const std::string& flipped) {
    return Became([&] { return DumpJson(EncodeJob(DecodeJob(ParseJson(flipped, "job.json"), "job.json"))); });
  });
}

// A line is read unchanged, or it is none and counts as broken; then the point's outcome is unknown. If the end of the
// last line is changed, that line is not complete yet, as while it is written.
TEST(Flips, FindsAFlippedBitInALineOfResults) {
  const TempDir dir;
  for (const char* id : {"first", "second", "third"}) {
    RunResult result = KeptResult();
    result.point_id = id;
    ResultsWriter(dir.path()).Append(result);
  }
  const auto read = [&](const std::string& text) {
    WriteFile(ResultsFile(dir.path()), text);
    ResultsReader reader(dir.path());
    std::string lines;
    reader.ReadNew([&](const JobLine& line) {
      lines += line.point_id + " " + line.payload + "\n";
      return true;
    });
    return std::pair(lines, reader.broken());
  };
  const std::string whole = ReadFile(ResultsFile(dir.path()));
  const std::string says = read(whole).first;
  const std::string unended = whole.substr(0, whole.size() - 1) + '\v';
  EXPECT_THAT(says, ::testing::StartsWith(read(unended).first));
  EXPECT_EQ(read(unended).first.find("third"), std::string::npos);
  ExpectFlipsFound("results.log", whole, kFlips, [&](const std::string& flipped) {
    const auto [lines, broken] = read(flipped);
    if (lines == says) return lines;
    if (flipped.ends_with('\n')) {
      EXPECT_GT(broken, 0);
    }
    for (size_t at = 0; at < lines.size();) {  // each remaining line is one of them
      const size_t end = lines.find('\n', at) + 1;
      EXPECT_THAT(says, HasSubstr(lines.substr(at, end - at)));
      at = end;
    }
    return kRefused + std::to_string(broken) + " lines";
  });
}

TEST(Flips, FindsAFlippedBitInARecordOfOneLine) {
  ExpectFlipsFound("a line", SealedLine("signal 9"), kFlips, [&](const std::string& flipped) {
    const auto record = Unsealed(flipped);
    return record ? std::string(*record) : kRefused + std::string("a line");
  });
  EXPECT_FALSE(Unsealed("signal 9\n")) << "no checksum";
}

TEST(Seal, DependsOnTheContentAndNotOnTheLayout) {
  const Json document = {{"b", {1, 2.5, nullptr}}, {"a", "é \xff"}};
  const Json sealed = ParseJson(SealedText(document), "x");
  EXPECT_TRUE(IsWhole(sealed));
  EXPECT_TRUE(IsWhole(ParseJson(DumpJson(sealed, 2), "x"))) << "laid out anew";
  EXPECT_TRUE(IsWhole({{"a", 1}})) << "whoever wrote it gave it none";
  Json changed = sealed;
  changed["b"][0] = 2;
  EXPECT_FALSE(IsWhole(changed));
  changed = sealed;
  changed["c"] = 1;
  EXPECT_FALSE(IsWhole(changed));
  changed = sealed;
  changed.erase("a");
  EXPECT_FALSE(IsWhole(changed));
  changed[kChecksumKey] = 5;
  EXPECT_FALSE(IsWhole(changed));
}

}  // namespace
}  // namespace ridgeline
