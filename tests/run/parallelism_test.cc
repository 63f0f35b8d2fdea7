// How ranks share a model, and what of it the engine takes.
#include "run/parallelism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run/spec.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Parallelism, TensorParallelRanksOfTheEngineHaveWholeHeadsAndEqualParts) {
  const auto problem = [](const Json& more) {
    Json values = {{"family", "llama"}, {"layers", 2},  {"hidden", 48}, {"heads", 12},     {"kv_heads", 6},
                   {"ffn", 96},         {"vocab", 192}, {"ranks", 48},  {"batch_size", 8}, {"seq_length", 16}};
    values.update(more);
    std::vector<Problem> wrong;
    const RunSpec spec = BuildSpec(values, wrong);
    EXPECT_THAT(wrong, IsEmpty()) << values;
    const auto problems = BeyondTheEngine(spec);
    if (problems.empty()) return std::string();
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems.front().field, "tensor_parallel");
    return problems.front().message;
  };
  for (const int64_t ranks : {1, 2, 12}) EXPECT_EQ(problem({{"tensor_parallel", ranks}, {"seq_length", 36}}), "");
  EXPECT_EQ(problem({{"tensor_parallel", 4}, {"kv_heads", 4}, {"ffn", 98}}),
            "tensor_parallel: 4 does not divide ffn: 98; use 1 or 2");
  EXPECT_EQ(problem({{"tensor_parallel", 8}, {"kv_heads", 4}}),
            "tensor_parallel: 8 does not divide heads: 12; use 1 or 2 or 4");
  EXPECT_EQ(problem({{"tensor_parallel", 4}, {"kv_heads", 4}, {"vocab", 131}}),
            "tensor_parallel: 4 does not divide vocab: 131; use 1, or vocab: 132");
  EXPECT_EQ(problem({{"tensor_parallel", 4}}),
            "tensor_parallel: 4 neither divides kv_heads: 6 nor is a multiple of it; use 1 or 2");
  EXPECT_EQ(problem({{"tensor_parallel", 4}, {"kv_heads", 4}, {"batch_size", 2}, {"seq_length", 37}}),
            "tensor_parallel: 4 does not divide the 74 tokens of a micro-batch (batch_size 2 x seq_length 37); "
            "use 1 or 2, or sequence_parallel: false");
  EXPECT_EQ(problem({{"tensor_parallel", 4},
                     {"kv_heads", 4},
                     {"batch_size", 2},
                     {"seq_length", 37},
                     {"sequence_parallel", false}}),
            "");
  EXPECT_THAT(problem({{"tensor_parallel", 2}, {"precision", "fp8"}, {"primary_weights", "quantized"}}),
              HasSubstr("use primary_weights: high_precision"));
}

TEST(Parallelism, RanksThatShareTokensNeedAMultipleOfThem) {
  RunSpec spec;
  spec.ranks = 8;
  spec.tensor_parallel = 8;
  spec.seq_length = 12;
  spec.batch_size = 3;
  EXPECT_EQ(LeastForTokens(spec, &RunSpec::batch_size), 2);
  EXPECT_EQ(LeastForTokens(spec, &RunSpec::seq_length), 8);
  spec.sequence_parallel = false;
  EXPECT_EQ(LeastForTokens(spec, &RunSpec::batch_size), 1);
}

}  // namespace
}  // namespace ridgeline
