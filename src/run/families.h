// The layers of a model, by its family. Its parameters and FLOPs are counted from this.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct Family {
  std::string_view name;
  bool ours = false;        // Ridgeline trains it; other families are for other trainers
  bool embeds = true;       // has a vocabulary: an embedding, a last norm and a head
  bool gated = true;        // its MLP has three products instead of two
  bool biases = false;      // products and norms have biases
  bool qkv_biases = false;  // the products for queries, keys and values have biases
  bool qk_norms = false;    // queries and keys are normalized, head by head
  bool mixes = false;       // it may be a mixture of experts
  bool latent = false;      // the attention and the first layers of DeepSeek V3
  int norms = 2;            // per layer
  double rope_theta = 0;    // the usual value; 0: no rotary embedding
  bool tied_head = false;   // what it usually is
};

// The family of a model that is only a name, as other trainers may have. Its layers are unknown.
inline constexpr std::string_view kAnyFamily = "other";

std::span<const Family> Families();

// Returns the family of kAnyFamily if no family has this name.
const Family& FindFamily(std::string_view name);

// "llama, gpt and stack".
std::string OurFamilies();

}  // namespace ridgeline
