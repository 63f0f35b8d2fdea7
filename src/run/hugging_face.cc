#include "run/hugging_face.h"

#include <cstdint>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr size_t kMostConfigBytes = size_t{1} << 20;

// A decoder whose fields have Llama's names. Names and defaults: transformers, models/TYPE/configuration_TYPE.py.
struct LlamaLike {
  std::string_view type;
  std::string_view family;
  bool tied_head = false;  // if tie_word_embeddings is missing
};

// Phi-3 has one product for the attention's three and one for two of its MLP. Gemma has another activation. Neither
// changes the counts.
constexpr LlamaLike kLlamaLike[] = {
    {"llama", "llama"}, {"mistral", "llama"}, {"phi3", "llama"},          {"gemma", "llama", true},
    {"qwen2", "qwen2"}, {"qwen3", "qwen3"},   {"gemma2", "gemma2", true}, {"gemma3_text", "gemma3", true},
};

// MPT's own names. Its norms and products have no biases by default, and its positions are ALiBi's.
Json ShapeOfMpt(const Json& config, const std::function<bool(const char*)>& has,
                const std::function<int64_t(const char*)>& number,
                const std::function<Error(const std::string&)>& refuse) {
  if (has("no_bias") && config.at("no_bias") != true) {
    throw refuse("'no_bias' adds biases that no family of type mpt has here");
  }
  const Json attention = has("attn_config") ? config.at("attn_config") : Json::object();
  if (!attention.is_object()) throw refuse("'attn_config' is not a mapping");
  if (attention.contains("alibi") && attention.at("alibi") != true) {
    throw refuse("'attn_config' has no alibi: Ridgeline knows no other positions for type mpt");
  }
  for (const char* key : {"kv_n_heads", "qk_ln", "qk_gn"}) {
    const Json value = attention.value(key, Json());
    if (!value.is_null() && value != false && value != config.value("n_heads", Json())) {
      throw refuse(fmt::format("'attn_config' has {}, which no family of type mpt has here", key));
    }
  }
  if (has("tie_word_embeddings") && config.at("tie_word_embeddings") != true) {
    throw refuse("'tie_word_embeddings': the head of type mpt is tied here");
  }
  const int64_t hidden = number("d_model");
  return {{"family", "mpt"},
          {"layers", number("n_layers")},
          {"hidden", hidden},
          {"heads", number("n_heads")},
          {"ffn", (has("expansion_ratio") ? number("expansion_ratio") : 4) * hidden},
          {"vocab", number("vocab_size")}};
}

// What other types have that no family of ours has.
struct Foreign {
  std::string_view type;
  std::string_view what;
};
constexpr std::string_view kMixture = "is a mixture of experts, whose steps cannot be priced yet";
constexpr Foreign kForeign[] = {
    {"mixtral", kMixture},
    {"qwen2_moe", kMixture},
    {"qwen3_moe", kMixture},
    {"olmoe", kMixture},
    {"gpt_oss", kMixture},
    {"deepseek_v2", kMixture},
    {"deepseek_v3", kMixture},
    {"llama4", kMixture},
    {"olmo2", "normalizes queries and keys over all heads, which no family here does"},
    {"olmo", "has norms without weights, which no family here has"},
    {"phi", "runs attention and MLP side by side, which no family here does"},
    {"gpt_neox", "runs attention and MLP side by side, which no family here does"},
    {"falcon", "runs attention and MLP side by side, which no family here does"},
    {"gemma3", "reads images, too: give its text_config as a file of its own, with model_type gemma3_text"},
};

}  // namespace

std::string HuggingFaceTypes() {
  std::vector<std::string> types;
  for (const LlamaLike& each : kLlamaLike) types.emplace_back(each.type);
  return Join(types, ", ") + ", gpt2 and mpt";
}

// Names of GPT-2's fields: transformers, models/gpt2/configuration_gpt2.py.
Json ShapeOfConfig(const Json& config, const std::string& source) {
  const auto has = [&](const char* key) { return config.contains(key) && !config.at(key).is_null(); };
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::kInvalidInput, fmt::format("{}: {}", source, why),
                 fmt::format("models of type {} are known", HuggingFaceTypes()));
  };
  const auto number = [&](const char* key) {
    if (has(key) && config.at(key).is_number_integer() && config.at(key) > 0) return config.at(key).get<int64_t>();
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: '{}' {}", source, key, has(key) ? "is not a whole number above 0" : "is missing"));
  };
  const Json type = config.is_object() ? config.value("model_type", Json()) : Json();
  for (const LlamaLike& like : kLlamaLike) {
    if (type != like.type) continue;
    // Refused, because their parameters would not be counted.
    for (const char* key : {"attention_bias", "mlp_bias"}) {
      if (has(key) && config.at(key) != false) {
        throw refuse(fmt::format("'{}' adds biases that no family of type {} has here", key, like.type));
      }
    }
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
      if (has(key)) throw refuse(fmt::format("'{}': the model {}", key, kMixture));
    }
    if (has("partial_rotary_factor") && config.at("partial_rotary_factor") != 1) {
      throw refuse("'partial_rotary_factor': only a part of each head is rotated, which no family here does");
    }
    Json shape = {
        {"family", like.family},
        {"layers", number("num_hidden_layers")},
        {"hidden", number("hidden_size")},
        {"heads", number("num_attention_heads")},
        {"kv_heads", number(has("num_key_value_heads") ? "num_key_value_heads" : "num_attention_heads")},
        {"ffn", number("intermediate_size")},
        {"vocab", number("vocab_size")},
        {"tied_head", has("tie_word_embeddings") ? config.at("tie_word_embeddings") == true : like.tied_head}};
    if (has("head_dim")) shape["head_dim"] = number("head_dim");
    return shape;
  }
  if (type == "gpt2") {
    const int64_t hidden = number("n_embd");
    return {{"family", "gpt"},
            {"layers", number("n_layer")},
            {"hidden", hidden},
            {"heads", number("n_head")},
            {"ffn", has("n_inner") ? number("n_inner") : 4 * hidden},
            {"vocab", number("vocab_size")},
            {"positions", number("n_positions")}};
  }
  if (type == "mpt") return ShapeOfMpt(config, has, number, refuse);
  for (const Foreign& foreign : kForeign) {
    if (type == foreign.type) throw refuse(fmt::format("a model of type '{}' {}", foreign.type, foreign.what));
  }
  throw refuse(fmt::format(
      "a model of type {} has layers that Ridgeline does not know",
      type.is_string() ? "'" + PrintableLine(ShortenToBytes(type.get<std::string>(), 80)) + "'" : "that is not said"));
}

std::optional<Json> ReadShapeOfConfig(const std::filesystem::path& file) {
  const std::optional<std::string> text = ReadFileIfThere(file, kMostConfigBytes);
  if (!text) return std::nullopt;
  const std::string source = PrintableLine(file.string());
  return ShapeOfConfig(ParseJson(*text, source), source);
}

}  // namespace ridgeline
