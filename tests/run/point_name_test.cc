// Names of points for people.
#include "run/point_name.h"

#include <gtest/gtest.h>

#include <vector>

#include "run/spec.h"

namespace ridgeline {
namespace {

using FieldList = std::vector<const Field*>;

RunSpec SpecWith(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  EXPECT_TRUE(problems.empty());
  return spec;
}

TEST(PointName, HasTheFieldsThatDistinguishThePoint) {
  const RunSpec spec = SpecWith({{"model", "llama-10m"}, {"batch_size", 8}, {"checkpointing", "full"}});
  EXPECT_EQ(PointName(spec, FieldList{FindField("model"), FindField("batch_size"), FindField("checkpointing")}),
            "model=llama-10m, batch_size=8, checkpointing=full");
  EXPECT_EQ(PointName(spec, FieldList{}), "model=llama-10m");
  EXPECT_EQ(PointName(std::vector<NamedValue>{{"seed", "1"}, {"flash", "true"}}), "seed=1, flash=true");
}

TEST(PointName, ShowsControlCharactersAsEscapes) {
  const RunSpec spec = SpecWith({{"model", "llama-10m"}, {"data", "a\x1b[31m\nb"}});
  EXPECT_EQ(PointName(spec, FieldList{FindField("data")}), "data=a\\x1b[31m\\nb");
}

TEST(PointName, NamesALonePointByItsFields) {
  EXPECT_EQ(PointName(SpecWith({{"model", "llama-10m"}, {"batch_size", 8}, {"seq_length", 512}})),
            "llama-10m, bf16, batch 8, sequence 512");
  EXPECT_EQ(PointName(SpecWith({{"model", "llama-10m"},
                                {"batch_size", 2},
                                {"grad_accumulation", 4},
                                {"seq_length", 512},
                                {"precision", "fp32"},
                                {"checkpointing", "full"},
                                {"communicator", "gloo"},
                                {"ranks", 2}})),
            "llama-10m, fp32, batch 2 \xC3\x97 4, sequence 512, checkpointing full, 2 ranks");
}

}  // namespace
}  // namespace ridgeline
