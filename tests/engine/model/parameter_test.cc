#include "engine/model/parameter.h"

#include <gtest/gtest.h>

#include <set>

#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

TEST(ModelShape, HasExactlyTheParametersOfEveryPreset) {
  for (const Preset& preset : Presets()) {
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

TEST(ModelShape, AnUntiedHeadIsAParameterOfItsOwn) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"tied_head", false}}, problems);
  const ModelShape shape = ShapeOf(spec);
  EXPECT_NE(shape.head, shape.embedding);
  EXPECT_EQ(shape.parameters[static_cast<size_t>(shape.head)].parts[0].name, "lm_head.weight");
}

}  // namespace
}  // namespace ridgeline
