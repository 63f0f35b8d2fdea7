// Computed values, global_batch, and conditions that compare fields.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {
namespace {

// A sweep of a small model.
Sweep FormulaSweep(const std::string& text, Given given = {}) {
  given.set.emplace_back("model=llama-10m");
  return ParseSweep("name: formulas\n" + text, "formulas.yaml", {}, given);
}

std::string FormulaFaults(const std::string& text) {
  try {
    Expand(FormulaSweep(text));
  } catch (const Error& e) {
    return e.message();
  }
  return "no fault";
}

// batch_size x grad_accumulation of each point.
std::vector<std::pair<int64_t, int64_t>> Batches(const std::string& text, const Given& given = {}) {
  std::vector<std::pair<int64_t, int64_t>> batches;
  for (const Point& point : Expand(FormulaSweep(text, given))) {
    batches.emplace_back(point.spec.batch_size, point.spec.grad_accumulation);
  }
  return batches;
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

TEST(Formula, ComputesAFieldOnEachPoint) {
  EXPECT_EQ(Batches("matrix: {seq_length: [512, 1024]}\ndefaults: {batch_size: '{{4096 / seq_length}}'}\n"),
            (Pairs{{8, 1}, {4, 1}}));
  EXPECT_EQ(Batches("matrix: {batch_size: [1, '{{ 4 * grad_accumulation + 1 }}']}\ndefaults: {grad_accumulation: 2}\n"),
            (Pairs{{1, 2}, {9, 2}}));
  // With braces around each name, as in a trainer's definition.
  EXPECT_EQ(Batches("matrix: {seq_length: [512]}\ndefaults: {batch_size: '{{seq_length}} / {{vocab}}', vocab: 256}\n"),
            (Pairs{{2, 1}}));
}

TEST(Formula, ComputesAFieldAfterThoseThatItGoesBy) {
  EXPECT_EQ(Batches("matrix: {seq_length: [512, 1024]}\n"
                    "defaults: {global_batch: 16, batch_size: '{{4096 / seq_length}}'}\n"),
            (Pairs{{8, 2}, {4, 4}}));
  EXPECT_EQ(FormulaFaults("defaults: {batch_size: '{{grad_accumulation * 2}}', grad_accumulation: '{{batch_size}}'}\n"),
            "formulas.yaml:2:24: batch_size: {{grad_accumulation * 2}}: its formula depends on its own value\n"
            "formulas.yaml:2:72: grad_accumulation: {{batch_size}}: its formula depends on its own value");
}

TEST(Formula, IsPartOfTheGridLikeAValue) {
  EXPECT_EQ(Batches("zip: {seq_length: [512, 1024], batch_size: [3, '{{seq_length / 512}}']}\n"),
            (Pairs{{3, 1}, {2, 1}}));
  EXPECT_EQ(Batches("matrix: {batch_size: [1, 2]}\ninclude: [{grad_accumulation: '{{8 / batch_size}}'}]\n"),
            (Pairs{{1, 8}, {2, 4}}));
  // A computed value that another point has already is that point.
  EXPECT_EQ(Batches("matrix: {batch_size: [8, '{{4096 / seq_length}}']}\ndefaults: {seq_length: 512}\n"),
            (Pairs{{8, 1}}));
  EXPECT_EQ(VaryingFields(FormulaSweep("matrix: {seq_length: [512]}\ndefaults: {batch_size: '{{seq_length / 512}}'}\n"))
                .size(),
            2U);
}

TEST(Formula, WithoutAWholeValueRefusesThePointWithItsPlace) {
  EXPECT_EQ(FormulaFaults("matrix: {seq_length: [512, 3000]}\ndefaults: {batch_size: '{{4096 / seq_length}}'}\n"),
            "formulas.yaml:3:24: batch_size: {{4096 / seq_length}}: 4096 / 3000 is not a whole number (in the point "
            "seq_length: 3000)");
  EXPECT_NE(FormulaFaults("defaults: {seq_length: 512, batch_size: '{{512 - seq_length}}'}\n").find("batch_size is 0"),
            std::string::npos)
      << FormulaFaults("defaults: {seq_length: 512, batch_size: '{{512 - seq_length}}'}\n");
}

TEST(Formula, RefusesWhatIsNoFormula) {
  const auto of = [](const std::string& value) { return FormulaFaults("defaults: {batch_size: '" + value + "'}\n"); };
  EXPECT_EQ(of("{{4096 / seq_lenght}}"),
            "formulas.yaml:2:24: the formula '{{4096 / seq_lenght}}': seq_lenght is a text, and no number to count "
            "with; 'seq_lenght' is not a field, did you mean 'seq_length'?");
  EXPECT_NE(of("{{seq_length > 4}}").find("it is a comparison"), std::string::npos);
  EXPECT_NE(of("{{seq_length /}}").find("a value is missing"), std::string::npos);
  EXPECT_NE(of("{{}}").find("a value is missing"), std::string::npos);
  EXPECT_NE(of("{{nothing}}").find("is a text"), std::string::npos);
  EXPECT_NE(FormulaFaults("defaults: {learning_rate: '{{1 / batch_size}}'}\n").find("whole numbers"),
            std::string::npos);
  EXPECT_NE(
      FormulaFaults("matrix: {batch_size: [1]}\nexclude: [{batch_size: '{{4}}'}]\n").find("as the whole condition"),
      std::string::npos);
}

TEST(GlobalBatch, SetsTheAccumulation) {
  const std::string ranks = "matrix: {ranks: [1, 2, 4]}\n";
  EXPECT_EQ(Batches(ranks + "defaults: {global_batch: 32, batch_size: 4, communicator: gloo}\n"),
            (Pairs{{4, 8}, {4, 4}, {4, 2}}));
  EXPECT_EQ(Batches("matrix: {global_batch: 8..32*2}\ndefaults: {batch_size: 4}\n"), (Pairs{{4, 2}, {4, 4}, {4, 8}}));
}

TEST(GlobalBatch, IsRefusedIfItIsNoMultipleOfTheBatch) {
  EXPECT_EQ(
      FormulaFaults("matrix: {batch_size: [2, 3]}\ndefaults: {global_batch: 32}\n"),
      "formulas.yaml:3:26: global_batch: 32: it is not a multiple of batch_size 3 x 1 data-parallel ranks (in the "
      "point batch_size: 3)");
  // Fewer than one micro-step has.
  EXPECT_NE(FormulaFaults("defaults: {global_batch: 4, batch_size: 8}\n").find("not a multiple of batch_size 8"),
            std::string::npos);
  EXPECT_EQ(Batches("matrix: {batch_size: [2, 3, 4]}\ndefaults: {global_batch: 32}\n"
                    "exclude: ['{{32 % (batch_size * data_parallel) != 0}}']\n"),
            (Pairs{{2, 16}, {4, 8}}));
}

TEST(GlobalBatch, AndTheAccumulationExcludeEachOther) {
  EXPECT_EQ(FormulaFaults("defaults: {global_batch: 8, grad_accumulation: 2}\n"),
            "formulas.yaml:2:48: global_batch sets grad_accumulation, which is given too (line 2)");
  EXPECT_EQ(FormulaFaults("matrix: {global_batch: [8], grad_accumulation: [2]}\n"),
            "formulas.yaml:2:48: grad_accumulation is an axis already, as global_batch: give one of the two");
  Given given;
  given.set = {"grad_accumulation=3"};
  EXPECT_EQ(Batches("defaults: {global_batch: 8}\n", given), (Pairs{{1, 3}}));
  given.set = {"global_batch=6", "batch_size={{seq_length / 256}}"};
  EXPECT_EQ(Batches("matrix: {grad_accumulation: [1, 2]}\ndefaults: {seq_length: 512}\n", given), (Pairs{{2, 3}}));
}

TEST(GlobalBatch, CanBeComparedOnAnySweep) {
  EXPECT_EQ(Batches("matrix: {batch_size: [1, 2, 4], grad_accumulation: [1, 2]}\nonly: {global_batch: [4, 8]}\n"),
            (Pairs{{2, 2}, {4, 1}, {4, 2}}));
  EXPECT_EQ(
      Batches("matrix: {batch_size: [1, 2], global_batch: [4, 8]}\nexclude: [{global_batch: '>4', batch_size: 1}]\n"),
      (Pairs{{1, 4}, {2, 2}, {2, 4}}));
}

TEST(Formula, IsACondition) {
  const std::string grid = "matrix: {batch_size: [1, 2, 3, 4], checkpointing: [none, full]}\n";
  EXPECT_EQ(Batches(grid + "exclude: ['{{batch_size % 2 == 1 or checkpointing == full}}']\n"), (Pairs{{2, 1}, {4, 1}}));
  EXPECT_EQ(Batches(grid + "only: '{{batch_size > 3 and checkpointing != none}}'\n"), (Pairs{{4, 1}}));
  EXPECT_NE(FormulaFaults(grid + "exclude: ['{{batch_size % 2}}']\n").find("it is a number"), std::string::npos);
  EXPECT_NE(FormulaFaults(grid + "exclude: ['{{batch_sise == 2}}']\n").find("did you mean 'batch_size'"),
            std::string::npos);
  EXPECT_EQ(FormulaFaults(grid + "exclude: ['{{4 / batch_size > 2}}']\n"),
            "formulas.yaml:3:11: 4 / batch_size > 2: 4 / 3 is not a whole number");
  Given given;
  given.only = {"batch_size=4"};  // must not be dropped
  EXPECT_THROW(FormulaSweep(grid + "only: '{{batch_size > 3}}'\n", given), Error);
  EXPECT_NE(FormulaFaults(grid + "exclude: [none]\n").find("an entry of exclude is a mapping"), std::string::npos);
}

TEST(Formula, IsAConditionOfRules) {
  const auto points = Expand(FormulaSweep(
      "matrix: {batch_size: [1, 4]}\nlaunch: {rules: [{when: '{{batch_size * seq_length > 1024}}', set: {cpus: 2}}]}\n"
      "defaults: {seq_length: 512}\n"));
  EXPECT_TRUE(points.at(0).rules.empty());
  EXPECT_EQ(points.at(1).rules.size(), 1U);
}

TEST(Formula, NeitherIsComputedFromTheLargestBatchNorHasIt) {
  EXPECT_EQ(FormulaFaults("defaults: {batch_size: max, global_batch: 8}\nlaunch: {memory_limit: 1GB}\n"),
            "formulas.yaml:2:43: the sweep has batch_size: max, which stands for what fits: global_batch cannot be "
            "computed from it");
}

TEST(Include, ComparesTwoFields) {
  const std::string grid = "matrix: {batch_size: [1, 2, 4], grad_accumulation: [1, 2]}\n";
  std::vector<int64_t> seeds;
  for (const Point& point : Expand(FormulaSweep(grid + "include: [{batch_size: '>grad_accumulation', seed: 9}]\n"))) {
    seeds.push_back(point.spec.seed);
  }
  const int64_t none = RunSpec().seed;
  EXPECT_EQ(seeds, (std::vector<int64_t>{none, none, 9, none, 9, 9}));
  EXPECT_NE(FormulaFaults(grid + "include: [{batch_size: '>seq_length', seed: 9}]\n").find("adds no point"),
            std::string::npos);
}

}  // namespace
}  // namespace ridgeline::sweep
