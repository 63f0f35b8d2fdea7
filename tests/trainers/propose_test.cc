// Definitions proposed from logs, held against what the shipped definitions read there.
#include "trainers/propose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"
#include "base/split_mix.h"
#include "trainers/definition.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

fs::path LogFolder() { return fs::path(RIDGELINE_SOURCE_DIR) / "tests/trainers/logs"; }

Proposal ProposeFrom(const std::string& log, const ProposalAnswers& answers = {}) {
  return ProposeMetrics([&](const auto& feed) { feed(log); }, answers);
}

// What the proposed definition reads in its own log, by figure.
std::map<std::string, std::vector<double>> ReadByProposal(const std::string& log, const ProposalAnswers& answers = {}) {
  const Proposal proposal = ProposeFrom(log, answers);
  const std::string text = DefinitionText("mine", "train.log", proposal, {});
  const Trainer trainer = ParseTrainer(text, "mine.yaml");
  const Reading reading = ReadLog(trainer, [&](const auto& feed) { feed(log); }, {});
  std::map<std::string, std::vector<double>> found;
  for (const FoundMetric& metric : reading.found) found[std::string(metric.metric->figure->name)] = metric.values;
  return found;
}

bool Agree(const std::vector<double>& values, const Json& expected) {
  const Json list = expected.is_array() ? expected : Json::array({expected});
  if (list.size() != values.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!list[i].is_number() || std::abs(list[i].get<double>() - values[i]) > 1e-9 * std::abs(values[i])) return false;
  }
  return true;
}

// What a proposal may find besides: NAME.LOG figure.
const std::set<std::string>& Besides() {
  static const std::set<std::string> besides = {
      // The number that the log calls the number of parameters; it is rounded, and leaves out position embeddings.
      "nanogpt.ok parameters", "nanogpt.ok_cpu parameters",
      // The first line has a time of zero, which no run counts.
      "llm_foundry.ok step_time",
      // The log calls a smoothed loss the loss.
      "nanochat.ok loss", "nanochat.ok_cpu loss",
      // Figures of the log that the shipped definitions leave out, because they are rounded or known otherwise.
      "nanotron.ok tokens_per_s", "llm_c.ok mean_step_time", "llm_foundry.ok trainable_parameters",
      "hf_trainer.ok parameters", "hf_trainer.ok5 parameters"};
  return besides;
}

// For each figure of a shipped definition, a proposal reads the same, asks, or says nothing.
TEST(Propose, FindsTheFiguresOfLogsWhoseDefinitionIsHidden) {
  int right = 0;
  int asked = 0;
  int all = 0;
  for (const auto& file : fs::directory_iterator(LogFolder())) {
    if (file.path().extension() != ".json") continue;
    const std::string name = file.path().stem().string();
    const Json logs = ReadJsonFile(file.path());
    for (const auto& said : logs.items()) {
      if (!said.key().starts_with("ok")) continue;
      const std::string log = ReadFile(LogFolder() / (name + "." + said.key() + ".log"));
      SCOPED_TRACE(name + "." + said.key());
      const Proposal proposal = ProposeFrom(log);
      std::set<std::string> in_question;
      for (const ProposedMetric& metric : proposal.metrics) {
        if (!metric.question.empty()) in_question.insert(metric.figure);
      }
      const Json& expected = said.value().at("found");
      for (const auto& [figure, values] : ReadByProposal(log)) {
        const bool agrees = expected.contains(figure) && Agree(values, expected.at(figure));
        right += agrees ? 1 : 0;
        EXPECT_TRUE(agrees || Besides().contains(name + "." + said.key() + " " + figure))
            << figure << ": " << Json(values).dump();
      }
      for (const auto& figure : expected.items()) {
        ++all;
        asked += in_question.contains(figure.key()) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(all, 135);
  EXPECT_GE(right, 88);
  EXPECT_GE(asked, 27);
}

constexpr const char* kTiny =
    "tiny-train 1.4\n"
    "model has 10.1M parameters\n"
    "[1/3] loss=10.900 | 1,040.1 ms | mem 18.20 GiB | 51,200 tok/s\n"
    "[2/3] loss=10.800 | 40.2 ms | mem 18.30 GiB | 51,100 tok/s\n"
    "[3/3] loss=nan | 40.3 ms | mem 18.30 GiB | 51,000 tok/s\n";

TEST(Propose, ReadsWhatIsCertain) {
  const auto found = ReadByProposal(kTiny);
  EXPECT_THAT(found.at("step_time"), ElementsAre(1040100000, 40200000, 40300000));
  EXPECT_EQ(found.at("loss").at(1), 10.8);
  EXPECT_TRUE(std::isnan(found.at("loss").at(2)));
  EXPECT_THAT(found.at("parameters"), ElementsAre(10100000));
  EXPECT_EQ(found.size(), 3);
}

TEST(Propose, AsksWhatALogLeavesOpen) {
  std::map<std::string, std::string> asked;
  for (const ProposedMetric& metric : ProposeFrom(kTiny).metrics) {
    if (!metric.question.empty()) asked[metric.figure] += metric.question;
  }
  EXPECT_EQ(asked.size(), 2);
  EXPECT_THAT(asked["tokens_per_s"], HasSubstr("--rates all"));
  EXPECT_THAT(asked["device_peak"], HasSubstr("--memory device_peak"));
  const auto found = ReadByProposal(kTiny, {.rates = "gpu", .memory = "device_reserved", .gb = ""});
  EXPECT_THAT(found.at("tokens_per_s"), ElementsAre(51200, 51100, 51000));
  EXPECT_THAT(found.at("device_reserved"), ElementsAre(std::round(18.3 * (1 << 30))));
}

TEST(Propose, AsksForAUnit) {
  const std::string log = "step 1 time 0.51 loss 2.5 peak mem 18.2GB\nstep 2 time 0.42 loss 2.4 peak mem 18.2GB\n";
  for (const ProposedMetric& metric : ProposeFrom(log).metrics) {
    if (metric.figure == "step_time") {
      EXPECT_THAT(metric.question + metric.take, AnyOf(HasSubstr("ms or s"), HasSubstr("arrival")));
    }
    if (metric.figure == "device_peak") {
      EXPECT_THAT(metric.question, HasSubstr("1000 or of 1024"));
    }
  }
  const auto found = ReadByProposal(log, {.rates = "", .memory = "device_peak", .gb = "1024"});
  EXPECT_THAT(found.at("device_peak"), ElementsAre(std::round(18.2 * (1 << 30))));
}

TEST(Propose, AsksWhetherSeveralLinesOfAStepAreRanksOrMicroSteps) {
  const std::string log =
      "iter 0 step 1 | loss 5.1 | time: 20 ms\niter 1 step 1 | loss 5.0 | time: 21 ms\n"
      "iter 2 step 2 | loss 4.9 | time: 22 ms\niter 3 step 2 | loss 4.8 | time: 23 ms\n";
  EXPECT_FALSE(ReadByProposal(log).contains("step_time"));
  // Lines that name their ranks are no micro-steps.
  const std::string ranks =
      "[rank0]: step 1 time: 20 ms\n[rank1]: step 1 time: 21 ms\n[rank0]: step 2 time: 22 ms\n[rank1]: step 2 time: 23 "
      "ms\n";
  EXPECT_TRUE(ReadByProposal(ranks).contains("step_time"));
}

TEST(Propose, ReadsJsonLines) {
  const std::string log =
      "{\"step\": 1, \"train\": {\"loss\": 2.5}, \"step_time_ms\": 12.5, \"eval_loss\": 3}\n"
      "{\"step\": 2, \"train\": {\"loss\": 2.4}, \"step_time_ms\": 11.5, \"eval_loss\": 3}\n";
  const auto found = ReadByProposal(log);
  EXPECT_THAT(found.at("loss"), ElementsAre(2.5, 2.4));
  EXPECT_THAT(found.at("step_time"), ElementsAre(12500000, 11500000));
}

TEST(Propose, TakesNoTimeSinceTheStartForAStepsTime) {
  const Proposal proposal = ProposeFrom(
      "step 1 loss 5 elapsed 1.5s\nstep 2 loss 4 elapsed 2.5s\nstep 3 loss 3 elapsed 3.5s\nstep 4 loss 3 elapsed "
      "4.5s\n");
  EXPECT_THAT(proposal.notes, ElementsAre(HasSubstr("grows from line to line")));
  EXPECT_EQ(proposal.metrics.front().take, "arrival");
}

TEST(Propose, FindsNothingWhereThereIsNothing) {
  EXPECT_THAT(ProposeFrom("2025-11-03 09:14:02 version 0.15.4 started on port 29500\n").metrics, IsEmpty());
  EXPECT_THAT(ProposeFrom("").metrics, IsEmpty());
}

// A run with fewer steps than lie between two lines would print none.
TEST(Propose, SaysHowManyStepsLieBetweenLines) {
  std::string log;
  for (int step = 10; step <= 60; step += 10) log += fmt::format("step {} loss 2.3 time 12.5 ms\n", step);
  EXPECT_THAT(ProposeFrom(log).notes, ElementsAre(HasSubstr("one step of 10. Let points measure more steps than that, "
                                                            "such as `measure: {warmup_steps: 10, steps: 30}`")));
  const std::string text = DefinitionText("mine", "a.log", ProposeFrom(log), {"x", "--batch={{batch_size}}"});
  EXPECT_THAT(text, HasSubstr("\n# supports: {model: any, precision: any, seq_length: any}\n"));
}

// Text of a log stands in the file as text, whatever it has.
TEST(Propose, WritesADefinitionThatCanBeReadWhateverTheLogHas) {
  const std::string log =
      "it's {{a}} \"x\": # 'q' step 1 loss 2.5\x1b[31m\nit's {{a}} \"x\": # 'q' step 2 loss 2.4\n"
      "(.*)[a-z]+\\d$ step 1 | time: 5 ms\n(.*)[a-z]+\\d$ step 2 | time: 6 ms\n";
  const auto found = ReadByProposal(log);
  EXPECT_THAT(found.at("loss"), ElementsAre(2.5, 2.4));
  EXPECT_THAT(found.at("step_time"), ElementsAre(5000000, 6000000));
}

// ParseTrainer throws if a pattern or the file around it is wrong.
TEST(Propose, WritesADefinitionThatCanBeReadOfDamagedLogs) {
  SplitMix64 random(1);
  const std::string signs = "\\'\"{}[]()|*+?.^$#:,%\t\r\n 0/-\x80";
  for (const auto& file : fs::directory_iterator(LogFolder())) {
    if (file.path().extension() != ".log") continue;
    const std::string whole = ReadFile(file.path());
    std::string log = whole.substr(whole.size() - std::min<size_t>(whole.size(), 2000));
    for (int i = 0; i < 40; ++i) log[random.Next() % log.size()] = signs[random.Next() % signs.size()];
    SCOPED_TRACE(log);
    const Proposal proposal = ProposeFrom(log);
    const auto counts = [](const ProposedMetric& metric) { return metric.question.empty(); };
    if (std::ranges::none_of(proposal.metrics, counts)) continue;
    EXPECT_NO_THROW(
        ParseTrainer(DefinitionText("mine", log.substr(0, 200), proposal, {"sh", "-c", "a\n'b\""}), "mine.yaml"));
  }
}

}  // namespace
}  // namespace ridgeline::trainers
