#include "engine/train/model_config.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "ridgeline/limits.h"

namespace ridgeline {
namespace {

constexpr size_t kValueBytes = 80;  // of a value that differs

// A setting that changes a model's logits, or the shape of its weights.
struct Setting {
  std::string_view key;
  Json value;                   // this run's
  Json unsaid = nullptr;        // transformers' value if a file has none
  std::string_view field = {};  // the RunSpec field, if there is one
};

std::vector<Setting> LlamaSettings(const RunSpec& s) {
  return {{"hidden_size", s.hidden, nullptr, "hidden"},
          {"intermediate_size", s.ffn, nullptr, "ffn"},
          {"num_hidden_layers", s.layers, nullptr, "layers"},
          {"num_attention_heads", s.heads, nullptr, "heads"},
          {"num_key_value_heads", s.kv_heads, s.heads, "kv_heads"},
          {"head_dim", s.head_dim, s.hidden / s.heads, "head_dim"},
          {"vocab_size", s.vocab, nullptr, "vocab"},
          {"tie_word_embeddings", s.tied_head, false, "tied_head"},
          {"rms_norm_eps", s.norm_eps, 1e-6, "norm_eps"},
          {"rope_theta", s.rope_theta, 1e4, "rope_theta"},
          {"rope_scaling", nullptr},
          {"hidden_act", "silu", "silu"},
          {"attention_bias", false, false},
          {"mlp_bias", false, false}};
}

std::vector<Setting> GptSettings(const RunSpec& s) {
  return {{"n_embd", s.hidden, nullptr, "hidden"},
          {"n_inner", s.ffn, 4 * s.hidden, "ffn"},
          {"n_layer", s.layers, nullptr, "layers"},
          {"n_head", s.heads, nullptr, "heads"},
          {"n_positions", s.positions, nullptr, "positions"},
          {"vocab_size", s.vocab, nullptr, "vocab"},
          {"tie_word_embeddings", s.tied_head, true, "tied_head"},
          {"layer_norm_epsilon", s.norm_eps, 1e-5, "norm_eps"},
          {"activation_function", "gelu_new", "gelu_new"},
          {"scale_attn_weights", true, true},
          {"scale_attn_by_inverse_layer_idx", false, false}};
}

std::vector<Setting> SettingsOf(const RunSpec& s) {
  const bool llama = s.family == "llama";
  std::vector<Setting> settings = llama ? LlamaSettings(s) : GptSettings(s);
  settings.insert(settings.begin(), {"model_type", llama ? "llama" : "gpt2", nullptr, "family"});
  return settings;
}

// Newer files have all of the rotary embedding in a mapping, and older ones only its scaling. Leaves the scaling's
// kind.
void FlattenRope(Json& config) {
  Json scaling;
  for (const char* group : {"rope_parameters", "rope_scaling"}) {
    const auto it = config.find(group);
    if (it == config.end() || !it->is_object()) continue;
    const Json type = it->value("rope_type", it->value("type", Json("default")));
    if (type != "default") scaling = type;
    if (it->contains("rope_theta")) config["rope_theta"] = it->at("rope_theta");
  }
  config["rope_scaling"] = scaling;
}

std::string Show(const Json& value) {
  return value.is_null() ? "not given" : ShortenToBytes(DumpJson(value), kValueBytes);
}

}  // namespace

std::string EncodeModelConfig(const RunSpec& spec, std::string_view dtype) {
  const bool llama = spec.family == "llama";
  Json config = {{"architectures", {llama ? "LlamaForCausalLM" : "GPT2LMHeadModel"}},
                 {"torch_dtype", dtype == "F32"    ? "float32"
                                 : dtype == "BF16" ? "bfloat16"
                                                   : "float16"},
                 {"bos_token_id", nullptr},
                 {"eos_token_id", nullptr}};
  for (const Setting& setting : SettingsOf(spec)) config[setting.key] = setting.value;
  if (llama) {
    config.update({{"max_position_embeddings", spec.seq_length}, {"attention_dropout", 0.0}});
  } else {
    config.update({{"resid_pdrop", spec.dropout}, {"embd_pdrop", 0.0}, {"attn_pdrop", 0.0}});
  }
  return DumpJson(config, 2) + "\n";
}

void CheckModelConfig(const std::filesystem::path& folder, const RunSpec& spec) {
  const std::filesystem::path path = folder / kModelConfigName;
  const std::optional<std::string> text = ReadForeignFile(path, kMaxRecordBytes, ForeignFile::Links::kFollowed);
  if (!text) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has no {}, which says what its weights are of", folder.string(), kModelConfigName),
                "name a folder that a run left in its checkpoint.dir, or that transformers saved");
  }
  Json config = ParseJson(*text, path.string());
  if (!config.is_object()) throw Error(ErrorKind::kInvalidInput, path.string() + ": not a model's configuration");
  FlattenRope(config);
  std::vector<std::string> differences;
  for (const Setting& setting : SettingsOf(spec)) {
    Json there = config.value(setting.key, Json());
    if (there.is_null()) there = setting.unsaid;
    if (there == setting.value) continue;
    const std::string field = setting.field.empty() ? "" : fmt::format(" ({})", setting.field);
    differences.push_back(
        fmt::format("{} is {} there and {} here{}", setting.key, Show(there), Show(setting.value), field));
  }
  if (differences.empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} is of another model: {}", path.string(), Join(differences, "; ")),
              "give this run that model, or start it from another folder");
}

}  // namespace ridgeline
