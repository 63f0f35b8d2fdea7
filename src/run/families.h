// What the layers of a model are made of, by its family: what its parameters and its FLOPs are counted by.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct Family {
  std::string_view name;
  bool ours = false;        // ridgeline trains it; the others' models are for other trainers
  bool embeds = true;       // has a vocabulary: an embedding, a last norm and a head
  bool gated = true;        // its MLP has three products, otherwise two
  bool biases = false;      // products and norms have biases
  bool qkv_biases = false;  // the products that make queries, keys and values have
  bool qk_norms = false;    // queries and keys are normalized, head by head
  bool mixes = false;       // it may be a mixture of experts
  bool latent = false;      // the attention and the first layers of DeepSeek V3
  int norms = 2;            // a layer
  double rope_theta = 0;    // what it usually is; 0: no rotary embedding
  bool tied_head = false;   // what it usually is
};

// The family of a model that is only a name, as other trainers may have: nobody knows what it is made of.
inline constexpr std::string_view kAnyFamily = "other";

std::span<const Family> Families();

// That of kAnyFamily where there is none of this name.
const Family& FindFamily(std::string_view name);

// "llama, gpt and stack".
std::string OurFamilies();

}  // namespace ridgeline
