#include "run/hugging_face.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {

// Names of fields: transformers, models/llama/configuration_llama.py and models/gpt2/configuration_gpt2.py.
Json ShapeOfConfig(const Json& config, const std::string& source) {
  const auto has = [&](const char* key) { return config.contains(key) && !config.at(key).is_null(); };
  const auto number = [&](const char* key) {
    if (has(key) && config.at(key).is_number_integer() && config.at(key) > 0) return config.at(key).get<int64_t>();
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: '{}' {}", source, key, has(key) ? "is no whole number above 0" : "is missing"));
  };
  const Json type = config.is_object() ? config.value("model_type", Json()) : Json();
  if (type == "llama" || type == "mistral") {
    Json shape = {{"family", "llama"},
                  {"layers", number("num_hidden_layers")},
                  {"hidden", number("hidden_size")},
                  {"heads", number("num_attention_heads")},
                  {"kv_heads", number(has("num_key_value_heads") ? "num_key_value_heads" : "num_attention_heads")},
                  {"ffn", number("intermediate_size")},
                  {"vocab", number("vocab_size")},
                  {"tied_head", config.value("tie_word_embeddings", Json(false)) == true}};
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
  throw Error(
      ErrorKind::kInvalidInput,
      fmt::format("{}: a model of type {} has layers that are none of ours", source,
                  type.is_string() ? "'" + ShortenToBytes(type.get<std::string>(), 80) + "'" : "that is not said"),
      "llama, mistral and gpt2 are known");
}

}  // namespace ridgeline
