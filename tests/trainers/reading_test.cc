// Definitions applied to logs: what they find, what they miss, and how the run ended.
#include "trainers/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "run/result.h"
#include "trainers/json_values.h"
#include "trainers/log_lines.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Trainer Mine(const std::string& metrics, const std::string& more = {}) {
  return ParseTrainer("name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n" + metrics + more,
                      "mine.yaml");
}

const Trainer& Plain() {
  static const Trainer trainer = Mine(
      "  - {name: loss, regex: 'step (?P<step>[\\d,]+) loss (?P<value>\\S+)', take: series}\n"
      "  - {name: step_time, regex: ' time (\\S+) ms', unit: ms, take: median}\n",
      "ends: [{regex: 'the licence ran out', end: infrastructure, reason: limit, hint: buy one}]\n"
      "exit_codes: {137: oom_host}\n");
  return trainer;
}

Reading Read(const Trainer& trainer, const std::string& log, const ReadingOptions& options = {}) {
  return ReadLog(
      trainer, [&](const auto& feed) { feed(log); }, options);
}

std::string EndOfLog(const std::string& log, std::optional<int> exit_code = std::nullopt) {
  ReadingOptions options;
  options.exit_code = exit_code;
  const auto end = Read(Plain(), log, options).end;
  return end ? EndName(end->end) : "";
}

TEST(Reading, FindsValuesWithTheirSteps) {
  const Reading reading = Read(Plain(), "step 1 loss 2.5 time 3 ms\nother\nstep 1,000 loss 2.25 time 5 ms\n");
  ASSERT_EQ(reading.found.size(), 2U);
  EXPECT_THAT(reading.found[0].values, ElementsAre(2.5, 2.25));
  EXPECT_THAT(reading.found[0].steps, ElementsAre(1, 1000));
  EXPECT_EQ(reading.found[0].matches, 2);
  EXPECT_EQ(reading.found[0].first_line, 1);
  EXPECT_EQ(reading.found[0].last_line, 3);
  EXPECT_THAT(reading.found[1].values, ElementsAre(4e6));
  EXPECT_THAT(reading.missing, IsEmpty());
  EXPECT_EQ(reading.lines, 3);
  EXPECT_FALSE(reading.end) << "nothing says how it ended";
}

TEST(Reading, TakesWhatTheMetricSays) {
  const std::string log = "v 3\nv 1\nv 7\nv 2\n";
  const auto taken = [&](const std::string& take) {
    const Trainer trainer = Mine("  - {name: grad_norm, regex: 'v (.)', take: " + take + "}\n");
    return Read(trainer, log).found.at(0).values;
  };
  EXPECT_THAT(taken("last"), ElementsAre(2));
  EXPECT_THAT(taken("first"), ElementsAre(3));
  EXPECT_THAT(taken("median"), ElementsAre(2.5));
  EXPECT_THAT(taken("max"), ElementsAre(7));
  EXPECT_THAT(taken("min"), ElementsAre(1));
  EXPECT_THAT(taken("sum"), ElementsAre(13));
  EXPECT_THAT(taken("series"), ElementsAre(3, 1, 7, 2));
}

TEST(Reading, AVersionIsText) {
  EXPECT_EQ(Read(Mine("  - {name: version, regex: 'v(\\S+)'}\n"), "v1.0\nv1.1\n").found.at(0).text, "1.1");
  EXPECT_EQ(Read(Mine("  - {name: version, regex: 'v(\\S+)', take: first}\n"), "v1.0\nv1.1\n").found.at(0).text, "1.0");
}

TEST(Reading, FiguresThatTheLogLacksAreMissing) {
  const Reading reading = Read(Plain(), "step 1 loss 2.5\nx time soon ms\n");
  EXPECT_EQ(reading.found.size(), 1U);
  EXPECT_THAT(reading.missing, ElementsAre("step_time"));
  EXPECT_THAT(Read(Plain(), "").missing, ElementsAre("loss", "step_time"));
  EXPECT_EQ(Read(Plain(), "step 1 loss 2.5\nstep 2 loss soon\n").found.at(0).unread, 1);
  const Trainer optional = Mine("  - {name: loss, regex: 'a(\\d)?'}\n");
  EXPECT_THAT(Read(optional, "a\n").missing, ElementsAre("loss")) << "its group took no part";
}

TEST(Reading, AmongMetricsOfOneNameTheFirstWithAValueCounts) {
  const Trainer trainer = Mine("  - {name: loss, regex: 'new (.)'}\n  - {name: loss, regex: 'old (.)'}\n");
  EXPECT_THAT(Read(trainer, "old 1\n").found.at(0).values, ElementsAre(1));
  const Reading both = Read(trainer, "old 1\nnew 2\n");
  ASSERT_EQ(both.found.size(), 1U);
  EXPECT_THAT(both.found[0].values, ElementsAre(2));
  EXPECT_THAT(Read(trainer, "").missing, ElementsAre("loss"));
}

TEST(Reading, ANaNIsNoValueButOfALoss) {
  const Reading reading = Read(Plain(), "step 1 loss 2.5 time nan ms\nstep 2 loss NaN time 4 ms\n");
  EXPECT_THAT(reading.found.at(1).values, ElementsAre(4e6));
  ASSERT_EQ(reading.found.at(0).values.size(), 2U);
  EXPECT_TRUE(std::isnan(reading.found[0].values[1]));
  ASSERT_TRUE(reading.end);
  EXPECT_EQ(EndName(reading.end->end), "diverged");
  EXPECT_EQ(reading.end->line, 2);
  EXPECT_EQ(reading.end->message, "step 2 loss NaN time 4 ms");
}

TEST(Reading, KeepsSoManyValuesAndCountsTheOthers) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\n"
      "metrics: [{name: loss, json: /loss, take: series}]\n",
      "mine.yaml");
  const Json document = {{"loss", std::vector<int>(kMostValues + 3, 2)}};
  const Reading reading = ReadLog(
      trainer, [](const auto&) {}, {}, document);
  EXPECT_EQ(reading.found.at(0).values.size(), static_cast<size_t>(kMostValues));
  EXPECT_EQ(reading.found[0].left_out, 3);
  EXPECT_EQ(reading.found[0].matches, kMostValues + 3);
}

// On each of these, an engine that backtracks takes longer than anybody waits.
TEST(Reading, NoPatternTakesLongerThanItsLineIs) {
  const std::string as(kMaxLogLineBytes - 1, 'a');
  for (const char* regex : {"(?:a+)+(b)", "(?:a|aa)*(b)", "(?:(?:a*)*)*(b)", "a*a*a*a*a*a*a*a*(b)"}) {
    const Trainer trainer = Mine("  - {name: loss, regex: '" + std::string(regex) + "'}\n",
                                 "ends: [{regex: '^(?:a?){500}a{500}c$', end: crashed}]\n");
    const Reading reading = Read(trainer, as + "\n" + as + "b\n");
    EXPECT_EQ(reading.found.size(), 0U) << regex;  // b is not a number
    EXPECT_FALSE(reading.end) << regex;
  }
}

TEST(Reading, AResultFileIsReadByPointers) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\nmetrics:\n"
      "  - {name: loss, json: /train/loss, take: series}\n  - {name: step_time, json: /ms, unit: ms}\n"
      "  - {name: grad_norm, json: /norm}\n  - {name: version, json: /v}\n",
      "mine.yaml");
  const auto none = [](const auto& feed) { feed("RuntimeError\n"); };
  const Json document = {{"train", {{"loss", {2.5, "nan", 2}}}}, {"ms", 12.5}, {"norm", nullptr}, {"v", "1.2"}};
  const Reading reading = ReadLog(trainer, none, {}, document);
  ASSERT_EQ(reading.found.size(), 3U);
  EXPECT_EQ(reading.found[0].values.size(), 3U);
  EXPECT_THAT(reading.found[1].values, ElementsAre(12.5e6));
  EXPECT_EQ(reading.found[2].text, "1.2");
  EXPECT_THAT(reading.missing, ElementsAre("grad_norm"));
  EXPECT_EQ(EndName(reading.end.value().end), "diverged");
  EXPECT_EQ(ReadLog(trainer, none, {}).missing.size(), 4U);
}

TEST(Reading, AResultFileMayHoldListsOfMappings) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\nmetrics:\n"
      "  - {name: loss, json: /history/loss, step: /history/step, take: series}\n"
      "  - {name: step_time, json: /times, step: /numbers, unit: s, take: series}\n"
      "  - {name: grad_norm, json: /history/1/norm}\n",
      "mine.yaml");
  const auto none = [](const auto&) {};
  const Json document = ParseJsonOrLines(
      R"({"history": [{"step": 1, "loss": 3}, {"eval": 1, "norm": 7}, {"step": 2, "loss": 2}],
          "times": [0.5, 0.25], "numbers": [7, 9]})",
      "it");
  const Reading reading = ReadLog(trainer, none, {}, document);
  ASSERT_EQ(reading.found.size(), 3U);
  EXPECT_THAT(reading.found[0].values, ElementsAre(3, 2));
  EXPECT_THAT(reading.found[0].steps, ElementsAre(1, 2));
  EXPECT_THAT(reading.found[1].steps, ElementsAre(7, 9));
  EXPECT_THAT(reading.found[2].values, ElementsAre(7));

  const Trainer lines = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\n"
      "metrics: [{name: loss, json: /loss, step: /step, take: series}]\n",
      "mine.yaml");
  const Json list = ParseJsonOrLines("{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": NaN}\n{\"st", "it");
  EXPECT_THAT(ReadLog(lines, none, {}, list).found.at(0).steps, ElementsAre(1, 2));
  EXPECT_EQ(EndName(ReadLog(lines, none, {}, list).end.value().end), "diverged");
}

TEST(Reading, FiguresThatContradictEachOtherAreSaid) {
  const Trainer trainer = Mine(
      "  - {name: step_time, regex: 'time (\\S+)', unit: s}\n"
      "  - {name: tokens_per_s, regex: 'rate (\\S+)', unit: tokens/s}\n");
  ReadingOptions options;
  options.tokens_per_step = 1000;
  EXPECT_THAT(Read(trainer, "time 2\nrate 510\n", options).contradictions, IsEmpty());
  EXPECT_THAT(Read(trainer, "time 2\nrate 1000\n", options).contradictions,
              ElementsAre(HasSubstr("tokens_per_s is 1.00K, but 1000 tokens in a step of 2")));
  EXPECT_THAT(Read(trainer, "time 2\nrate 1000\n").contradictions, IsEmpty());
}

TEST(Ends, AreBuiltInForEveryTrainer) {
  EXPECT_EQ(EndOfLog("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"), "oom_device");
  EXPECT_EQ(EndOfLog("torch.cuda.OutOfMemoryError: CUDA out of memory.\n"), "oom_device");
  EXPECT_EQ(EndOfLog("RuntimeError: CUDA out of memory\n"), "oom_device");
  EXPECT_EQ(EndOfLog("RuntimeWarning: CUDA out of memory detected. Microbatches get smaller\n"), "") << "it goes on";
  EXPECT_EQ(EndOfLog("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried\n"), "oom_host");
  EXPECT_EQ(EndOfLog("MemoryError\n"), "oom_host");
  EXPECT_EQ(EndOfLog("numpy.core._exceptions._ArrayMemoryError: Unable\n"), "");
  EXPECT_EQ(EndOfLog("what():  std::bad_alloc\n"), "oom_host");
  EXPECT_EQ(EndOfLog("[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n"),
            "infrastructure (node)");
  EXPECT_EQ(EndOfLog("NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n"), "infrastructure (node)");
  EXPECT_EQ(EndOfLog("CUDA error: uncorrectable ECC error encountered\n"), "infrastructure (node)");
  EXPECT_EQ(EndOfLog("GPU has fallen off the bus\n"), "infrastructure (node)");
  EXPECT_EQ(EndOfLog("CUDA-capable device(s) is/are busy or unavailable\n"), "infrastructure (node)");
  EXPECT_EQ(EndOfLog("OSError: [Errno 28] No space left on device\n"), "infrastructure (storage)");
  EXPECT_EQ(EndOfLog("python3: can't open file '/x/train.py': [Errno 2] No such file or directory\n"),
            "infrastructure (start)");
  EXPECT_EQ(EndOfLog("Setting NCCL timeout to 600 s, MemoryErrors 0\nstep 1 loss 2\n"), "") << "settings are no ends";
}

constexpr const char* kTraceback =
    "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 1, in <module>\n"
    "other rank\n[rank0]:     f()\n";

TEST(Ends, ATracebackIsACrashWithItsLastLine) {
  const auto end = Read(Plain(), std::string(kTraceback) + "[rank0]: ValueError: no such file\nafter\n").end;
  ASSERT_TRUE(end);
  EXPECT_EQ(EndName(end->end), "crashed");
  EXPECT_EQ(end->message, "ValueError: no such file");
  EXPECT_EQ(end->line, 5);
  EXPECT_EQ(EndOfLog(std::string(kTraceback) + "[rank0]: ModuleNotFoundError: No module named 'x'\n"),
            "infrastructure (start)");
  EXPECT_EQ(EndOfLog(std::string(kTraceback) + "[rank0]: ImportError: x\n"), "infrastructure (start)");
  EXPECT_EQ(EndOfLog("Traceback (most recent call last):\n  File \"t.py\"\n"), "") << "it was cut off";
}

TEST(Ends, TheLastOfAChainOfTracebacksCounts) {
  const std::string chain =
      "Traceback (most recent call last):\n  File\nKeyError: 'a'\n\nDuring handling of the above exception, another "
      "exception occurred:\n\nTraceback (most recent call last):\n  File\nRuntimeError: b\n";
  EXPECT_EQ(Read(Plain(), chain).end.value().message, "RuntimeError: b");
  const std::string launcher = chain + "Traceback (most recent call last):\n  File\nChildFailedError: t.py\n";
  EXPECT_EQ(Read(Plain(), launcher).end.value().message, "RuntimeError: b") << "the launcher's own comes behind";
}

TEST(Ends, TheMostSpecificWins) {
  const std::string nccl = "Watchdog caught collective operation timeout\n";
  const std::string oom = "torch.OutOfMemoryError: CUDA out of memory\n";
  const std::string crash = std::string(kTraceback) + "[rank0]: ValueError: x\n";
  const std::string nan = "step 1 loss nan\n";
  EXPECT_EQ(EndOfLog(nccl + oom), "oom_device");
  EXPECT_EQ(EndOfLog(crash + oom), "oom_device");
  EXPECT_EQ(EndOfLog(nan + oom), "oom_device");
  EXPECT_EQ(EndOfLog(crash + nccl), "crashed") << "the others waited for who crashed";
  EXPECT_EQ(EndOfLog(nccl + crash), "infrastructure (node)");
  EXPECT_EQ(EndOfLog(std::string(kTraceback) + "[rank0]: torch.distributed.DistBackendError: ncclRemoteError: x\n"),
            "infrastructure (node)")
      << "its message is NCCL's";
  EXPECT_EQ(EndOfLog(nan + crash), "diverged");
  EXPECT_EQ(EndOfLog(oom + "the licence ran out\n"), "infrastructure (limit)") << "the definition's own come first";
  EXPECT_EQ(Read(Plain(), "the licence ran out\n").end.value().hint, "buy one");
}

TEST(Ends, AnExitCodeSaysWhatTheLogDoesNot) {
  const std::string crash = std::string(kTraceback) + "[rank0]: ValueError: x\n";
  EXPECT_EQ(EndOfLog("", 0), "ok");
  EXPECT_EQ(EndOfLog("", 1), "crashed");
  EXPECT_EQ(EndOfLog("", 137), "oom_host");
  EXPECT_EQ(EndOfLog(crash, 137), "oom_host");
  EXPECT_EQ(EndOfLog("CUDA out of memory\n", 137), "oom_device");
  EXPECT_EQ(EndOfLog(crash, 0), "ok") << "somebody caught it";
  EXPECT_EQ(EndOfLog("CUDA out of memory\n", 0), "ok");
  EXPECT_EQ(EndOfLog("step 1 loss nan\n", 0), "diverged");
  EXPECT_EQ(EndOfLog("the licence ran out\n", 0), "infrastructure (limit)");
}

TEST(Ends, EvidenceIsCut) {
  const auto end = Read(Plain(), "CUDA out of memory: " + std::string(100'000, 'a') + "\n").end;
  EXPECT_LE(end.value().message.size(), 1024U);
}

TEST(PatternSet, SaysWhichMatch) {
  const Pattern a("a+");
  const Pattern b("(b)");
  const PatternSet set({&a, &b});
  EXPECT_THAT(set.Matching("xaab"), ElementsAre(0, 1));
  EXPECT_THAT(set.Matching("xb"), ElementsAre(1));
  EXPECT_THAT(set.Matching("x"), IsEmpty());
  EXPECT_THAT(PatternSet({}).Matching("x"), IsEmpty());
}

TEST(PatternSet, StaysBoundedWherePatternsAreLarge) {
  std::vector<Pattern> patterns;
  for (int i = 0; i < 256; ++i) patterns.emplace_back("(?:x{" + std::to_string(500 + i) + "}y?){1,1}");
  std::vector<const Pattern*> all;
  for (const Pattern& pattern : patterns) all.push_back(&pattern);
  const PatternSet set(all);
  EXPECT_THAT(set.Matching(std::string(520, 'x')), ::testing::IsSupersetOf({0, 19, 20}));
}

}  // namespace
}  // namespace ridgeline::trainers
