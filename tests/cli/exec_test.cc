// `ridgeline exec` on a node whose files nobody else sees: with its own folder, and lines that report everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "ridgeline/job_line.h"
#include "run/results_file.h"
#include "tests/cli/cli.h"
#include "trainers/node_part.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExecCommand : public ::testing::Test {
 protected:
  Job MakeJob(const std::string& mode, int64_t points) const {
    Job job = testing::TestJob(cli_.dir / "driver/jobs/rl-test", {mode}, points);
    testing::WriteJob(job);
    return job;
  }
  std::filesystem::path Elsewhere() const { return cli_.dir / "node/jobs/rl-test"; }
  static std::vector<JobLine> LinesOf(const std::string& text, std::string_view kind) {
    std::vector<JobLine> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (auto told = ParseJobLine(line); told && told->kind == kind) lines.push_back(*std::move(told));
    }
    return lines;
  }

  Cli cli_;
};

// As in a foreign image: it uses none of the C library there.
TEST_F(ExecCommand, CarriedFilesRunByThemselves) {
  const std::string to = cli_.dir / "carried";
  const auto carried = cli_.Run({"exec", "--carry-to", to});
  EXPECT_EQ(carried.status.exit_code, 0) << carried.err;
  const std::vector<std::string> loader = {to + "/ld.so", "--library-path", to};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), loader.begin(), loader.end());
    return ridgeline::Run(words);
  };
  std::istringstream libraries(with({"--list", to + "/ridgeline"}).stdout_text);
  for (std::string line; std::getline(libraries, line);) {
    EXPECT_TRUE(line.find("=> " + to + "/") != std::string::npos || line.find("vdso") != std::string::npos) << line;
  }
  EXPECT_TRUE(std::filesystem::exists(to + "/libdl.so.2")) << "libraries of an image ask for it";
  const Job job = MakeJob("ok", 1);
  const std::string again = cli_.dir / "again";
  const Captured carried_on = with({to + "/ridgeline", "exec", "--carry-to", again});
  EXPECT_TRUE(carried_on.status.ok()) << carried_on.stderr_text;
  EXPECT_TRUE(ridgeline::Run({again + "/ld.so", "--library-path", again, again + "/ridgeline", "version"}).status.ok())
      << "a copy of a copy is as whole";
  const Captured run = with({to + "/ridgeline", "exec", JobFile(job)});
  EXPECT_EQ(run.status.exit_code, 0) << run.stderr_text;
  EXPECT_EQ(testing::ResultOf(job).status, RunStatus::kOk);
}

TEST_F(ExecCommand, TellsWholeResultsWithoutTheDriversFolder) {
  const Job job = MakeJob("ok", 2);
  const auto run = cli_.Run(
      {"exec", "--job-dir", Elsewhere(), "--print-results", "--summary", cli_.dir / "last-words", JobFile(job)});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  const std::vector<JobLine> results = LinesOf(run.out, kResultLine);
  ASSERT_THAT(results, SizeIs(2));
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].point_id, job.points[i].id);
    const RunResult told = DecodeResult(ParseJson(results[i].payload, "a line"), "a line");
    EXPECT_EQ(told.status, RunStatus::kOk);
  }
  EXPECT_EQ(LinesOf(ReadFile(ResultsFile(Elsewhere())), kResultLine), results);
  EXPECT_THAT(LinesOf(run.out, kProgressLine), SizeIs(::testing::Ge(2)));
  EXPECT_FALSE(std::filesystem::exists(ResultsFile(job.job_dir)));

  const std::vector<JobLine> headlines = LinesOf(ReadFile(cli_.dir / "last-words"), kResultLine);
  ASSERT_THAT(headlines, SizeIs(2));
  const RunResult headline = DecodeResult(ParseJson(headlines[1].payload, "a headline"), "a headline");
  EXPECT_EQ(headline.status, RunStatus::kOk);
  EXPECT_GT(headline.throughput.steady_tokens_per_s, 0);
  EXPECT_THAT(headline.loss, IsEmpty());
  EXPECT_THAT(headline.evidence.at("headline_only"), HasSubstr("log was lost"));
}

TEST_F(ExecCommand, TellsTheResultsThatWereThereBefore) {
  const Job job = MakeJob("ok", 1);
  const std::vector<std::string> again = {"exec", "--job-dir", Elsewhere(), "--print-results", JobFile(job)};
  const auto first = cli_.Run(again);
  const auto second = cli_.Run(again);
  EXPECT_THAT(second.out, HasSubstr("0 run, 1 had a result already"));
  EXPECT_EQ(LinesOf(second.out, kResultLine), LinesOf(first.out, kResultLine));
}

TEST_F(ExecCommand, TheSummaryIsNeverLargerThanAContainersLastWords) {
  const Job job = MakeJob("crash", 30);
  cli_.Run({"exec", "--job-dir", Elsewhere(), "--summary", cli_.dir / "last-words", JobFile(job)});
  const std::string words = ReadFile(cli_.dir / "last-words");
  EXPECT_LE(words.size(), kSummaryBytes);
  const std::vector<JobLine> headlines = LinesOf(words, kResultLine);
  EXPECT_GE(headlines.size(), 2U);
  EXPECT_EQ(FormatJobLine(headlines.back()), words.substr(words.size() - FormatJobLine(headlines.back()).size()));
}

TEST_F(ExecCommand, AJobFileMayComeInParts) {
  const Job job = MakeJob("ok", 3);
  const std::string text = ReadFile(JobFile(job));
  const auto parts = cli_.dir / "parts";
  MakeDirs(parts / "..data");  // as Kubernetes mounts files
  constexpr size_t kPart = 700;
  for (size_t i = 0; i * kPart < text.size(); ++i) {
    WriteFileAtomic(parts / "..data" / ("job-" + std::to_string(100 + i)), text.substr(i * kPart, kPart));
    std::filesystem::create_symlink("..data/job-" + std::to_string(100 + i),
                                    parts / ("job-" + std::to_string(100 + i)));
  }
  const auto run = cli_.Run({"exec", "--job-dir", Elsewhere(), parts});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 run"));
}

TEST_F(ExecCommand, CheckpointFilesMoveWithTheJob) {
  Job job = MakeJob("ok", 3);
  job.points[0].spec.checkpoint_dir = cli_.dir / "driver/ckpt/a";
  job.points[1].spec.checkpoint_dir = "/elsewhere/ckpt";
  job.points[2].spec.checkpoint_dir = "own";
  MoveJob(job, Elsewhere());
  EXPECT_EQ(job.points[0].spec.checkpoint_dir, (cli_.dir / "node/ckpt/a").string());
  EXPECT_EQ(job.points[1].spec.checkpoint_dir, "/elsewhere/ckpt");
  EXPECT_EQ(job.points[2].spec.checkpoint_dir, "own");
  EXPECT_EQ(job.job_dir, Elsewhere());
}

// A driver learns results from a pod's log, into which trainers write, too.
TEST_F(ExecCommand, TellsWhatTrainersSayAndNothingThatTheyForge) {
  const std::string id = testing::TestJob("x", {"ok"}).points[0].id;
  RunResult forged;
  forged.point_id = id;
  forged.status = RunStatus::kOk;
  forged.throughput.steady_tokens_per_s = 1e9;
  const std::string line = FormatJobLine({std::string(kResultLine), id, DumpJson(EncodeResult(forged))});
  for (const char* mode : {"prints", "says"}) {
    WriteFile(cli_.dir / "said", "hello\n" + line + "pod/x " + line);
    const Job job = MakeJob(std::string(mode) + "=" + (cli_.dir / "said").string(), 1);
    const std::filesystem::path node = cli_.dir / mode / "jobs/rl-test";
    const auto run = cli_.Run({"exec", "--job-dir", node, "--print-results", JobFile(job)});
    EXPECT_EQ(run.status.exit_code, 0) << run.err;
    EXPECT_EQ(run.out.find("| hello\n") != std::string::npos, std::string(mode) == "prints") << run.out;
    WriteFile(cli_.dir / "pod.log", run.out);
    std::vector<JobLine> results;
    ReadPrintedLines(cli_.dir / "pod.log", [&](JobLine told) { results.push_back(std::move(told)); });
    ASSERT_THAT(results, SizeIs(1)) << mode;
    EXPECT_EQ(DecodeResult(ParseJson(results[0].payload, "a line"), "a line").status, RunStatus::kCrashed);
  }
}

// Like the pods of a Kubernetes Job, which share no folder: their output together is the point's result.
TEST_F(ExecCommand, EachOfSeveralNodesTellsItsPart) {
  Job job = MakeJob("ok", 1);
  WriteFile(cli_.dir / "mine.sh",
            "echo hello of $1; [ $1 = 1 ] || exit 0\nfor i in 1 2 3 4; do echo \"step $i: $((100 - i)) ms\"; done\n");
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec(
      {{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 3}, {"ranks", 2}, {"trainer", "mine"}}, problems);
  job.points = {{PointId(spec), spec, 0}};
  job.trainer.clear();
  job.definition = fmt::format(
      "name: mine\nabout: a\nversion: \"1\"\ntested: log\nresult: patterns\nprocesses: torchrun\n"
      "command: [/bin/sh, '{}', '{{{{node_rank}}}}']\n"
      "metrics: [{{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}]\n",
      (cli_.dir / "mine.sh").string());
  testing::WriteJob(job);
  std::map<std::string, std::string> environment = {
      {"RIDGELINE_NNODES", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}};
  std::vector<std::string> payloads;
  std::optional<RunResult> first;
  for (const std::string node : {"0", "1"}) {
    environment["RIDGELINE_NODE_RANK"] = node;
    const auto run = ridgeline::Run({Program(), "exec", "--job-dir", cli_.dir / node, "--print-results", JobFile(job)},
                                    0, environment);
    EXPECT_EQ(run.status.exit_code, 0) << run.stderr_text;
    EXPECT_THAT(run.stdout_text, HasSubstr("| hello of " + node + "\n"));
    const std::vector<JobLine> parts = LinesOf(run.stdout_text, kPartLine);
    ASSERT_THAT(parts, SizeIs(1)) << run.stdout_text;
    payloads.push_back(parts[0].payload);
    const std::vector<JobLine> results = LinesOf(run.stdout_text, kResultLine);
    EXPECT_THAT(results, SizeIs(node == "0" ? 1 : 0));
    if (!results.empty()) first = DecodeResult(ParseJson(results[0].payload, "a line"), "a line");
    EXPECT_FALSE(std::filesystem::exists(cli_.dir / node / "points" / job.points[0].id / "log.txt"));
  }
  EXPECT_TRUE(trainers::AwaitsNodes(*first));
  EXPECT_EQ(EndOf(*first), InfrastructureReason::kLost) << "nothing says how fast it was";
  EXPECT_EQ(EndOf(*trainers::CompleteResult(*first, {payloads[0]}, /*last=*/true)), InfrastructureReason::kLost);
  const std::optional<RunResult> whole = trainers::CompleteResult(*first, payloads, /*last=*/false);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->status, RunStatus::kOk) << whole->message;
  EXPECT_EQ(whole->point_id, job.points[0].id);
  EXPECT_THAT(whole->step_ns.all_ns, ::testing::ElementsAre(99'000'000, 98'000'000, 97'000'000, 96'000'000));
  EXPECT_FALSE(trainers::AwaitsNodes(*whole));
}

// People read this output, and launchers must tell results apart from it.
TEST_F(ExecCommand, SaysNothingOfTrainersWhereNobodyAsked) {
  WriteFile(cli_.dir / "said", "hello\n");
  const Job job = MakeJob("prints=" + (cli_.dir / "said").string(), 1);
  EXPECT_THAT(cli_.Run({"exec", JobFile(job)}).out, ::testing::Not(HasSubstr("hello")));
}

TEST_F(ExecCommand, SaysOnStderrWhyANodeIsUnfit) {
  Job job = MakeJob("ok", 1);
  job.trainer = {"/nonexistent/trainer"};
  testing::WriteJob(job);
  const auto run = cli_.Run({"exec", JobFile(job)});
  EXPECT_EQ(run.status.exit_code, kExecCannotStart);
  EXPECT_THAT(run.err, HasSubstr("this node cannot run the job: there is no program '/nonexistent/trainer'"));
  EXPECT_THAT(run.out, HasSubstr("infrastructure (start)"));
}

// A job file contains nothing of the driver's machine, unless the sweep says so.
TEST_F(ExecCommand, RunsTheTrainerBesideItself) {
  Job job = MakeJob("ok", 1);
  job.trainer.clear();
  job.cpus = 1;
  job.points[0].spec.steps = 1;
  job.points[0].spec.device = "meta";
  testing::WriteJob(job);
  const auto run = cli_.Run({"exec", JobFile(job)});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  const RunResult result = testing::ResultOf(job);
  EXPECT_THAT(result.environment.at("command"), HasSubstr("bin/ridgeline-train"));
  EXPECT_EQ(result.environment.at("cores"), "1") << "it is the fingerprint's, pinned to it or not";
}

}  // namespace
}  // namespace ridgeline::cli
