#include "run/presets.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "run/parallelism.h"

namespace ridgeline {
namespace {

// By family and size, as people are shown them. llama-5m reads bytes, to learn from any text.
// name, family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions, tied_head, parameters
constexpr Preset kPresets[] = {
    {"llama-5m", "llama", 6, 256, 4, 2, 64, 896, 256, 0, true, 5377280},
    {"llama-10m", "llama", 8, 256, 4, 2, 64, 704, 16384, 0, true, 10096896},
    {"llama-25m", "llama", 8, 384, 6, 2, 64, 1024, 32000, 0, true, 24877440},
    {"llama-124m", "llama", 12, 768, 12, 4, 64, 2432, 50304, 0, true, 124766976},
    {"llama-350m", "llama", 24, 1024, 16, 4, 64, 3200, 50304, 0, true, 350405632},
    {"llama-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 0, true, 1235814400},
    {"llama-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 0, true, 3212749824},
    {"llama-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 0, false, 8030261248},
    {"llama-14b", "llama", 40, 5120, 40, 8, 128, 17408, 151936, 0, false, 14768296960},
    {"llama-32b", "llama", 64, 5120, 64, 8, 128, 25600, 151936, 0, false, 32762106880},
    {"llama-64b", "llama", 72, 8192, 64, 8, 128, 28672, 128256, 0, false, 63708471296},
    {"gpt-10m", "gpt", 7, 256, 4, 4, 64, 1024, 16384, 1024, true, 9985280},
    {"gpt-25m", "gpt", 7, 384, 6, 6, 64, 1536, 32000, 1024, true, 25103232},
    {"gpt-124m", "gpt", 12, 768, 12, 12, 64, 3072, 50304, 1024, true, 124475904},
    {"gpt-350m", "gpt", 24, 1024, 16, 16, 64, 4096, 50304, 1024, true, 354871296},
    {"gpt-1b", "gpt", 18, 2048, 16, 16, 128, 8192, 50304, 2048, true, 1013669888},
    {"gpt-3b", "gpt", 36, 2560, 20, 20, 128, 10240, 50304, 2048, true, 2966379520},
    {"gpt-8b", "gpt", 39, 4096, 32, 32, 128, 16384, 50304, 2048, true, 8068255744},
    {"gpt-14b", "gpt", 44, 5120, 40, 40, 128, 20480, 50304, 2048, true, 14112184320},
    {"gpt-32b", "gpt", 60, 6656, 52, 52, 128, 26624, 50304, 2048, true, 32251341824},
    {"gpt-64b", "gpt", 79, 8192, 64, 64, 128, 32768, 50304, 2048, true, 64056500224},
    {"stack-1b", "stack", 24, 2048, 16, 16, 128, 6144, 0, 0, false, 1007222784},
    {"stack-3b", "stack", 32, 3072, 24, 24, 128, 9216, 0, 0, false, 3021078528},
    {"stack-8b", "stack", 48, 4096, 32, 32, 128, 12288, 0, 0, false, 8055422976},
    {"stack-14b", "stack", 53, 5120, 40, 40, 128, 15360, 0, 0, false, 13896888320},
    {"stack-32b", "stack", 48, 8192, 64, 64, 128, 24576, 0, 0, false, 32216973312},
    {"stack-64b", "stack", 95, 8192, 64, 64, 128, 24576, 0, 0, false, 63762759680},
};

constexpr size_t kNear = 3;  // presets worth naming

// "7b", "350m" as a number of parameters; 0 where it is none.
double SizeOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !(number > 0)) return 0;
  if (unit == "m" || unit == "M") return number * 1e6;
  if (unit == "b" || unit == "B") return number * 1e9;
  return 0;
}

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

const Preset* FindPreset(std::string_view name) {
  const auto it =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) { return p.name == name; });
  return it == std::end(kPresets) ? nullptr : &*it;
}

const std::vector<std::string>& PresetNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Preset& preset : kPresets) result.emplace_back(preset.name);
    return result;
  }();
  return names;
}

std::vector<std::string> PresetsNear(std::string_view name) {
  const size_t dash = name.rfind('-');
  const double size = dash == std::string_view::npos ? 0 : SizeOf(name.substr(dash + 1));
  if (size == 0) {
    if (const std::string meant = Nearest(name, PresetNames()); !meant.empty()) return {meant};
    std::vector<std::string> of_family;
    for (const Preset& preset : kPresets) {
      if (name.starts_with(preset.family)) of_family.emplace_back(preset.name);
    }
    return of_family;
  }
  static const std::vector<std::string> kFamilies = {"llama", "gpt", "stack"};
  const std::string family = Nearest(name.substr(0, dash), kFamilies);
  std::vector<const Preset*> near;
  for (const Preset& preset : kPresets) {
    if (family.empty() || preset.family == family) near.push_back(&preset);
  }
  const auto distance = [&](const Preset* preset) {
    return std::abs(std::log(static_cast<double>(preset->parameters) / size));
  };
  std::stable_sort(near.begin(), near.end(),
                   [&](const Preset* a, const Preset* b) { return distance(a) < distance(b); });
  std::vector<std::string> names;
  for (const Preset* preset : near) names.emplace_back(preset->name);
  names.resize(std::min(names.size(), kNear));
  return names;
}

void ApplyPreset(const Preset& p, RunSpec& spec) {
  spec.family = p.family;
  spec.layers = p.layers;
  spec.hidden = p.hidden;
  spec.heads = p.heads;
  spec.kv_heads = p.kv_heads;
  spec.head_dim = p.head_dim * p.heads == p.hidden ? 0 : p.head_dim;
  spec.ffn = p.ffn;
  spec.vocab = p.vocab;
  spec.positions = p.positions;
  spec.tied_head = p.tied_head;
}

const Preset* PresetOfShape(const RunSpec& s) {
  const auto it = std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) {
    return p.layers == s.layers && p.hidden == s.hidden && p.heads == s.heads && p.kv_heads == s.kv_heads &&
           p.head_dim == s.head_dim && p.ffn == s.ffn && p.vocab == s.vocab && p.positions == s.positions &&
           p.tied_head == s.tied_head && p.family == s.family;
  });
  return it == std::end(kPresets) ? nullptr : &*it;
}

int64_t CountParameters(const RunSpec& s) {
  const int64_t h = s.hidden;
  const int64_t q = s.heads * s.head_dim;
  const int64_t kv = s.kv_heads * s.head_dim;
  if (s.family == "llama") {
    return s.vocab * h * (s.tied_head ? 1 : 2) + s.layers * (2 * h + 2 * h * q + 2 * h * kv + 3 * h * s.ffn) + h;
  }
  // Norms with biases; fused QKV, projection, FC1 and FC2 with biases.
  const int64_t layer = 4 * h + (3 * h * h + 3 * h) + (h * h + h) + (h * s.ffn + s.ffn) + (s.ffn * h + h);
  if (s.family == "stack") return s.layers * layer;
  return s.vocab * h * (s.tied_head ? 1 : 2) + s.positions * h + s.layers * layer + 2 * h;
}

FlopFigures ModelFlops(const RunSpec& s) { return ModelFlops(s, DataParallelRanks(s)); }

FlopFigures ModelFlops(const RunSpec& s, int64_t data_parallel) {
  const auto product = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const int64_t attended = s.heads * s.head_dim;
  const double layer = product(s.hidden, attended + 2 * s.kv_heads * s.head_dim) + product(attended, s.hidden) +
                       product(s.hidden, s.ffn) * (s.family == "llama" ? 3 : 2);
  const double multiplied = static_cast<double>(s.layers) * layer + product(s.vocab, s.hidden);
  const double share = static_cast<double>(data_parallel) / static_cast<double>(s.ranks);
  const double tokens = product(s.batch_size, s.seq_length) * static_cast<double>(s.grad_accumulation) * share;
  // q k^T and p v, 2 FLOPs a multiply-add each.
  const double per_pair = 4 * product(s.layers, attended);
  const auto seq = static_cast<double>(s.seq_length);
  FlopFigures flops;
  flops.model_causal = 3 * tokens * (2 * multiplied + per_pair * (seq + 1) / 2);
  flops.model_non_causal = 3 * tokens * (2 * multiplied + per_pair * seq);
  return flops;
}

}  // namespace ridgeline
