#include "run/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

std::string RefusalOfConfig(const Json& config) {
  try {
    ShapeOfConfig(config, "config.json");
  } catch (const Error& e) {
    return e.message();
  }
  return {};
}

// meta-llama/Llama-3.1-8B's.
Json Llama8b() {
  return {{"model_type", "llama"},     {"num_hidden_layers", 32},      {"hidden_size", 4096},
          {"num_attention_heads", 32}, {"num_key_value_heads", 8},     {"intermediate_size", 14336},
          {"vocab_size", 128256},      {"tie_word_embeddings", false}, {"head_dim", nullptr}};
}

TEST(HuggingFaceConfig, IsTheModelThatItNames) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec(ShapeOfConfig(Llama8b(), "config.json"), problems);
  ASSERT_TRUE(problems.empty()) << problems.front().message;
  EXPECT_EQ(spec.model, "llama-8b");
  EXPECT_EQ(CountParameters(spec), 8'030'261'248);
  const RunSpec gpt = BuildSpec(ShapeOfConfig({{"model_type", "gpt2"},
                                               {"n_embd", 768},
                                               {"n_layer", 12},
                                               {"n_head", 12},
                                               {"n_inner", nullptr},
                                               {"vocab_size", 50257},
                                               {"n_positions", 1024}},
                                              "config.json"),
                                problems);
  ASSERT_TRUE(problems.empty()) << problems.front().message;
  EXPECT_EQ(CountParameters(gpt), 124'439'808);
}

TEST(HuggingFaceConfig, OfAnotherModelIsRefused) {
  EXPECT_EQ(RefusalOfConfig({{"model_type", "qwen3_moe"}}),
            "config.json: a model of type 'qwen3_moe' has layers that are none of ours");
  EXPECT_EQ(RefusalOfConfig(Json::array()),
            "config.json: a model of type that is not said has layers that are none of ours");
  Json config = Llama8b();
  config["num_hidden_layers"] = -1;
  EXPECT_EQ(RefusalOfConfig(config), "config.json: 'num_hidden_layers' is no whole number above 0");
  config.erase("num_hidden_layers");
  EXPECT_EQ(RefusalOfConfig(config), "config.json: 'num_hidden_layers' is missing");
}

}  // namespace
}  // namespace ridgeline
