// The families of models: a row of facts and functions for each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ridgeline/run.h"

namespace ridgeline {

// The weights and other parameters of a model, and those weights that multiply a token.
struct ModelCounts {
  double all = 0;
  double multiplied = 0;
};

// A setting of Hugging Face's config.json that changes a model's logits, or the shape of its weights.
struct ConfigSetting {
  std::string_view key;
  Json value;                   // this run's
  Json unsaid = nullptr;        // transformers' value if a file has none
  std::string_view field = {};  // the RunSpec field, if there is one
};

// What a config.json says of a run's model.
struct HubConfig {
  std::string_view type;          // model_type
  std::string_view architecture;  // the class of transformers
  std::vector<ConfigSetting> settings;
  Json others;  // settings that change neither logits nor shapes
};

struct Family {
  ModelFamily family;
  bool ours = false;                // Ridgeline trains it; other families are for other trainers
  bool embeds = true;               // has a vocabulary: an embedding, a last norm and a head
  bool learned_positions = false;   // has an embedding of positions
  bool gated = true;                // its MLP has three products instead of two
  bool biases = false;              // products and norms have biases
  bool qkv_biases = false;          // the products for queries, keys and values have biases
  bool qk_norms = false;            // queries and keys are normalized, head by head
  bool mixes = false;               // it may be a mixture of experts
  bool state_as_precision = false;  // gradients and moments are usually kept as precisely as operands
  int norms = 2;                    // per layer
  double rope_theta = 0;            // the usual value; 0: no rotary embedding
  bool tied_head = false;           // what it usually is
  // The family of ours whose step takes about as long: other biases and norms, and a missing position table, take
  // almost no time. If not priced, no family of ours has such layers.
  ModelFamily priced_as = ModelFamily::kLlama;
  bool priced = true;
  // Sets the fields whose usual values differ from RunSpec's, except those above.
  void (*set_defaults)(RunSpec& spec) = nullptr;
  // Counts the model of a canonical spec, with this number of experts per layer. nullptr: its layers are unknown.
  ModelCounts (*count)(const RunSpec& spec, int64_t experts) = nullptr;
  // The mean numbers of a token's query and of its value in all heads of a layer. nullptr: heads * head_dim.
  double (*attended)(const RunSpec& spec) = nullptr;
  // nullptr: transformers does not know it.
  HubConfig (*config)(const RunSpec& spec) = nullptr;
};

std::span<const Family> Families();
const Family& FamilyOf(const RunSpec& spec);
const Family& RowOf(ModelFamily family);

// "llama, gpt and stack".
std::string OurFamilies();

}  // namespace ridgeline
