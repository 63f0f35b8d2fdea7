// Predicted against published throughput, row by row. With RIDGELINE_UPDATE_GOLDENS=1 this test rewrites the table.
// docs/prediction-accuracy.md has the summary.
#include "tests/predict/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/files.h"

namespace ridgeline::predict {
namespace {

const std::vector<PublishedStep>& Steps() {
  static const std::vector<PublishedStep> steps = PublishedSteps();
  return steps;
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
}  // namespace ridgeline::predict
