#include "run/families.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline {
namespace {

// Other trainers' families have the names that Hugging Face's transformers gives them (model_type).
constexpr Family kFamilies[] = {
    {.name = "llama", .ours = true, .mixes = true, .rope_theta = 5e5},
    {.name = "gpt", .ours = true, .gated = false, .biases = true, .tied_head = true},
    {.name = "stack", .ours = true, .embeds = false, .gated = false, .biases = true},
    {.name = "qwen2", .qkv_biases = true, .rope_theta = 1e6},
    {.name = "qwen3", .qk_norms = true, .mixes = true, .rope_theta = 1e6},
    {.name = "gemma2", .norms = 4, .rope_theta = 1e4, .tied_head = true},
    {.name = "gemma3", .qk_norms = true, .norms = 4, .rope_theta = 1e6, .tied_head = true},
    {.name = "mpt", .gated = false, .tied_head = true},
    {.name = "deepseek_v3", .mixes = true, .latent = true, .rope_theta = 1e4},
    {.name = kAnyFamily, .embeds = false},
};

}  // namespace

std::span<const Family> Families() { return kFamilies; }

const Family& FindFamily(std::string_view name) {
  const auto* it = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                [&](const Family& family) { return family.name == name; });
  return it == std::end(kFamilies) ? *std::prev(it) : *it;
}

std::string OurFamilies() {
  std::vector<std::string> ours;
  for (const Family& family : kFamilies) {
    if (family.ours) ours.emplace_back(family.name);
  }
  const std::string last = ours.back();
  ours.pop_back();
  return fmt::format("{} and {}", Join(ours, ", "), last);
}

}  // namespace ridgeline
