#include "run/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/model.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

RunSpec SpecOf(const Preset& preset) {
  std::vector<Problem> problems;
  RunSpec spec =
      BuildSpec({{"model", std::string(preset.name)}, {"trainer", preset.is_ours() ? "ridgeline" : "mine"}}, problems);
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
    EXPECT_EQ(NameOf(spec.family), cells[0]);
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

// The counts of the models' authors.
TEST(Presets, ModelsThatPeopleBenchmarkHaveTheirParameters) {
  const std::map<std::string, int64_t> published = {
      {"llama2-7b", 6738415616},      {"llama2-13b", 13015864320},
      {"llama2-70b", 68976648192},    {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},    {"llama3-405b", 405853388800},
      {"llama3.2-1b", 1235814400},    {"llama3.2-3b", 3212749824},
      {"mistral-7b", 7241732096},     {"qwen2.5-7b", 7615616512},
      {"qwen2.5-32b", 32763876352},   {"qwen3-0.6b", 596049920},
      {"qwen3-8b", 8190735360},       {"qwen3-32b", 32762123264},
      {"gemma2-9b", 9241705984},      {"gemma3-27b", 27009346304},
      {"mpt-7b", 6649286656},         {"mixtral-8x7b", 46702792704},
      {"qwen3-30b-a3b", 30532122624}, {"qwen3-235b-a22b", 235093634560},
      {"deepseek-v3", 671026419200},
  };
  for (const auto& [name, parameters] : published) {
    ASSERT_NE(FindPreset(name), nullptr) << name;
    EXPECT_EQ(CountParameters(SpecOf(*FindPreset(name))), parameters) << name;
  }
}

TEST(Presets, ATokenUsesAFewExpertsOfAMixture) {
  const auto active = [](const char* name) { return ActiveParameters(SpecOf(*FindPreset(name))); };
  EXPECT_EQ(active("mixtral-8x7b"), 46702792704 - 32LL * 6 * 3 * 4096 * 14336);
  EXPECT_EQ(active("qwen3-30b-a3b"), 30532122624 - 48LL * 120 * 3 * 2048 * 768);
  EXPECT_EQ(active("deepseek-v3"), 671026419200 - 58LL * 248 * 3 * 7168 * 2048);
  EXPECT_EQ(active("qwen3-8b"), 8190735360) << "of a dense model all of them";
  RunSpec said = SpecOf(*FindPreset("mixtral-8x7b"));
  said.active_parameters = 5;
  EXPECT_EQ(ActiveParameters(said), 5);
}

// Tensor by tensor, as in the models' code.
TEST(Presets, ParametersOfOtherTrainersFamiliesAreTheSumOfTheTensors) {
  int64_t h = 3584;
  int64_t layer = h + h + (h * h + h) + 2 * (h * 512 + 512) + h * h + 3 * h * 18944;  // biases of q, k and v
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("qwen2.5-7b"))), 2 * 152064 * h + 28 * layer + h);
  h = 2560;
  layer = h + h + h * 4096 + 2 * h * 1024 + 4096 * h + 128 + 128 + 3 * h * 9728;  // norms of q and k
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("qwen3-4b"))), 151936 * h + 36 * layer + h);
  h = 2304;
  layer = 4 * h + h * 2048 + 2 * h * 1024 + 2048 * h + 3 * h * 9216;  // four norms
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("gemma2-2b"))), 256000 * h + 26 * layer + h);
  h = 7168;
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("mpt-30b"))), 50432 * h + 48 * (2 * h + 12 * h * h) + h);
  h = 4096;
  layer = h + h + 2 * h * h + 2 * h * 1024 + h * 8 + 8 * 3 * h * 14336;  // a router and its experts
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("mixtral-8x7b"))), 2 * 32000 * h + 32 * layer + h);
  h = 7168;
  const int64_t attention = h * 1536 + 1536 + 1536 * 128 * (128 + 64) + h * (512 + 64) + 512 + 512 * 128 * (128 + 128) +
                            128 * 128 * h + 2 * h;
  const int64_t mixed = h * 256 + 256 + (256 + 1) * 3 * h * 2048;
  EXPECT_EQ(CountParameters(SpecOf(*FindPreset("deepseek-v3"))),
            2 * 129280 * h + 61 * attention + 3 * 3 * h * 18432 + 58 * mixed + h);
}

TEST(Presets, FlopsAreOfWhatATokenTakes) {
  RunSpec mixtral = SpecOf(*FindPreset("mixtral-8x7b"));
  mixtral.seq_length = 1;  // makes the attention's share negligible
  const double tokens = static_cast<double>(mixtral.batch_size * mixtral.grad_accumulation);
  const double of_a_token = ModelFlops(mixtral).model_causal / tokens;
  EXPECT_NEAR(of_a_token / (6.0 * (12879925248 - 32000.0 * 4096)), 1, 1e-3) << "the embedding multiplies nothing";
  RunSpec named;
  named.family = ModelFamily::kOther;
  EXPECT_EQ(ModelFlops(named).model_causal, 0) << "nobody knows";
  EXPECT_EQ(CountParameters(named), 0);
  EXPECT_EQ(ActiveParameters(named), 0);
  named.parameters = 1000;
  named.batch_size = 2;
  named.seq_length = 50;
  EXPECT_DOUBLE_EQ(ModelFlops(named).model_causal, 6.0 * 1000 * 100);
  named.active_parameters = 100;
  EXPECT_DOUBLE_EQ(ModelFlops(named).model_non_causal, 6.0 * 100 * 100);
  named.layers = 3;
  named.hidden = 64;
  EXPECT_DOUBLE_EQ(ModelFlops(named).model_non_causal, 6.0 * 100 * 100 + 3 * 4.0 * 3 * 64 * 50 * 100);
  named.flops_per_token = 7;
  EXPECT_DOUBLE_EQ(ModelFlops(named).model_causal, 700);
  EXPECT_DOUBLE_EQ(ModelFlops(named).model_non_causal, 700);
}

TEST(Presets, TwoNamesOfOneShapeAreTheSamePoint) {
  for (const auto& [other, name] : {std::pair("llama3-8b", "llama-8b"),
                                    {"llama3.1-405b", "llama3-405b"},
                                    {"llama3.2-1b", "llama-1b"},
                                    {"llama3.3-70b", "llama3-70b"}}) {
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", other}}, problems);
    EXPECT_TRUE(problems.empty()) << other;
    EXPECT_EQ(spec.model, name);
    EXPECT_EQ(PointId(spec), PointId(SpecOf(*FindPreset(name))));
    EXPECT_NE(std::find(PresetNames().begin(), PresetNames().end(), other), PresetNames().end());
  }
}

// Users who gave such a shape before it had a name have results for it.
TEST(Presets, AYoungerNameChangesNoId) {
  std::vector<Problem> problems;
  const RunSpec shape = BuildSpec({{"family", "llama"},
                                   {"layers", 32},
                                   {"hidden", 4096},
                                   {"heads", 32},
                                   {"kv_heads", 32},
                                   {"ffn", 11008},
                                   {"vocab", 32000}},
                                  problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(shape.model, "llama2-7b");
  EXPECT_EQ(ParseJson(EncodeSpec(shape), "spec").at("model"), "llama-32x4096");
  EXPECT_EQ(PointId(shape), "f9b50ec9fbfac0451f867e22f6eee530");
  EXPECT_EQ(PointId(SpecOf(*FindPreset("llama2-7b"))), PointId(shape));
  EXPECT_EQ(DecodeSpec(ParseJson(EncodeSpec(shape), "spec"), "spec").model, "llama2-7b");
  EXPECT_EQ(ModelOfText(ParseJson(EncodeSpec(shape), "spec")), "llama2-7b");
}

TEST(Presets, ThoseOfOtherTrainersAreRefusedOfOurs) {
  for (const Preset& preset : Presets()) {
    std::vector<Problem> problems;
    BuildSpec({{"model", std::string(preset.name)}}, problems);
    if (preset.is_ours()) {
      EXPECT_TRUE(problems.empty()) << preset.name;
      continue;
    }
    ASSERT_EQ(problems.size(), 1U) << preset.name;
    EXPECT_TRUE(problems[0].message.starts_with("the model " + std::string(preset.name) + " is for other trainers: "))
        << problems[0].message;
  }
  for (const std::string& name : OurPresetNames()) EXPECT_TRUE(FindPreset(name)->is_ours()) << name;
}

TEST(Presets, NearNamesAreFound) {
  const auto first = [](const char* name, bool ours) { return PresetsNear(name, ours).at(0); };
  EXPECT_EQ(first("llama-7b", true), "llama2-7b");
  EXPECT_EQ(first("lama2-13b", true), "llama2-13b");
  EXPECT_EQ(first("Qwen3-8B", false), "qwen3-8b");
  EXPECT_EQ(first("qwen-2.5-7b", false), "qwen2.5-7b");
  EXPECT_EQ(first("mixtral8x7b", false), "mixtral-8x7b");
  EXPECT_EQ(first("deepseekv3", false), "deepseek-v3");
  EXPECT_EQ(first("gemma-2-9b", false), "gemma2-9b");
  for (const std::string& name : PresetsNear("qwen3-8b", true)) EXPECT_TRUE(FindPreset(name)->is_ours()) << name;
}

// Counted tensor by tensor from the families' definitions, not by CountParameters' formula.
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
    spec.family = preset.family == ModelFamily::kStack ? ModelFamily::kMpt : ModelFamily::kStack;
    for (int64_t* part : {&spec.layers, &spec.hidden, &spec.heads, &spec.kv_heads, &spec.head_dim, &spec.ffn,
                          &spec.vocab, &spec.positions, &spec.experts, &spec.experts_per_token, &spec.expert_ffn}) {
      *part = -1;
    }
    spec.tied_head = !preset.tied_head;
    const RunSpec before = spec;
    ApplyPreset(preset, spec);
    for (const Field& field : Fields()) {
      if (FieldText(spec, field) != FieldText(before, field)) set.insert(field.name);
    }
  }
  for (const Field& field : Fields()) EXPECT_EQ(field.Has(Field::kOfShape), set.contains(field.name)) << field.name;
}

TEST(Presets, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Preset& preset : Presets()) EXPECT_EQ(FindPreset(preset.name), &preset);
  for (const std::string& name : PresetNames()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NE(FindPreset(name), nullptr);
  }
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
    if (preset.experts > 0) continue;
    const double named = std::stod(size) * units.at(size.back());
    EXPECT_NEAR(static_cast<double>(preset.parameters) / named, 1.0, 0.35) << preset.name;
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
    EXPECT_EQ(
        spec.model,
        std::string(NameOf(preset.family)) + "-" + std::to_string(spec.layers) + "x" + std::to_string(spec.hidden) +
            (spec.experts == 0 ? "" : "-" + std::to_string(spec.experts) + "x" + std::to_string(spec.expert_ffn)));
  }
}

TEST(Presets, ChangingHiddenOfAPresetChangesItsHeadDim) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-25m"}, {"hidden", 768}}, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(spec.head_dim, 128);
  // llama-32b has head_dim 128, although hidden / heads is 80: it is kept.
  EXPECT_EQ(SpecOf(*FindPreset("llama-32b")).head_dim, 128);
}

}  // namespace
}  // namespace ridgeline
