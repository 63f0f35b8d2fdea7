#include "collect/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/job_line.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "tests/collect/collect_fixture.h"
#include "trainers/node_part.h"

namespace ridgeline::collect {
namespace {

using samples::Value;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using State = store::JobRecord::State;

TEST_F(CollectTest, WholeLinesBecomeResultsOnce) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  WriteResult(job, samples::Result(points_[0].id));
  WriteResult(job, samples::Result(points_[1].id, RunStatus::kDiverged));
  const std::vector<Collected> collected = End(job, {{"exit_code", "0"}});
  ASSERT_THAT(collected, SizeIs(2));
  EXPECT_EQ(collected[0].point_id, points_[0].id);
  EXPECT_EQ(collected[0].end, RunStatus::kOk);
  EXPECT_EQ(collected[0].steady_tokens_per_s, 1000.5);
  EXPECT_EQ(collected[1].end, RunStatus::kDiverged);
  EXPECT_EQ(collected[1].message, "it ended");
  EXPECT_THAT(store_.LiveJobs(), IsEmpty());
  EXPECT_EQ(Value(store_, "SELECT state || evidence || ended_unix_ns FROM jobs"), Cell(R"(ended{"exit_code":"0"}777)"));
  EXPECT_EQ(Of(0, "job_key"), Cell("rl-1"));
  EXPECT_EQ(Of(0, "ended_unix_ns"), Cell(int64_t{200}));

  EXPECT_THAT(End(job, {{"exit_code", "0"}}), IsEmpty());  // with what was known before it was collected
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{2}));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(CollectTest, TakesOnlyFinalResultsFromALiveJob) {
  const store::JobRecord job = Submit("rl-1", points_);
  WriteResult(job, samples::Result(points_[0].id));
  WriteResult(job, samples::Result(points_[1].id, RunStatus::kCancelled));  // exec may run it again
  WriteLine(job, points_[2].id, "{\"version\": 99}");
  const JobToCollect live{job, State::kRunning, {}};
  EXPECT_THAT(Collect(store_, {&live, 1}, 1), SizeIs(1));
  EXPECT_THAT(Collect(store_, {&live, 1}, 1), IsEmpty());
  EXPECT_TRUE(Live("rl-1").points[0].has_result);

  WriteResult(job, samples::Result(points_[1].id));
  WriteResult(job, samples::Result(points_[2].id));
  EXPECT_THAT(End(Live("rl-1")), SizeIs(4));
  EXPECT_EQ(Of(1, "status"), Cell("ok"));
  EXPECT_EQ(Of(2, "status"), Cell("ok"));
  EXPECT_EQ(Of(3, "reason"), Cell("lost"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(CollectTest, AJobThatIsLookedAtAgainIsReadOnFromWhereItWas) {
  const store::JobRecord job = Submit("rl-1", points_);
  JobResults results;
  const auto look = [&](State state = State::kRunning) {
    const JobToCollect from{Live("rl-1"), state, {}, &results};
    return Collect(store_, {&from, 1}, 1).size();
  };
  WriteResult(job, samples::Result(points_[0].id));
  WriteResult(job, samples::Result(points_[1].id, InfrastructureReason::kPreempted));
  EXPECT_EQ(look(), 1U);
  const auto read = static_cast<std::streamoff>(results.offset);
  EXPECT_EQ(read, static_cast<std::streamoff>(std::filesystem::file_size(ResultsFile(job.job_dir))));
  {  // What was read is not read again, so it may be overwritten.
    std::fstream file(ResultsFile(job.job_dir));
    file << std::string(static_cast<size_t>(read - 1), 'x');
  }
  WriteResult(job, samples::Result(points_[2].id));
  EXPECT_EQ(look(), 1U);
  EXPECT_EQ(look(), 0U);
  EXPECT_EQ(look(State::kEnded), 3U);
  EXPECT_EQ(Of(1, "reason"), Cell("preempted")) << "the last that was said of it, though it was said long ago";
  EXPECT_EQ(Of(3, "reason"), Cell("lost"));

  std::filesystem::remove(ResultsFile(job.job_dir));  // as if a folder was made anew
  const store::JobRecord again = Submit("rl-1b", {points_[3]});
  WriteResult(again, samples::Result(points_[3].id));
  const JobToCollect from{again, State::kEnded, {}, &results};
  EXPECT_THAT(Collect(store_, {&from, 1}, 1), SizeIs(1)) << "a file shorter than what was read is another one";
}

// A point whose nodes share no folder: its first node's result awaits the reports of the other pods.
class CollectParts : public CollectTest {
 protected:
  // The form in which `ridgeline exec` writes it on node 0, with its part.
  RunResult First() const {
    RunResult first = samples::Result(points_[0].id);
    first.evidence[kNodesEvidence] = "2";
    first.evidence[trainers::kAwaitsNodesEvidence] = "yes";
    SetTimes(900, first);
    return first;
  }
  trainers::NodePart Part(int64_t node, RunStatus status = RunStatus::kOk) const {
    trainers::NodePart part;
    part.node = node;
    part.name = "n" + std::to_string(node);
    part.end = samples::Result(points_[0].id, status);
    part.end.evidence[kNodesEvidence] = "2";
    SetTimes(900, part.end);
    return part;
  }
  static void SetTimes(int64_t seconds, RunResult& result) {
    result.started_unix_ns = seconds * 1'000'000'000;
    result.ended_unix_ns = result.started_unix_ns + 1'000'000'000;
  }
  std::string FirstPart() const {
    const RunSpec spec = points_[0].spec;
    return trainers::EncodePart(nullptr, Part(0), kMaxPartBytes, &spec);
  }
  void Tell(const store::JobRecord& job, const std::string& payload) const {
    std::ofstream(PartsFile(job.job_dir), std::ios::app)
        << FormatJobLine({std::string(kPartLine), points_[0].id, payload});
  }
  size_t Look(JobResults& results) {
    const JobToCollect live{Live("rl-1"), State::kRunning, {}, &results};
    return Collect(store_, {&live, 1}, 1).size();
  }
};

TEST_F(CollectParts, OneResultComesOfAllTogether) {
  const store::JobRecord job = Submit("rl-1", {points_[0]});
  JobResults results;
  WriteResult(job, First());
  EXPECT_EQ(Look(results), 0U);
  Tell(job, FirstPart());
  EXPECT_EQ(Look(results), 0U);
  Tell(job, "no part of anything");
  Tell(job, trainers::EncodePart(nullptr, Part(7)));
  trainers::NodePart earlier = Part(1, RunStatus::kOomDevice);
  SetTimes(50, earlier.end);
  Tell(job, trainers::EncodePart(nullptr, earlier));
  EXPECT_EQ(Look(results), 0U) << "that was an earlier attempt";
  Tell(job, trainers::EncodePart(nullptr, Part(1, RunStatus::kOomDevice)));
  EXPECT_EQ(Look(results), 1U);
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
  EXPECT_EQ(Of(0, "message"), Cell("n1 (node 1 of 2): it ended"));
  EXPECT_EQ(Look(results), 0U);
  EXPECT_THAT(End(Live("rl-1")), IsEmpty());
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(CollectParts, AJobThatEndsWithoutOneSaysSo) {
  const store::JobRecord job = Submit("rl-1", {points_[0]});
  WriteResult(job, First());
  Tell(job, FirstPart());
  EXPECT_THAT(End(job), SizeIs(1));
  EXPECT_EQ(Of(0, "status"), Cell("ok"));
  EXPECT_EQ(Of(0, "evidence ->> '$.missing_parts'"),
            Cell("nothing was heard of how node 1 of 2 ended, and what its log held is missing"));
  EXPECT_EQ(Of(0, "evidence ->> '$.awaits_nodes'"), Cell());
}

TEST_F(CollectParts, LogsOfPodsTellTheSame) {
  const std::string line = FormatJobLine({std::string(kResultLine), points_[0].id, DumpJson(EncodeResult(First()))});
  WriteFile(dir_ / "0.log", FormatJobLine({std::string(kPartLine), points_[0].id, FirstPart()}) + line);
  const FolderCollection half = CollectLogs(store_, dir_.path(), MeasuredAsDefault());
  EXPECT_EQ(half.added, 0) << "its other pod may still run";
  EXPECT_THAT(half.problems, testing::ElementsAre(HasSubstr("lacks what its other nodes' pods say")));
  WriteFile(dir_ / "1.log",
            "| words\n" + FormatJobLine({std::string(kPartLine), points_[0].id,
                                         trainers::EncodePart(nullptr, Part(1, RunStatus::kOomDevice))}));
  EXPECT_EQ(CollectLogs(store_, dir_.path(), MeasuredAsDefault()).added, 1);
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
}

// A killed writer leaves a part of a line. The next writer begins a new line.
TEST_F(CollectTest, AFileThatIsCutAnywhereGivesWhatIsWholeAndNothingElse) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  WriteResult(job, samples::Result(points_[0].id));
  const std::string first = ReadFile(ResultsFile(job.job_dir));
  WriteResult(job, samples::Result(points_[1].id));
  const std::string both = ReadFile(ResultsFile(job.job_dir));
  const auto near_an_end = [&](size_t size) {
    return size % first.size() < 100 || size % first.size() > first.size() - 20;
  };
  for (size_t size = 0; size < both.size(); size += near_an_end(size) ? 1 : 13) {
    // A line that lacks only its end becomes whole when that comes.
    if (size + 1 == first.size() || size + 1 == both.size()) continue;
    store::Store store = store::Store::Open(":memory:", store::Store::Mode::kReadWrite);
    store.PutSweep(samples::Sweep("s"), points_);
    store.RecordIntents({&job, 1});
    WriteFile(ResultsFile(job.job_dir), both.substr(0, size));
    const size_t whole = size < first.size() ? 0 : 1;
    JobResults results;
    const JobToCollect live{job, State::kRunning, {}, &results};
    ASSERT_THAT(Collect(store, {&live, 1}, 1), SizeIs(whole)) << size;
    WriteResult(job, samples::Result(points_[1].id, RunStatus::kDiverged));  // the result of another run of the point
    ASSERT_THAT(Collect(store, {&live, 1}, 1), SizeIs(1)) << size;
    const JobToCollect ended{store.LiveJobs().front(), State::kEnded, {}, &results};
    ASSERT_THAT(Collect(store, {&ended, 1}, 1), SizeIs(1 - whole)) << size;
    EXPECT_EQ(Value(store, "SELECT count(*) FROM results WHERE status = 'diverged'"), Cell(int64_t{1})) << size;
    EXPECT_EQ(Value(store, "SELECT count(*) FROM results"), Cell(int64_t{2})) << size;
  }
}

TEST_F(CollectTest, AnInterruptedPointOfAnEndedJobIsKeptAndRunAgain) {
  const store::JobRecord job = Submit("rl-1", {points_[0]});
  WriteResult(job, samples::Result(points_[0].id, InfrastructureReason::kPreempted));
  EXPECT_THAT(End(job), SizeIs(1));
  EXPECT_EQ(Of(0, "reason"), Cell("preempted"));
  EXPECT_THAT(store_.FinishedPoints("s"), IsEmpty());
  EXPECT_EQ(store_.Attempts("s").at(points_[0].id), 1);
}

TEST_F(CollectTest, ABadResultIsAStorageFaultAndStays) {
  const store::JobRecord job = Submit("rl-1", points_);
  const std::string whole = DumpJson(EncodeResult(samples::Result(points_[0].id)));
  const std::string cut = whole.substr(0, whole.size() / 2);
  WriteLine(job, points_[0].id, cut);
  WriteLine(job, points_[1].id, "");
  WriteLine(job, points_[2].id, R"({"version": 99, "status": "ok"})");
  WriteLine(job, points_[3].id, whole);
  WriteLine(job, points_[4].id,
            R"({"version": 1, "status": "ok", "point_id": ")" + points_[4].id + R"(", "loss": "low"})");
  WriteLog(job, points_[0].id, std::string(9000, 'x') + "the last words\n");
  EXPECT_THAT(End(job, {{"exit_code", "3"}}), SizeIs(5));
  EXPECT_EQ(Value(store_,
                  "SELECT count(*) FROM runs WHERE reason = 'storage' AND evidence ->> 'exit_code' = '3' AND "
                  "evidence ->> 'result_file' LIKE '%/rl-1/results.log'"),
            Cell(int64_t{5}));
  EXPECT_THAT(ReadFile(ResultsFile(job.job_dir)), HasSubstr(cut));
  const auto text = [&](size_t point, const std::string& column) { return std::get<std::string>(Of(point, column)); };
  EXPECT_THAT(text(0, "evidence ->> 'log_tail'"), HasSubstr("the last words"));
  EXPECT_EQ(text(0, "evidence ->> 'log_tail'").size(), 4096U);
  EXPECT_THAT(text(0, "message"), HasSubstr("not JSON"));
  EXPECT_THAT(text(1, "evidence ->> 'result_error'"), HasSubstr("not JSON"));
  EXPECT_THAT(text(2, "message"), HasSubstr("version 99"));
  EXPECT_THAT(text(3, "message"), HasSubstr("another point"));
  EXPECT_THAT(text(4, "message"), HasSubstr("not a RunResult"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

// A scheduler cannot know whether a trainer is at fault, so its word on that is ignored.
TEST_F(CollectTest, ResultsThatAreMissingGetTheSchedulersWord) {
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"oom_host", "", "oom_host"},
      {"timeout", "", "timeout"},
      {"cancelled", "", "cancelled"},
      {"infrastructure", "node", "infrastructure node"},
      {"infrastructure", "image", "infrastructure image"},
      {"preempted", "", "infrastructure preempted"},
      {"infrastructure", "bad luck", "infrastructure lost"},
      {"a new state", "", "infrastructure lost"},
      {"", "", "infrastructure lost"},
      {"ok", "", "infrastructure lost"},
      {"crashed", "", "infrastructure lost"},
      {"invalid", "", "infrastructure lost"},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto& [end, reason, want] = cases[i];
    const store::JobRecord job = Submit("rl-" + std::to_string(i), {points_[0]});
    WriteLog(job, points_[0].id, "step 1\n");
    EXPECT_THAT(End(job, {{"end", end}, {"reason", reason}, {"exit_code", "137"}, {"node", "n7"}}), SizeIs(1));
    EXPECT_EQ(Of(0, "rtrim(status || ' ' || reason)"), Cell(want)) << end << reason;
    EXPECT_EQ(Of(0, "evidence ->> 'exit_code'"), Cell("137"));
    EXPECT_EQ(Of(0, "evidence ->> 'node'"), Cell("n7"));
    EXPECT_EQ(Of(0, "evidence ->> 'log_tail'"), Cell("step 1\n"));
    EXPECT_EQ(Of(0, "ended_unix_ns"), Cell(int64_t{777}));
    EXPECT_EQ(Of(0, "attempt"), Cell(static_cast<int64_t>(i + 1)));
  }
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(CollectTest, APointThatHadNotBegunIsNeverItsJobsEnd) {
  for (const char* end : {"timeout", "oom_host", "crashed", "invalid", ""}) {
    const std::string key = std::string("rl-") + end;
    const std::vector<Collected> ends = End(Submit(key, {points_[0]}), {{"end", end}, {"message", "the words"}});
    ASSERT_THAT(ends, SizeIs(1));
    EXPECT_EQ(ends[0].end, InfrastructureReason::kStart) << end;
    EXPECT_THAT(ends[0].message, HasSubstr("the words"));
  }
  EXPECT_THAT(store_.FinishedPoints("s"), IsEmpty());
}

TEST_F(CollectTest, AnExecThatTheDiskFailedSaysNothingOfItsPoints) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  WriteLog(job, points_[0].id, "step 1\n");
  const std::vector<Collected> ends = End(job, {{"end", "crashed"}, {"exit_code", "3"}});
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[0].end, InfrastructureReason::kStorage);
  EXPECT_FALSE(ends[1].began);
}

TEST_F(CollectTest, TheJobsOwnEndSpeaksWhereTheSchedulerSaysNothing) {
  End(Submit("rl-1", {points_[0]}), {}, State::kCancelled);
  End(Submit("rl-2", {points_[1]}), {}, State::kLost);
  End(Submit("rl-3", {points_[2]}), {}, State::kEnded);
  EXPECT_EQ(Of(0, "status"), Cell("cancelled"));
  EXPECT_EQ(Of(1, "reason"), Cell("lost"));
  EXPECT_EQ(Of(2, "reason"), Cell("start"));
  EXPECT_EQ(Value(store_, "SELECT group_concat(state) FROM jobs"), Cell("cancelled,lost,ended"));
}

TEST_F(CollectTest, CancelledIsWhatAPersonDid) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  WriteResult(job, samples::Result(points_[0].id, InfrastructureReason::kPreempted));
  End(job, {{"end", "infrastructure"}, {"reason", "preempted"}, {"message", "its pod was deleted"}}, State::kCancelled);
  EXPECT_EQ(Of(1, "status"), Cell("cancelled"));
}

TEST_F(CollectTest, AJobWhoseFolderIsGoneLostItsStorage) {
  const store::JobRecord job = Submit("rl-1", {points_[0]});
  std::filesystem::remove_all(job.job_dir);
  EXPECT_THAT(End(job), SizeIs(1));
  EXPECT_EQ(Of(0, "reason"), Cell("storage"));
}

// Slurm's script reports a folder that its node lacks. The node is at fault only if other machines have the folder.
TEST_F(CollectTest, AFolderThatOnlyANodeLacksIsTheNodesFault) {
  const std::map<std::string, std::string> said = {{"end", "infrastructure"}, {"reason", "node"}, {"node", "n1"}};
  const store::JobRecord job = Submit("rl-1", {points_[0]});
  EXPECT_EQ(End(job, said).at(0).end, InfrastructureReason::kNode);
  const store::JobRecord gone = Submit("rl-2", {points_[1]});
  std::filesystem::remove_all(gone.job_dir);
  EXPECT_EQ(End(gone, said).at(0).end, InfrastructureReason::kStorage);
}

TEST_F(CollectTest, AFileThatCannotBeReadEndsNothing) {
  const store::JobRecord one = Submit("rl-1", {points_[0], points_[1]});
  WriteResult(one, samples::Result(points_[0].id));
  const store::JobRecord other = Submit("rl-2", {points_[2]});
  std::filesystem::remove_all(other.job_dir);
  std::filesystem::create_symlink(other.job_dir, other.job_dir);  // a circular link fails like a bad disk
  const JobToCollect both[] = {{one, State::kEnded, {}}, {other, State::kEnded, {}}};
  EXPECT_THROW(Collect(store_, both, 777), Error);
  EXPECT_THROW(End(other), Error);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{0}));
  EXPECT_THAT(store_.LiveJobs(), SizeIs(2));
}

// If a job replaces its results file by something else, collecting must not wait, use much memory, or affect other
// jobs.
TEST_F(CollectTest, AFileThatIsNoResultsFileConcernsOnlyItsOwnPoints) {
  const std::pair<std::string, std::function<void(const std::filesystem::path&)>> cases[] = {
      {"is a named pipe, not a regular file", [](const auto& path) { ::mkfifo(path.c_str(), 0600); }},
      {"is a folder, not a regular file", [](const auto& path) { MakeDirs(path); }},
      {"is a symbolic link, not a regular file",
       [](const auto& path) { std::filesystem::create_symlink("/dev/zero", path); }},
      {"has 1099511627776 bytes, and may have 4294967296",
       [](const auto& path) {
         WriteFile(path, "");
         std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
       }},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto& [says, make] = cases[i];
    const store::JobRecord bad = Submit("rl-bad" + std::to_string(i), {points_[0]});
    const store::JobRecord good = Submit("rl-good" + std::to_string(i), {points_[1]});
    MakeDirs(PointDir(bad.job_dir, points_[0].id));  // it began
    make(ResultsFile(bad.job_dir));
    WriteResult(good, samples::Result(points_[1].id));
    JobResults results;
    JobToCollect both[] = {{bad, State::kRunning, {}, &results}, {good, State::kEnded, {}}};
    EXPECT_THAT(Collect(store_, both, 1), SizeIs(1)) << says;
    EXPECT_EQ(Of(1, "status"), Cell("ok")) << says;
    const std::vector<Collected> ends = End(bad, {{"end", "timeout"}, {"message", "past the time limit"}});
    ASSERT_THAT(ends, SizeIs(1));
    EXPECT_EQ(ends[0].end, RunStatus::kTimeout) << "the scheduler's word stands";
    EXPECT_EQ(ends[0].message, "job " + bad.key + " ended (timeout) without a result of this point: past the time " +
                                   "limit; " + ResultsFile(bad.job_dir).string() + " " + says);
    EXPECT_EQ(Of(0, "evidence ->> 'result_error'"), Cell(ResultsFile(bad.job_dir).string() + " " + says));
  }
  const store::JobRecord silent = Submit("rl-silent", {points_[2]});
  MakeDirs(ResultsFile(silent.job_dir));
  End(silent);
  EXPECT_EQ(Of(2, "reason"), Cell("storage")) << "where the scheduler says nothing";
}

TEST_F(CollectTest, ADamagedLineIsToldOfWhereItsResultIsMissing) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  WriteResult(job, samples::Result(points_[0].id));
  WriteResult(job, samples::Result(points_[1].id));
  std::string text = ReadFile(ResultsFile(job.job_dir));
  text[text.size() - 100] ^= 4;
  WriteFile(ResultsFile(job.job_dir), text);
  const std::vector<Collected> ends = End(job);
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[0].end, RunStatus::kOk);
  EXPECT_NE(ends[1].end, RunStatus::kOk);
  EXPECT_THAT(ends[1].message, HasSubstr("results.log has a line that was cut or damaged"));
  TempDir dir;  // also for points that nobody asked for
  std::filesystem::copy(job.job_dir, dir / "rl-1", std::filesystem::copy_options::recursive);
  EXPECT_THAT(CollectJobFolders(store_, dir.path(), {}).problems,
              testing::ElementsAre(HasSubstr("results.log has a line that was cut or damaged"),
                                   HasSubstr("results that were not read, of 1 point")));
}

TEST_F(CollectTest, CountsUnreadLinesAndFailsForAnUnreadableFolder) {
  TempDir dir;
  for (const char* name : {"1", "2", "3", "4", "5", "6", "sweep.yaml", "rl-1.0.log"}) WriteFile(dir / name, "");
  EXPECT_THAT(CollectJobFolders(store_, dir.path(), {}).problems,
              testing::ElementsAre(HasSubstr("6 files that are not jobs' folders: 1, 2, 3, 4, 5, ...")));
  const std::filesystem::path loop = dir / "loop";
  std::filesystem::create_symlink(loop, loop);
  EXPECT_THROW(CollectJobFolders(store_, loop, {}), Error);
  EXPECT_THROW(CollectLogs(store_, loop, {}), Error);
  EXPECT_THAT(CollectJobFolders(store_, dir / "none", {}).problems, testing::IsEmpty());
}

TEST_F(CollectTest, FoldersAndLogsThatAreNoneAreProblemsAndNoEnd) {
  const auto jobs = dir_ / "by hand";
  for (const char* job : {"a", "b", "c"}) MakeDirs(jobs / job);
  ASSERT_EQ(::mkfifo(ResultsFile(jobs / "a").c_str(), 0600), 0);
  MakeDirs(ResultsFile(jobs / "b"));
  ResultsWriter(jobs / "c").Append(samples::Result(points_[1].id));
  const FolderCollection found = CollectJobFolders(store_, jobs, MeasuredAsDefault());
  EXPECT_EQ(found.added, 1);
  EXPECT_THAT(found.problems,
              testing::UnorderedElementsAre(HasSubstr("is a named pipe"), HasSubstr("results.log is a folder")));
  WriteFile(dir_ / "pods.log", "");
  std::filesystem::resize_file(dir_ / "pods.log", std::uintmax_t{1} << 40);
  EXPECT_THAT(CollectLogs(store_, dir_.path(), MeasuredAsDefault()).problems,
              testing::ElementsAre(HasSubstr("pods.log has 1099511627776 bytes")));
}

TEST_F(CollectTest, ManyJobsComeInOrderAndNoneTwice) {
  constexpr size_t kPoints = 3000;  // many chunks, so that they are read in parallel
  const std::vector<Point> many = samples::Points(kPoints);
  store_.PutSweep(samples::Sweep("s"), many);
  std::vector<JobToCollect> jobs;
  for (size_t first = 0; first < kPoints; first += 100) {
    const std::vector<Point> part(many.begin() + static_cast<std::ptrdiff_t>(first),
                                  many.begin() + static_cast<std::ptrdiff_t>(first + 100));
    jobs.push_back({Submit("rl-" + std::to_string(first), part), State::kEnded, {}});
    ResultsWriter writer(jobs.back().job.job_dir);
    for (const Point& point : part) writer.Append(samples::Result(point.id));
  }
  const std::vector<Collected> collected = Collect(store_, jobs, 777);
  ASSERT_THAT(collected, SizeIs(kPoints));
  for (size_t i = 0; i < kPoints; ++i) ASSERT_EQ(collected[i].point_id, many[i].id);
  EXPECT_THAT(Collect(store_, jobs, 777), IsEmpty());
  EXPECT_EQ(store_.Progress("s").ok, static_cast<int64_t>(kPoints));
  EXPECT_THAT(store_.LiveJobs(), IsEmpty());
  EXPECT_THAT(store_.Check(), IsEmpty());
}

// SIGTERM gives no reason. The node assumes that a person sent it; the scheduler knows better.
TEST_F(CollectTest, TheSchedulerKnowsWhyAJobWasToldToEnd) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  RunResult told = samples::Result(points_[0].id, RunStatus::kCancelled);
  WriteResult(job, told);
  WriteResult(job, samples::Result(points_[1].id, RunStatus::kOk));
  End(job, {{"end", "timeout"}, {"message", "past the time limit"}, {"hint", "raise it"}});
  EXPECT_EQ(Of(0, "status"), Cell("timeout"));
  EXPECT_EQ(Of(0, "message"), Cell("past the time limit"));
  EXPECT_EQ(Of(0, "hint"), Cell("raise it"));
  EXPECT_EQ(Of(1, "status"), Cell("ok"));
}

TEST_F(CollectTest, APointWhoseTurnNeverCameIsLostAndNotTimedOut) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  MakeDirs(PointDir(job.job_dir, points_[0].id));
  const std::vector<Collected> ends = End(job, {{"end", "timeout"}, {"message", "past the time limit"}});
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[0].end, RunStatus::kTimeout);
  EXPECT_TRUE(ends[0].began);
  EXPECT_EQ(ends[1].end, InfrastructureReason::kLost);
  EXPECT_FALSE(ends[1].began);
  EXPECT_THAT(ends[1].message, HasSubstr("before this point's turn"));
}

TEST_F(CollectTest, APointAfterOneThatEndedWellNeverHadItsTurn) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1], points_[2]});
  WriteResult(job, samples::Result(points_[0].id));  // which leaves no folder
  for (const char* when : {"at once", "when the first is known"}) {
    SCOPED_TRACE(when);
    const std::vector<Collected> ends = End(Live("rl-1"), {{"end", "timeout"}}, State::kRunning);
    EXPECT_THAT(ends, SizeIs(when == std::string("at once") ? 1 : 0));
  }
  for (const Collected& end : End(Live("rl-1"), {{"end", "timeout"}})) EXPECT_FALSE(end.began) << end.point_id;
}

TEST_F(CollectTest, AJobThatNeverBeganTellsWhyForAllItsPoints) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1]});
  for (const Collected& end :
       End(job, {{"end", "infrastructure"}, {"reason", "rights"}, {"message", "no such node"}})) {
    EXPECT_EQ(end.end, InfrastructureReason::kRights);
    EXPECT_THAT(end.message, HasSubstr("no such node"));
  }
}

TEST_F(CollectTest, FoldersOfJobsThatNobodyRecordedAreCollectedOnce) {
  const auto jobs = dir_ / "by hand";
  const store::JobRecord one = [&] {
    store::JobRecord job;
    job.job_dir = jobs / "rl-1";
    MakeDirs(job.job_dir);
    return job;
  }();
  WriteResult(one, samples::Result(points_[0].id, RunStatus::kOk));
  WriteResult(
      one, samples::Result(points_[1].id, InfrastructureReason::kPreempted));  // continues when it is submitted again
  WriteResult(one, samples::Result("not-of-this-sweep", RunStatus::kOk));
  WriteLine(one, points_[2].id, "{\"half\": 1}");
  WriteResult(one, samples::Result(points_[4].id));
  const FolderCollection found = CollectJobFolders(store_, jobs, MeasuredAsDefault());
  EXPECT_EQ(found.added, 2);
  EXPECT_THAT(found.problems, testing::ElementsAre(HasSubstr("results.log"),
                                                   HasSubstr("1 point that is not the sweep's: not-of-this-sweep")));
  EXPECT_EQ(CollectJobFolders(store_, jobs, MeasuredAsDefault()).added, 0);
  EXPECT_EQ(Of(0, "status"), Cell("ok"));
  EXPECT_EQ(Of(4, "status"), Cell("ok"));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{2}));
  // Each result is kept under its point's key.
  EXPECT_EQ(CollectJobFolders(store_, jobs, {{points_[0].id, {kDefaultCampaign, SetupOf({}, 4)}}}).added, 1);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results WHERE setup ->> '$.cpus' = 4"), Cell(int64_t{1}));
}

TEST_F(CollectTest, LogsOfPodsHoldResultsToo) {
  TempDir dir;
  const auto line = [&](size_t point, const RunEnd& end) {
    return FormatJobLine(
        {std::string(kResultLine), points_[point].id, DumpJson(EncodeResult(samples::Result(points_[point].id, end)))});
  };
  WriteFileAtomic(dir / "pods.log", "words\n" + line(0, RunStatus::kOk) + "[pod/rl-1-x/ridgeline] " +
                                        line(1, RunStatus::kTimeout) + line(2, InfrastructureReason::kPreempted) +
                                        line(3, RunStatus::kOk).substr(0, 200) + "\n");
  WriteFileAtomic(dir / "other.txt", line(4, RunStatus::kOk));
  EXPECT_EQ(CollectLogs(store_, dir.path(), MeasuredAsDefault()).added, 2);
  EXPECT_EQ(CollectLogs(store_, dir.path(), MeasuredAsDefault()).added, 0);
  EXPECT_EQ(Of(0, "status"), Cell("ok"));
  EXPECT_EQ(Of(1, "status"), Cell("timeout"));
}

}  // namespace
}  // namespace ridgeline::collect
