#include "run/presets.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/families.h"
#include "run/names.h"
#include "run/parallelism.h"

namespace ridgeline {
namespace {

// Sorted by family and size, as people see them. llama-5m reads bytes, so that it can learn from any text. The columns:
// name, family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions, tied_head, parameters, experts,
// experts_per_token, expert_ffn, is_younger
using enum ModelFamily;
constexpr bool kYounger = true;
constexpr Preset kPresets[] = {
    {"llama-5m", kLlama, 6, 256, 4, 2, 64, 896, 256, 0, true, 5377280},
    {"llama-10m", kLlama, 8, 256, 4, 2, 64, 704, 16384, 0, true, 10096896},
    {"llama-25m", kLlama, 8, 384, 6, 2, 64, 1024, 32000, 0, true, 24877440},
    {"llama-124m", kLlama, 12, 768, 12, 4, 64, 2432, 50304, 0, true, 124766976},
    {"llama-350m", kLlama, 24, 1024, 16, 4, 64, 3200, 50304, 0, true, 350405632},
    {"llama-1b", kLlama, 16, 2048, 32, 8, 64, 8192, 128256, 0, true, 1235814400},
    {"llama-3b", kLlama, 28, 3072, 24, 8, 128, 8192, 128256, 0, true, 3212749824},
    {"llama-8b", kLlama, 32, 4096, 32, 8, 128, 14336, 128256, 0, false, 8030261248},
    {"llama-14b", kLlama, 40, 5120, 40, 8, 128, 17408, 151936, 0, false, 14768296960},
    {"llama-32b", kLlama, 64, 5120, 64, 8, 128, 25600, 151936, 0, false, 32762106880},
    {"llama-64b", kLlama, 72, 8192, 64, 8, 128, 28672, 128256, 0, false, 63708471296},
    {"gpt-10m", kGpt, 7, 256, 4, 4, 64, 1024, 16384, 1024, true, 9985280},
    {"gpt-25m", kGpt, 7, 384, 6, 6, 64, 1536, 32000, 1024, true, 25103232},
    {"gpt-124m", kGpt, 12, 768, 12, 12, 64, 3072, 50304, 1024, true, 124475904},
    {"gpt-350m", kGpt, 24, 1024, 16, 16, 64, 4096, 50304, 1024, true, 354871296},
    {"gpt-1b", kGpt, 18, 2048, 16, 16, 128, 8192, 50304, 2048, true, 1013669888},
    {"gpt-3b", kGpt, 36, 2560, 20, 20, 128, 10240, 50304, 2048, true, 2966379520},
    {"gpt-8b", kGpt, 39, 4096, 32, 32, 128, 16384, 50304, 2048, true, 8068255744},
    {"gpt-14b", kGpt, 44, 5120, 40, 40, 128, 20480, 50304, 2048, true, 14112184320},
    {"gpt-32b", kGpt, 60, 6656, 52, 52, 128, 26624, 50304, 2048, true, 32251341824},
    {"gpt-64b", kGpt, 79, 8192, 64, 64, 128, 32768, 50304, 2048, true, 64056500224},
    {"stack-1b", kStack, 24, 2048, 16, 16, 128, 6144, 0, 0, false, 1007222784},
    {"stack-3b", kStack, 32, 3072, 24, 24, 128, 9216, 0, 0, false, 3021078528},
    {"stack-8b", kStack, 48, 4096, 32, 32, 128, 12288, 0, 0, false, 8055422976},
    {"stack-14b", kStack, 53, 5120, 40, 40, 128, 15360, 0, 0, false, 13896888320},
    {"stack-32b", kStack, 48, 8192, 64, 64, 128, 24576, 0, 0, false, 32216973312},
    {"stack-64b", kStack, 95, 8192, 64, 64, 128, 24576, 0, 0, false, 63762759680},
    // Models that people benchmark by name, as in their config.json. Of Gemma 3, the part that reads text. GPT-3
    // follows its paper, with the vocabulary of GPT-2. MPT-70B was never released, and has the vocabulary of LLM
    // Foundry's configuration.
    {"llama2-7b", kLlama, 32, 4096, 32, 32, 128, 11008, 32000, 0, false, 6738415616, 0, 0, 0, kYounger},
    {"llama2-13b", kLlama, 40, 5120, 40, 40, 128, 13824, 32000, 0, false, 13015864320, 0, 0, 0, kYounger},
    {"llama2-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 32000, 0, false, 68976648192, 0, 0, 0, kYounger},
    {"llama3-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 128256, 0, false, 70553706496, 0, 0, 0, kYounger},
    {"llama3-405b", kLlama, 126, 16384, 128, 8, 128, 53248, 128256, 0, false, 405853388800, 0, 0, 0, kYounger},
    {"mistral-7b", kLlama, 32, 4096, 32, 8, 128, 14336, 32000, 0, false, 7241732096, 0, 0, 0, kYounger},
    {"gpt3-175b", kGpt, 96, 12288, 96, 96, 128, 49152, 50257, 2048, true, 174604259328, 0, 0, 0, kYounger},
    {"qwen2.5-0.5b", kQwen2, 24, 896, 14, 2, 64, 4864, 151936, 0, true, 494032768},
    {"qwen2.5-1.5b", kQwen2, 28, 1536, 12, 2, 128, 8960, 151936, 0, true, 1543714304},
    {"qwen2.5-3b", kQwen2, 36, 2048, 16, 2, 128, 11008, 151936, 0, true, 3085938688},
    {"qwen2.5-7b", kQwen2, 28, 3584, 28, 4, 128, 18944, 152064, 0, false, 7615616512},
    {"qwen2.5-14b", kQwen2, 48, 5120, 40, 8, 128, 13824, 152064, 0, false, 14770033664},
    {"qwen2.5-32b", kQwen2, 64, 5120, 40, 8, 128, 27648, 152064, 0, false, 32763876352},
    {"qwen2.5-72b", kQwen2, 80, 8192, 64, 8, 128, 29568, 152064, 0, false, 72706203648},
    {"qwen3-0.6b", kQwen3, 28, 1024, 16, 8, 128, 3072, 151936, 0, true, 596049920},
    {"qwen3-1.7b", kQwen3, 28, 2048, 16, 8, 128, 6144, 151936, 0, true, 1720574976},
    {"qwen3-4b", kQwen3, 36, 2560, 32, 8, 128, 9728, 151936, 0, true, 4022468096},
    {"qwen3-8b", kQwen3, 36, 4096, 32, 8, 128, 12288, 151936, 0, false, 8190735360},
    {"qwen3-14b", kQwen3, 40, 5120, 40, 8, 128, 17408, 151936, 0, false, 14768307200},
    {"qwen3-32b", kQwen3, 64, 5120, 64, 8, 128, 25600, 151936, 0, false, 32762123264},
    {"gemma2-2b", kGemma2, 26, 2304, 8, 4, 256, 9216, 256000, 0, true, 2614341888},
    {"gemma2-9b", kGemma2, 42, 3584, 16, 8, 256, 14336, 256000, 0, true, 9241705984},
    {"gemma2-27b", kGemma2, 46, 4608, 32, 16, 128, 36864, 256000, 0, true, 27227128320},
    {"gemma3-1b", kGemma3, 26, 1152, 4, 1, 256, 6912, 262144, 0, true, 999885952},
    {"gemma3-4b", kGemma3, 34, 2560, 8, 4, 256, 10240, 262208, 0, true, 3880263168},
    {"gemma3-12b", kGemma3, 48, 3840, 16, 8, 256, 15360, 262208, 0, true, 11766034176},
    {"gemma3-27b", kGemma3, 62, 5376, 32, 16, 128, 21504, 262208, 0, true, 27009346304},
    {"mpt-7b", kMpt, 32, 4096, 32, 32, 128, 16384, 50432, 0, true, 6649286656},
    {"mpt-30b", kMpt, 48, 7168, 64, 64, 112, 28672, 50432, 0, true, 29957200896},
    {"mpt-70b", kMpt, 80, 8192, 64, 64, 128, 32768, 50368, 0, true, 64838443008},
    {"mixtral-8x7b", kLlama, 32, 4096, 32, 8, 128, 14336, 32000, 0, false, 46702792704, 8, 2, 14336},
    {"qwen3-30b-a3b", kQwen3, 48, 2048, 32, 4, 128, 6144, 151936, 0, false, 30532122624, 128, 8, 768},
    {"qwen3-235b-a22b", kQwen3, 94, 4096, 64, 4, 128, 12288, 151936, 0, false, 235093634560, 128, 8, 1536},
    {"deepseek-v3", kDeepSeekV3, 61, 7168, 128, 128, 128, 18432, 129280, 0, false, 671026419200, 256, 8, 2048},
};

// Other names that people use for models with the shape of a preset.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"llama3-8b", "llama-8b"},      {"llama3.1-8b", "llama-8b"},      {"llama3.1-70b", "llama3-70b"},
    {"llama3.3-70b", "llama3-70b"}, {"llama3.1-405b", "llama3-405b"}, {"llama3.2-1b", "llama-1b"},
    {"llama3.2-3b", "llama-3b"},
};

constexpr size_t kNear = 3;  // the most presets that a message names

// A size such as "7b" or "350m" as a number of parameters; 0 if it is none.
double SizeOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !(number > 0)) return 0;
  if (unit == "m" || unit == "M") return number * 1e6;
  if (unit == "b" || unit == "B") return number * 1e9;
  return 0;
}

std::vector<std::string> NamesOfPresets(bool ours) {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) {
    if (!ours || preset.is_ours()) names.emplace_back(preset.name);
  }
  for (const auto& [other, name] : kOtherNames) {
    if (!ours || FindPreset(name)->is_ours()) names.emplace_back(other);
  }
  return names;
}

// The beginning of presets' names, up to their size, that is spelled most like this; empty if none is close.
std::string NearStem(std::string_view stem) {
  static const std::vector<std::string> stems = [] {
    std::vector<std::string> all;
    for (const Preset& preset : kPresets) all.emplace_back(preset.name.substr(0, preset.name.find('-')));
    return all;
  }();
  return Nearest(stem, stems);
}

double Number(int64_t value) { return static_cast<double>(value); }

// The counts of the whole model from its shape, with this number of experts per layer.
ModelCounts OfShape(const RunSpec& s, int64_t experts) {
  const Family& family = FamilyOf(s);
  return family.count == nullptr ? ModelCounts{} : family.count(s, experts);
}

// Converts a count in floating point: exact below 2^53, and never more than an integer holds.
int64_t Whole(double count) { return static_cast<int64_t>(std::min(count, 9e18)); }

}  // namespace

bool Preset::is_ours() const { return RowOf(family).ours && experts == 0; }

std::span<const Preset> Presets() { return kPresets; }

std::string_view MeantModel(std::string_view name) {
  const auto* it = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                [&](const auto& each) { return each.first == name; });
  return it == std::end(kOtherNames) ? name : it->second;
}

const Preset* FindPreset(std::string_view name) {
  const auto* it = std::find_if(std::begin(kPresets), std::end(kPresets),
                                [meant = MeantModel(name)](const Preset& p) { return p.name == meant; });
  return it == std::end(kPresets) ? nullptr : it;
}

const std::vector<std::string>& PresetNames() {
  static const std::vector<std::string> names = NamesOfPresets(/*ours=*/false);
  return names;
}

const std::vector<std::string>& OurPresetNames() {
  static const std::vector<std::string> names = NamesOfPresets(/*ours=*/true);
  return names;
}

std::vector<std::string> PresetsNear(std::string_view name, bool ours) {
  const size_t dash = name.rfind('-');
  const double size = dash == std::string_view::npos ? 0 : SizeOf(name.substr(dash + 1));
  std::vector<const Preset*> known;
  for (const Preset& preset : kPresets) {
    if (!ours || preset.is_ours()) known.push_back(&preset);
  }
  std::vector<std::string> names;
  if (size == 0) {
    if (const std::string meant = Nearest(name, ours ? OurPresetNames() : PresetNames()); !meant.empty())
      return {meant};
    for (const Preset* preset : known) {
      if (name.starts_with(NameOf(preset->family))) names.emplace_back(preset->name);
    }
    return names;
  }
  const std::string stem = NearStem(name.substr(0, dash));
  const auto begins_so = [&](const Preset* preset) { return !stem.empty() && preset->name.starts_with(stem); };
  const auto like = std::find_if(known.begin(), known.end(), begins_so);
  if (like != known.end()) {
    std::erase_if(known, [family = (*like)->family](const Preset* preset) { return preset->family != family; });
  }
  const auto distance = [&](const Preset* preset) {
    return std::abs(std::log(static_cast<double>(preset->parameters) / size));
  };
  std::stable_sort(known.begin(), known.end(), [&](const Preset* a, const Preset* b) {
    return std::pair(!begins_so(a), distance(a)) < std::pair(!begins_so(b), distance(b));
  });
  for (const Preset* preset : known) names.emplace_back(preset->name);
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
  spec.experts = p.experts;
  spec.experts_per_token = p.experts_per_token;
  spec.expert_ffn = p.expert_ffn;
}

const Preset* PresetOfShape(const RunSpec& s) {
  const auto* it = std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) {
    return p.layers == s.layers && p.hidden == s.hidden && p.heads == s.heads && p.kv_heads == s.kv_heads &&
           p.head_dim == s.head_dim && p.ffn == s.ffn && p.vocab == s.vocab && p.positions == s.positions &&
           p.tied_head == s.tied_head && p.experts == s.experts && p.experts_per_token == s.experts_per_token &&
           p.expert_ffn == s.expert_ffn && p.family == s.family;
  });
  return it == std::end(kPresets) ? nullptr : it;
}

std::string NameOfShape(const RunSpec& s) {
  if (const Preset* preset = PresetOfShape(s)) return std::string(preset->name);
  const std::string mixed = s.experts > 0 ? fmt::format("-{}x{}", s.experts, s.expert_ffn) : "";
  return fmt::format("{}-{}x{}{}", s.family, s.layers, s.hidden, mixed);
}

std::string NameInText(const RunSpec& s) {
  const Preset* preset = s.family == ModelFamily::kOther ? nullptr : FindPreset(s.model);
  if (preset == nullptr || !preset->is_younger) return s.model;
  return fmt::format("{}-{}x{}", preset->family, preset->layers, preset->hidden);
}

int64_t CountParameters(const RunSpec& s) {
  return s.parameters != 0 ? s.parameters : Whole(OfShape(s, s.experts).all);
}

int64_t ActiveParameters(const RunSpec& s) {
  if (s.active_parameters != 0) return s.active_parameters;
  return s.parameters != 0 ? s.parameters : Whole(OfShape(s, s.experts_per_token).all);
}

FlopFigures ModelFlops(const RunSpec& s) { return ModelFlops(s, DataParallelRanks(s)); }

FlopFigures ModelFlops(const RunSpec& s, int64_t data_parallel) {
  const auto product = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const double share = static_cast<double>(data_parallel) / static_cast<double>(s.ranks);
  const double tokens = product(s.batch_size, s.seq_length) * static_cast<double>(s.grad_accumulation) * share;
  FlopFigures flops;
  if (s.flops_per_token > 0) {
    flops.model_causal = flops.model_non_causal = tokens * s.flops_per_token;
    return flops;
  }
  const double of_shape = OfShape(s, s.experts_per_token).multiplied;
  const double multiplied = of_shape > 0 ? of_shape : Number(ActiveParameters(s));
  if (multiplied == 0) return flops;
  // q k^T and p v, with 2 FLOPs per multiply-add.
  const Family& family = FamilyOf(s);
  const double attended = family.attended == nullptr ? Number(s.heads) * Number(s.head_dim) : family.attended(s);
  const double per_pair = 4 * Number(s.layers) * (attended > 0 ? attended : Number(s.hidden));
  const auto seq = static_cast<double>(s.seq_length);
  flops.model_causal = 3 * tokens * (2 * multiplied + per_pair * (seq + 1) / 2);
  flops.model_non_causal = 3 * tokens * (2 * multiplied + per_pair * seq);
  return flops;
}

}  // namespace ridgeline
