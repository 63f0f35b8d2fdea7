#include "run/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "run/names.h"
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

// The config.json of meta-llama/Llama-3.1-8B.
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

// The config.json of mosaicml/mpt-7b.
TEST(HuggingFaceConfig, ReadsMpt) {
  const Json mpt7b = {{"model_type", "mpt"},  {"d_model", 4096},
                      {"n_layers", 32},       {"n_heads", 32},
                      {"expansion_ratio", 4}, {"max_seq_len", 2048},
                      {"vocab_size", 50432},  {"learned_pos_emb", true},
                      {"no_bias", true},      {"attn_config", {{"alibi", true}, {"qk_ln", false}}}};
  std::vector<Problem> problems;
  Json values = ShapeOfConfig(mpt7b, "config.json");
  values["trainer"] = "llm_foundry";
  const RunSpec spec = BuildSpec(values, problems);
  ASSERT_TRUE(problems.empty()) << problems.front().message;
  EXPECT_EQ(spec.model, "mpt-7b");
  EXPECT_EQ(CountParameters(spec), 6'649'286'656);
  Json other = mpt7b;
  other["no_bias"] = false;
  EXPECT_THAT(RefusalOfConfig(other), ::testing::HasSubstr("'no_bias' adds biases"));
  other = mpt7b;
  other["attn_config"]["alibi"] = false;
  EXPECT_THAT(RefusalOfConfig(other), ::testing::HasSubstr("has no alibi"));
  other = mpt7b;
  other["attn_config"]["kv_n_heads"] = 8;
  EXPECT_THAT(RefusalOfConfig(other), ::testing::HasSubstr("has kv_n_heads"));
}

// The counts are those of the published weights.
TEST(HuggingFaceConfig, ParametersAreThePublishedOnes) {
  struct Case {
    Json config;
    const char* family;
    int64_t parameters;
  };
  const auto config = [](const char* type, int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn,
                         int64_t vocab, const Json& more) {
    Json made = {{"model_type", type},           {"num_hidden_layers", layers},     {"hidden_size", hidden},
                 {"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}, {"intermediate_size", ffn},
                 {"vocab_size", vocab}};
    made.update(more);
    return made;
  };
  const Case cases[] = {
      // mistralai/Mistral-7B-v0.1, microsoft/Phi-3-mini-4k-instruct, google/gemma-7b
      {config("mistral", 32, 4096, 32, 8, 14336, 32000, {{"tie_word_embeddings", false}}), "llama", 7'241'732'096},
      {config("phi3", 32, 3072, 32, 32, 8192, 32064, {{"tie_word_embeddings", false}, {"attention_bias", false}}),
       "llama", 3'821'079'552},
      {config("gemma", 28, 3072, 16, 16, 24576, 256000, {{"head_dim", 256}}), "llama", 8'537'680'896},
      // Qwen/Qwen2.5-0.5B and -7B, Qwen/Qwen3-4B and -8B
      {config("qwen2", 24, 896, 14, 2, 4864, 151936, {{"tie_word_embeddings", true}}), "qwen2", 494'032'768},
      {config("qwen2", 28, 3584, 28, 4, 18944, 152064, {{"tie_word_embeddings", false}}), "qwen2", 7'615'616'512},
      {config("qwen3", 36, 2560, 32, 8, 9728, 151936, {{"head_dim", 128}, {"tie_word_embeddings", true}}), "qwen3",
       4'022'468'096},
      {config("qwen3", 36, 4096, 32, 8, 12288, 151936, {{"head_dim", 128}, {"tie_word_embeddings", false}}), "qwen3",
       8'190'735'360},
      // google/gemma-2-9b, google/gemma-3-1b-pt
      {config("gemma2", 42, 3584, 16, 8, 14336, 256000, {{"head_dim", 256}}), "gemma2", 9'241'705'984},
      {config("gemma3_text", 26, 1152, 4, 1, 6912, 262144, {{"head_dim", 256}}), "gemma3", 999'885'952},
  };
  for (const Case& each : cases) {
    std::vector<Problem> problems;
    Json fields = ShapeOfConfig(each.config, "config.json");
    fields["trainer"] = "another";
    const RunSpec spec = BuildSpec(fields, problems);
    ASSERT_TRUE(problems.empty()) << each.config << problems.front().message;
    EXPECT_EQ(NameOf(spec.family), each.family) << each.config;
    EXPECT_EQ(CountParameters(spec), each.parameters) << each.config;
  }
}

TEST(HuggingFaceConfig, RefusesAnotherModel) {
  EXPECT_EQ(RefusalOfConfig({{"model_type", "qwen3_moe"}}),
            "config.json: a model of type 'qwen3_moe' is a mixture of experts, whose steps cannot be priced yet");
  EXPECT_EQ(RefusalOfConfig({{"model_type", "mamba"}}),
            "config.json: a model of type 'mamba' has layers that Ridgeline does not know");
  for (const auto& [key, value] : {std::pair<const char*, Json>{"attention_bias", true},
                                   {"mlp_bias", true},
                                   {"num_local_experts", 8},
                                   {"partial_rotary_factor", 0.75}}) {
    Json other = Llama8b();
    other[key] = value;
    EXPECT_NE(RefusalOfConfig(other).find(std::string("'") + key + "'"), std::string::npos) << key;
  }
  EXPECT_EQ(RefusalOfConfig(Json::array()),
            "config.json: a model of type that is not said has layers that Ridgeline does not know");
  Json config = Llama8b();
  config["num_hidden_layers"] = -1;
  EXPECT_EQ(RefusalOfConfig(config), "config.json: 'num_hidden_layers' is not a whole number above 0");
  config.erase("num_hidden_layers");
  EXPECT_EQ(RefusalOfConfig(config), "config.json: 'num_hidden_layers' is missing");
}

}  // namespace
}  // namespace ridgeline
