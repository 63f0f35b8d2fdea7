#include "run/families.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/text.h"
#include "run/names.h"

namespace ridgeline {
namespace {

double AsDouble(int64_t value) { return static_cast<double>(value); }

ModelCounts OfAttention(const RunSpec& s, const Family& family) {
  const double hidden = AsDouble(s.hidden);
  const double q = AsDouble(s.heads) * AsDouble(s.head_dim);
  const double kv = AsDouble(s.kv_heads) * AsDouble(s.head_dim);
  const double products = 2 * hidden * q + 2 * hidden * kv;
  const double biases = family.biases ? q + 2 * kv + hidden : family.qkv_biases ? q + 2 * kv : 0;
  return {products + biases + (family.qk_norms ? 2 * AsDouble(s.head_dim) : 0), products};
}

// DeepSeek V3's attention: queries through 1536; keys and values of 512, and 64 that rotate; heads of 128, and 64 that
// rotate.
ModelCounts OfLatentAttention(const RunSpec& s) {
  const double hidden = AsDouble(s.hidden);
  const double heads = AsDouble(s.heads);
  const double products =
      hidden * 1536 + 1536 * heads * 192 + hidden * (512 + 64) + 512 * heads * 256 + heads * 128 * hidden;
  return {products + 1536 + 512, products};
}

ModelCounts OfMlp(const RunSpec& s, const Family& family, int64_t width) {
  const double products = (family.gated ? 3 : 2) * AsDouble(s.hidden) * AsDouble(width);
  return {products + (family.biases ? AsDouble(width) + AsDouble(s.hidden) : 0), products};
}

double OfNorm(const RunSpec& s, const Family& family) { return AsDouble(s.hidden) * (family.biases ? 2 : 1); }

// The layers with this attention, of which the first `dense_layers` are dense. A mixed layer has a router, and `taken`
// experts.
ModelCounts OfLayers(const RunSpec& s, const Family& family, const ModelCounts& attention, double dense_layers,
                     double taken) {
  const ModelCounts dense = OfMlp(s, family, s.ffn);
  const double layers = AsDouble(s.layers);
  const double mixed_layers = layers - dense_layers;
  ModelCounts counts{layers * (attention.all + family.norms * OfNorm(s, family)) + dense_layers * dense.all,
                     layers * attention.multiplied + dense_layers * dense.multiplied};
  if (mixed_layers > 0) {
    const ModelCounts expert = OfMlp(s, family, s.expert_ffn);
    const double router = AsDouble(s.hidden) * AsDouble(s.experts);
    counts.all += mixed_layers * (taken * expert.all + router);
    counts.multiplied += mixed_layers * (taken * expert.multiplied + router);
  }
  return counts;
}

void AddOutsideLayers(const RunSpec& s, const Family& family, ModelCounts& counts) {
  const double vocabulary = AsDouble(s.vocab) * AsDouble(s.hidden);
  counts.multiplied += vocabulary;
  counts.all += vocabulary * (s.tied_head ? 1 : 2) + AsDouble(s.positions) * AsDouble(s.hidden) +
                (family.embeds ? OfNorm(s, family) : 0);
}

ModelCounts Count(const RunSpec& s, int64_t experts) {
  const Family& family = FamilyOf(s);
  const double dense_layers = s.experts == 0 ? AsDouble(s.layers) : 0;
  ModelCounts counts = OfLayers(s, family, OfAttention(s, family), dense_layers, AsDouble(experts));
  AddOutsideLayers(s, family, counts);
  return counts;
}

// The first three layers are dense. The others have one more expert, which every token takes, and a bias for each
// expert to choose from.
ModelCounts CountDeepSeekV3(const RunSpec& s, int64_t experts) {
  const Family& family = FamilyOf(s);
  const double dense_layers = std::min(AsDouble(s.layers), s.experts == 0 ? AsDouble(s.layers) : 3);
  ModelCounts counts = OfLayers(s, family, OfLatentAttention(s), dense_layers, AsDouble(experts) + 1);
  counts.all += (AsDouble(s.layers) - dense_layers) * AsDouble(s.experts);
  AddOutsideLayers(s, family, counts);
  return counts;
}

// Its heads have 192 numbers in queries and keys, and 128 in values.
double AttendedByDeepSeekV3(const RunSpec& s) { return AsDouble(s.heads) * (192.0 + 128) / 2; }

void SetStackDefaults(RunSpec& spec) {
  spec.dropout = 0.1;
  spec.optimizer = OptimizerKind::kAdam;
  spec.learning_rate = 1e-4;
  spec.beta2 = 0.999;
  spec.weight_decay = 0;
}

// Keys: https://huggingface.co/docs/transformers/model_doc/llama
HubConfig LlamaConfig(const RunSpec& s) {
  return {"llama",
          "LlamaForCausalLM",
          {{"hidden_size", s.hidden, nullptr, "hidden"},
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
           {"mlp_bias", false, false}},
          {{"max_position_embeddings", s.seq_length}, {"attention_dropout", 0.0}}};
}

// Keys: https://huggingface.co/docs/transformers/model_doc/gpt2
HubConfig GptConfig(const RunSpec& s) {
  return {"gpt2",
          "GPT2LMHeadModel",
          {{"n_embd", s.hidden, nullptr, "hidden"},
           {"n_inner", s.ffn, 4 * s.hidden, "ffn"},
           {"n_layer", s.layers, nullptr, "layers"},
           {"n_head", s.heads, nullptr, "heads"},
           {"n_positions", s.positions, nullptr, "positions"},
           {"vocab_size", s.vocab, nullptr, "vocab"},
           {"tie_word_embeddings", s.tied_head, true, "tied_head"},
           {"layer_norm_epsilon", s.norm_eps, 1e-5, "norm_eps"},
           {"activation_function", "gelu_new", "gelu_new"},
           {"scale_attn_weights", true, true},
           {"scale_attn_by_inverse_layer_idx", false, false}},
          {{"resid_pdrop", s.dropout}, {"embd_pdrop", 0.0}, {"attn_pdrop", 0.0}}};
}

// One row for each value, in its order. Other trainers' families have the names that Hugging Face's transformers gives
// them (model_type).
constexpr Family kFamilies[] = {
    {.family = ModelFamily::kLlama,
     .ours = true,
     .mixes = true,
     .rope_theta = 5e5,
     .count = Count,
     .config = LlamaConfig},
    {.family = ModelFamily::kGpt,
     .ours = true,
     .learned_positions = true,
     .gated = false,
     .biases = true,
     .tied_head = true,
     .priced_as = ModelFamily::kGpt,
     .count = Count,
     .config = GptConfig},
    {.family = ModelFamily::kStack,
     .ours = true,
     .embeds = false,
     .gated = false,
     .biases = true,
     .state_as_precision = true,
     .priced_as = ModelFamily::kStack,
     .set_defaults = SetStackDefaults,
     .count = Count},
    {.family = ModelFamily::kQwen2, .qkv_biases = true, .rope_theta = 1e6, .count = Count},
    {.family = ModelFamily::kQwen3, .qk_norms = true, .mixes = true, .rope_theta = 1e6, .count = Count},
    {.family = ModelFamily::kGemma2, .norms = 4, .rope_theta = 1e4, .tied_head = true, .count = Count},
    {.family = ModelFamily::kGemma3,
     .qk_norms = true,
     .norms = 4,
     .rope_theta = 1e6,
     .tied_head = true,
     .count = Count},
    {.family = ModelFamily::kMpt, .gated = false, .tied_head = true, .priced_as = ModelFamily::kGpt, .count = Count},
    {.family = ModelFamily::kDeepSeekV3,
     .mixes = true,
     .rope_theta = 1e4,
     .priced = false,
     .count = CountDeepSeekV3,
     .attended = AttendedByDeepSeekV3},
    {.family = ModelFamily::kOther, .embeds = false, .priced = false},
};
static_assert(std::size(kFamilies) == kNames<ModelFamily>.size());
static_assert([] {
  size_t row = 0;
  return std::ranges::all_of(kFamilies, [&](const Family& f) { return f.family == static_cast<ModelFamily>(row++); });
}());

}  // namespace

std::span<const Family> Families() { return kFamilies; }

const Family& RowOf(ModelFamily family) { return kFamilies[static_cast<size_t>(family)]; }
const Family& FamilyOf(const RunSpec& spec) { return RowOf(spec.family); }

std::string OurFamilies() {
  std::vector<std::string> ours;
  for (const Family& family : kFamilies) {
    if (family.ours) ours.emplace_back(NameOf(family.family));
  }
  const std::string last = ours.back();
  ours.pop_back();
  return fmt::format("{} and {}", Join(ours, ", "), last);
}

}  // namespace ridgeline
