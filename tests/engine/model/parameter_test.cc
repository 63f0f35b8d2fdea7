#include "engine/model/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "run/presets.h"
#include "run/spec.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

TEST(ModelShape, HasExactlyTheParametersOfEveryPreset) {
  for (const Preset& preset : Presets()) {
    if (!preset.is_ours()) continue;
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", std::string(preset.name)}}, problems);
    ASSERT_TRUE(problems.empty()) << preset.name;
    int64_t elements = 0;
    std::set<std::string> names;
    for (const Parameter& parameter : ShapeOf(spec).parameters) {
      elements += parameter.elements();
      int64_t rows = 0;
      for (const ParameterPart& part : parameter.parts) {
        EXPECT_TRUE(names.insert(part.name).second) << part.name;
        EXPECT_EQ(part.first_row, rows);
        rows += part.rows;
      }
      EXPECT_EQ(rows, parameter.rows);
    }
    EXPECT_EQ(elements, preset.parameters) << preset.name;
  }
}

TEST(ModelShape, HasTheParametersThatAreCountedInEveryFamily) {
  for (const std::string& family : kFamilies) {
    const RunSpec spec = SpecFrom(TinyModel(family));
    int64_t elements = 0;
    for (const Parameter& parameter : ShapeOf(spec).parameters) elements += parameter.elements();
    EXPECT_EQ(elements, CountParameters(spec)) << family;
  }
}

TEST(ModelShape, ALayersParametersAreOneGroupAndEachOtherOneIsAlone) {
  for (const char* model : {"llama-10m", "gpt-10m", "stack-1b"}) {
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", model}}, problems);
    const ModelShape shape = ShapeOf(spec);
    std::vector<int> all;
    int64_t layers = 0;
    for (const std::vector<int>& group : shape.groups) {
      all.insert(all.end(), group.begin(), group.end());
      const bool is_layer = std::any_of(shape.layers.begin(), shape.layers.end(), [&](const auto& sublayers) {
        const LinearParameters& last = sublayers.back().out;
        return sublayers.front().norm.weight == group.front() && std::max(last.weight, last.bias) == group.back();
      });
      EXPECT_TRUE(is_layer || group.size() == 1);
      layers += is_layer ? 1 : 0;
    }
    EXPECT_EQ(layers, spec.layers);
    std::vector<int> expected(shape.parameters.size());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

// Ranks that share a layer split the outputs of its first products and the inputs of its last ones.
TEST(ModelShape, EveryParameterHasTheRoleOfItsPlace) {
  for (const char* model : {"llama-10m", "gpt-10m", "stack-1b"}) {
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", model}}, problems);
    const ModelShape shape = ShapeOf(spec);
    std::vector<Role> expected(shape.parameters.size(), Role::kReplicated);
    const auto expect = [&](int parameter, Role role) {
      if (parameter >= 0) expected[static_cast<size_t>(parameter)] = role;
    };
    const auto expect_norm = [&](const NormParameters& norm) {
      expect(norm.weight, Role::kNorm);
      expect(norm.bias, Role::kNorm);
    };
    expect_norm(shape.final_norm);
    expect(shape.embedding, Role::kVocabulary);
    expect(shape.head, Role::kVocabulary);
    int64_t linears = 0;
    int64_t sublayers = 0;
    for (const auto& layer : shape.layers) {
      for (const SublayerParameters& sublayer : layer) {
        EXPECT_EQ(sublayer.number, sublayers++);
        EXPECT_EQ(sublayer.in.number, linears++);
        EXPECT_EQ(sublayer.out.number, linears++);
        EXPECT_EQ(sublayer.in.inputs, spec.hidden);
        EXPECT_EQ(sublayer.out.outputs, spec.hidden);
        expect_norm(sublayer.norm);
        expect(sublayer.in.weight, Role::kColumnParallel);
        expect(sublayer.in.bias, Role::kColumnParallel);
        expect(sublayer.out.weight, Role::kRowParallel);
      }
    }
    EXPECT_EQ(shape.sublayers, sublayers);
    EXPECT_EQ(shape.linears, linears);
    for (size_t p = 0; p < expected.size(); ++p) {
      EXPECT_EQ(shape.parameters[p].role, expected[p]) << shape.parameters[p].parts.front().name;
    }
  }
}

// Four ranks have every element between them: as often as there are ranks if it is replicated, twice if there are half
// as many heads of keys as ranks, else once.
TEST(ModelShape, TensorParallelRanksShareEveryElement) {
  for (const std::string& family : kFamilies) {
    Json values = TinyModel(family);
    values.update({{"ranks", 8}, {"tensor_parallel", 4}, {"seq_length", 36}});
    if (values.contains("vocab")) values["vocab"] = 132;
    const RunSpec spec = SpecFrom(values);
    std::vector<std::vector<int>> holders;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const ModelShape shape = ShapeOf(spec, rank);
      EXPECT_EQ(ShapeOf(spec, rank + 4).parameters.back().share.InWhole(0), shape.parameters.back().share.InWhole(0))
          << "the next data-parallel rank has the same";
      for (size_t p = 0; p < shape.parameters.size(); ++p) {
        const Parameter& parameter = shape.parameters[p];
        const Share& share = parameter.share;
        if (rank == 0) holders.emplace_back(parameter.elements());
        int64_t last = -1;
        share.ForRuns(0, share.elements(), [&](int64_t element, int64_t whole, int64_t count) {
          EXPECT_GT(whole, last) << "in the order of the whole";
          for (int64_t i = 0; i < count; ++i) {
            EXPECT_EQ(share.InWhole(element + i), whole + i);
            EXPECT_EQ(share.Before(whole + i), element + i);
            ++holders[p][static_cast<size_t>(whole + i)];
          }
          last = whole + count - 1;
        });
        EXPECT_EQ(share.Before(parameter.elements()), share.elements());
      }
    }
    const ModelShape shape = ShapeOf(spec);
    for (size_t p = 0; p < holders.size(); ++p) {
      const Parameter& parameter = shape.parameters[p];
      SCOPED_TRACE(parameter.parts.front().name);
      const bool replicated = parameter.role == Role::kReplicated || parameter.role == Role::kNorm;
      const bool has_keys = family == "llama" && parameter.parts.size() == 3;
      for (size_t i = 0; i < holders[p].size(); ++i) {
        const bool of_keys = has_keys && static_cast<int64_t>(i) >= parameter.parts[1].first_row * parameter.cols;
        ASSERT_EQ(holders[p][i], replicated ? 4 : of_keys ? 2 : 1) << i;
      }
    }
  }
}

TEST(ModelShape, AnUntiedHeadIsAParameterOfItsOwn) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"tied_head", false}}, problems);
  const ModelShape shape = ShapeOf(spec);
  EXPECT_NE(shape.head, shape.embedding);
  EXPECT_EQ(shape.parameters[static_cast<size_t>(shape.head)].parts[0].name, "lm_head.weight");
}

}  // namespace
}  // namespace ridgeline::engine
