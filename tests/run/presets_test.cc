#include "run/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

RunSpec SpecOf(const Preset& preset) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec({{"model", std::string(preset.name)}}, problems);
  EXPECT_TRUE(problems.empty()) << preset.name << ": " << problems.front().message;
  return spec;
}

// tests/run/models.csv: family,size,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,head,parameters
TEST(Presets, EveryRowOfTheReferenceTableIsAPresetOfThatShape) {
  std::istringstream lines(ReadFile(RIDGELINE_SOURCE_DIR "/tests/run/models.csv"));
  std::string line;
  std::getline(lines, line);
  ASSERT_EQ(line, "family,size,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,head,parameters");
  int rows = 0;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 11U) << line;
    const Preset* preset = FindPreset(cells[0] + "-" + cells[1]);
    ASSERT_NE(preset, nullptr) << line;
    const RunSpec spec = SpecOf(*preset);
    EXPECT_EQ(spec.family, cells[0]);
    const std::vector<int64_t> shape = {spec.layers,   spec.hidden, spec.heads, spec.kv_heads,
                                        spec.head_dim, spec.ffn,    spec.vocab};
    for (size_t i = 0; i < shape.size(); ++i)
      EXPECT_EQ(shape[i], std::stoll(cells[i + 2])) << line << " cell " << i + 2;
    if (!cells[9].empty()) {
      EXPECT_EQ(spec.tied_head, cells[9] == "tied") << line;
    }
    EXPECT_EQ(CountParameters(spec), std::stoll(cells[10])) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 18);
}

TEST(Presets, EveryStatedParameterCountIsExact) {
  for (const Preset& preset : Presets()) EXPECT_EQ(CountParameters(SpecOf(preset)), preset.parameters) << preset.name;
}

// Counted tensor by tensor, from the families' definitions, and not by CountParameters' formula.
TEST(Presets, ParametersAreTheSumOfTheTensors) {
  const RunSpec llama = SpecOf(*FindPreset("llama-25m"));  // 8 layers, 384 hidden, 6 heads of 64, 2 kv heads, ffn 1024
  int64_t h = 384;
  int64_t layer = h + h;                       // two RMSNorm weights
  layer += h * h + h * 128 + h * 128 + h * h;  // q, k, v, o
  layer += h * 1024 + h * 1024 + 1024 * h;     // gate, up, down
  EXPECT_EQ(CountParameters(llama), 32000 * h + 8 * layer + h);

  const RunSpec gpt = SpecOf(*FindPreset("gpt-10m"));  // 7 layers, 256 hidden, ffn 1024, 1024 positions
  h = 256;
  layer = 4 * h;                            // two LayerNorms, weight and bias
  layer += h * 768 + 768 + h * h + h;       // qkv and projection
  layer += h * 1024 + 1024 + 1024 * h + h;  // MLP
  EXPECT_EQ(CountParameters(gpt), 16384 * h + 1024 * h + 7 * layer + 2 * h);

  // One layer of NVIDIA's fsdp.py at hidden 2048.
  RunSpec stack = SpecOf(*FindPreset("stack-1b"));
  stack.layers = 1;
  EXPECT_EQ(CountParameters(stack), 41'967'616);
}

TEST(Presets, AShapeIsWhatAPresetSets) {
  std::set<std::string_view> set;
  for (const Preset& preset : Presets()) {
    RunSpec spec;
    spec.family = "none";
    spec.layers = spec.hidden = spec.heads = spec.kv_heads = spec.head_dim = spec.ffn = spec.vocab = spec.positions =
        -1;
    spec.tied_head = !preset.tied_head;
    const RunSpec before = spec;
    ApplyPreset(preset, spec);
    for (const Field& field : Fields()) {
      if (FieldText(spec, field) != FieldText(before, field)) set.insert(field.name);
    }
  }
  for (const Field& field : Fields()) EXPECT_EQ(field.Has(Field::kOfShape), set.contains(field.name)) << field.name;
}

TEST(Presets, NamesAreUniqueAndSayFamilyAndSize) {
  std::set<std::string_view> names;
  for (const Preset& preset : Presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_TRUE(preset.name.starts_with(std::string(preset.family) + "-")) << preset.name;
    EXPECT_EQ(FindPreset(preset.name), &preset);
  }
  EXPECT_EQ(PresetNames().size(), Presets().size());
  for (const char* small : {"llama-5m", "llama-10m", "llama-25m", "llama-124m", "llama-350m", "gpt-10m", "gpt-25m",
                            "gpt-124m", "gpt-350m"}) {
    EXPECT_NE(FindPreset(small), nullptr) << small;
  }
  EXPECT_EQ(FindPreset("llama-2m"), nullptr);
  EXPECT_EQ(FindPreset(""), nullptr);
}

TEST(Presets, SizesInNamesAreAboutTheParameterCounts) {
  const std::map<char, double> units = {{'m', 1e6}, {'b', 1e9}};
  for (const Preset& preset : Presets()) {
    const std::string size(preset.name.substr(preset.name.find('-') + 1));
    const double named = std::stod(size) * units.at(size.back());
    EXPECT_NEAR(static_cast<double>(preset.parameters) / named, 1.0, 0.25) << preset.name;
  }
}

TEST(Presets, AShapeIsRecognizedAndAChangedOneIsNot) {
  for (const Preset& preset : Presets()) {
    RunSpec spec = SpecOf(preset);
    EXPECT_EQ(PresetOfShape(spec), &preset);
    EXPECT_EQ(spec.model, preset.name);
    spec.layers += 1;
    EXPECT_EQ(PresetOfShape(spec), nullptr);
    Canonicalize(spec);
    EXPECT_EQ(spec.model,
              std::string(preset.family) + "-" + std::to_string(spec.layers) + "x" + std::to_string(spec.hidden));
  }
}

TEST(Presets, ChangingHiddenOfAPresetChangesItsHeadDim) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-25m"}, {"hidden", 768}}, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(spec.head_dim, 128);
  // llama-32b has head_dim 128 where hidden / heads is 80: that is kept.
  EXPECT_EQ(SpecOf(*FindPreset("llama-32b")).head_dim, 128);
}

}  // namespace
}  // namespace ridgeline
