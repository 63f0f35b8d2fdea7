// Predicted against published throughput, row by row: half of the rows set the efficiencies, the other half states the
// error. Run with RIDGELINE_UPDATE_GOLDENS=1 to write the table anew; what it comes to is in docs/prediction.md.
#include "tests/predict/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/files.h"

namespace ridgeline {
namespace {

const std::vector<PublishedStep>& Steps() {
  static const std::vector<PublishedStep> steps = [] {
    std::vector<PublishedStep> all;
    for (const PublishedRow& row : PublishedRows()) {
      if (OutOfScope(row).empty()) all.push_back(StepOf(row));
    }
    return all;
  }();
  return steps;
}

std::vector<const PublishedStep*> StepsThat(const std::function<bool(const PublishedStep&)>& are) {
  std::vector<const PublishedStep*> chosen;
  for (const PublishedStep& step : Steps()) {
    if (are(step)) chosen.push_back(&step);
  }
  return chosen;
}

// |predicted / published - 1|, from the least to the largest.
std::vector<double> Errors(const std::vector<const PublishedStep*>& steps, const Efficiency& efficiency) {
  std::vector<double> errors;
  for (const PublishedStep* step : steps) errors.push_back(std::abs(step->Ratio(efficiency) - 1));
  std::sort(errors.begin(), errors.end());
  return errors;
}

double QuantileOf(const std::vector<double>& sorted, double q) {
  return sorted.at(static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size()))) - 1);
}

std::string InWords(const std::string& what, const std::vector<double>& errors) {
  return fmt::format("{}: {} rows, median error {:.1f} %, 90th percentile {:.1f} %", what, errors.size(),
                     100 * QuantileOf(errors, 0.5), 100 * QuantileOf(errors, 0.9));
}

TEST(Published, EachRowIsInScopeOrCountedWithItsReason) {
  std::map<std::string, int> counts;
  for (const PublishedRow& row : PublishedRows()) ++counts[OutOfScope(row)];
  const std::map<std::string, int> expected = {
      {"", 55},
      {"LoRA: not all weights are trained", 20},
      {"a device that its source does not describe (power-limited, no limit said)", 4},
      {"not a dense model whose shape is known here", 160},
      {"ran out of memory", 10},
      {"tensor, pipeline, context or expert parallelism, or shards within machines alone (HSDP)", 82}};
  EXPECT_EQ(counts, expected);
}

TEST(Published, HalfOfTheRowsSetTheEfficiencies) {
  const Efficiency fitted = FittedTo(StepsThat([](const PublishedStep& step) { return step.sets; }));
  const Efficiency shipped;
  const std::string found = fmt::format("products {:.2f}, products_fp8 {:.2f}, attention {:.2f}, power {:.2f}",
                                        fitted.products, fitted.products_fp8, fitted.attention, fitted.power);
  EXPECT_NEAR(fitted.products, shipped.products, 0.011) << found;
  EXPECT_NEAR(fitted.products_fp8, shipped.products_fp8, 0.011) << found;
  EXPECT_NEAR(fitted.attention, shipped.attention, 0.011) << found;
  EXPECT_NEAR(fitted.power, shipped.power, 0.011) << found;
}

TEST(Published, TheOtherHalfStatesTheError) {
  const auto held_out = StepsThat([](const PublishedStep& step) { return !step.sets; });
  const std::vector<double> errors = Errors(held_out, {});
  fmt::print("{}\n", InWords("of those that set nothing", errors));
  EXPECT_LE(QuantileOf(errors, 0.5), 0.10);
  EXPECT_LE(QuantileOf(errors, 0.9), 0.20);
  const auto of_issue = StepsThat([](const PublishedStep& step) {
    return !step.sets && (step.device.gpu == "h100" || step.device.gpu == "h200" || step.device.gpu == "b200");
  });
  fmt::print("{}\n", InWords("of those, on H100, H200 and B200", Errors(of_issue, {})));
  EXPECT_LE(QuantileOf(Errors(of_issue, {}), 0.5), 0.15);

  // The interval that every forecast has.
  const auto within = std::ranges::count_if(held_out, [](const PublishedStep* step) {
    const StepForecast forecast = Forecast(step->costs, step->device, step->framework);
    const double published_ns = forecast.step_ns * step->Ratio({});
    return published_ns >= forecast.low_ns && published_ns <= forecast.high_ns;
  });
  EXPECT_GE(static_cast<double>(within), 0.9 * static_cast<double>(held_out.size()));
}

// Rows of one framework resemble each other, and stand in both halves: what is predicted of one that set nothing at all
// is harder.
TEST(Published, AFrameworkThatSetNothingIsPredictedToo) {
  std::vector<double> errors;
  for (const char* framework : {"torchtitan", "Megatron-Bridge", "NeMo via dgxc", "NeMo 24", "fms-fsdp"}) {
    const auto is_of = [&](const PublishedStep& step) { return step.row.framework.starts_with(framework); };
    const Efficiency others = FittedTo(StepsThat([&](const PublishedStep& step) { return !is_of(step); }));
    const std::vector<double> its = Errors(StepsThat(is_of), others);
    fmt::print("{}\n", InWords(framework, its));
    errors.insert(errors.end(), its.begin(), its.end());
  }
  ASSERT_EQ(errors.size(), Steps().size());
  std::sort(errors.begin(), errors.end());
  fmt::print("{}\n", InWords("each by the others", errors));
  EXPECT_LE(QuantileOf(errors, 0.5), 0.15);
}

// Each of its models, GPUs and formats is predicted with what its other rows set, and all with what its file says. How
// often a step without torch.compile passes over memory is the file's throughout.
TEST(Published, TorchtitanIsWithinWhatItsFileSays) {
  const Framework file = FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  std::vector<PublishedStep> rows;
  for (const PublishedStep& step : Steps()) {
    if (step.row.framework != "torchtitan") continue;
    PublishedStep& row = rows.emplace_back(step);
    row.ratios.clear();
    row.framework.passes = step.row.compiled == "no" ? file.eager_passes : file.passes;
  }
  const auto key = [](const PublishedStep& step) {
    return step.row.model + step.row.gpu + step.row.precision.substr(0, 3);
  };
  std::set<std::string> configurations;
  for (const PublishedStep& row : rows) configurations.insert(key(row));
  std::vector<double> held_out, fitted;
  for (const std::string& left_out : configurations) {
    std::vector<const PublishedStep*> its, others;
    for (const PublishedStep& row : rows) (key(row) == left_out ? its : others).push_back(&row);
    const Efficiency set_by_others = FittedTo(others);
    for (const PublishedStep* row : its) {
      held_out.push_back(std::abs(row->Ratio(set_by_others) - 1));
      fitted.push_back(std::abs(row->Ratio(file.efficiency) - 1));
    }
  }
  std::sort(held_out.begin(), held_out.end());
  const auto mean = [](const std::vector<double>& errors) {
    double sum = 0;
    for (const double error : errors) sum += error;
    return sum / static_cast<double>(errors.size());
  };
  fmt::print(
      "torchtitan: {} rows; left out by configuration: mean error {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %; "
      "all, as its file says: mean {:.1f} %\n",
      rows.size(), 100 * mean(held_out), 100 * QuantileOf(held_out, 0.9), 100 * held_out.back(), 100 * mean(fitted));
  EXPECT_EQ(std::ssize(rows), file.time_evidence.rows);
  EXPECT_LE(mean(held_out), file.time_evidence.error);
  EXPECT_LE(QuantileOf(held_out, 0.9), file.time_evidence.spread - 1);
  EXPECT_LE(mean(fitted), file.time_evidence.error);
}

TEST(Published, TheTableIsTheGolden) {
  std::string table =
      "id,framework,model,gpu,gpus,precision,seq_length,sets,published_tokens_per_s,predicted_tokens_per_s,ratio\n";
  for (const PublishedStep& step : Steps()) {
    const double ratio = step.Ratio({});
    table += fmt::format("{},{},{},{},{},{},{},{},{},{:.0f},{:.2f}\n", step.row.id, step.row.framework, step.row.model,
                         step.row.gpu, step.row.gpus, step.row.precision, step.row.seq_length, step.sets ? "yes" : "no",
                         step.row.tokens_per_s, ratio * step.row.tokens_per_s, ratio);
  }
  const auto file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/predict/published.csv";
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    WriteFileAtomic(file, table);
  }
  EXPECT_EQ(table, ReadFile(file)) << "RIDGELINE_UPDATE_GOLDENS=1 writes it anew";
}

}  // namespace
}  // namespace ridgeline
