#include "run/model.h"

#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/families.h"
#include "run/names.h"
#include "run/presets.h"

namespace ridgeline {
namespace {

std::string UnknownModel(const std::string& name) {
  const std::vector<std::string> near = PresetsNear(name, /*ours=*/true);
  return fmt::format("unknown model '{}'; {} {}", name,
                     near.empty()       ? "there are"
                     : near.size() == 1 ? "the nearest is"
                                        : "the nearest are",
                     Join(near.empty() ? OurPresetNames() : near, ", "));
}

constexpr size_t kLongestModel = 1024;  // bytes; a model may be a path

// Whether this may be passed to a trainer as its model: it is no option, and has nothing that controls a terminal.
bool IsModelName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestModel && name.front() != '-' && PrintableLine(name) == name;
}

using Names = std::vector<std::string_view>;

// Problems with models that our own trainer does not have.
std::vector<Problem> NotOurs(const RunSpec& s) {
  std::vector<Problem> problems;
  if (s.family == ModelFamily::kOther && s.model.empty()) {
    problems.push_back(
        {"family", fmt::format("family {} is of other trainers: {} trains {}", s.family, kOurTrainer, OurFamilies())});
  } else if (s.family == ModelFamily::kOther) {
    problems.push_back({"model", UnknownModel(s.model)});
  } else if (!FamilyOf(s).ours) {
    problems.push_back({"family", fmt::format("the model {} is for other trainers: its family is {}, and {} trains {}",
                                              s.model, s.family, kOurTrainer, OurFamilies())});
  } else if (s.experts > 0) {
    problems.push_back({"experts", fmt::format("the model {} is for other trainers: it has {} experts a layer, and {} "
                                               "trains no mixture of experts",
                                               s.model, s.experts, kOurTrainer)});
  }
  for (const auto& [name, given] : {std::pair{"active_parameters", s.active_parameters != 0},
                                    {"flops_per_token", s.flops_per_token != 0},
                                    {"parameters", s.parameters != 0}}) {
    if (!given) continue;
    problems.push_back({name,
                        fmt::format("{} is of other trainers' models: {} counts those of its own", name, kOurTrainer),
                        {"trainer"}});
  }
  return problems;
}

// Problems with experts: what a mixture of experts lacks, or what another model must not have.
std::vector<Problem> OfExperts(const RunSpec& s) {
  if (s.experts == 0 && s.family != ModelFamily::kOther) {
    if (s.experts_per_token == 0 && s.expert_ffn == 0) return {};
    return {{"experts",
             "experts_per_token and expert_ffn go with experts, and there are none",
             {s.expert_ffn > 0 ? "expert_ffn" : "experts_per_token"}}};
  }
  if (s.experts > 0 && s.experts_per_token > s.experts) {
    return {{"experts_per_token",
             fmt::format("experts_per_token {} is more than the {} experts", s.experts_per_token, s.experts),
             {"experts"}}};
  }
  if (s.family == ModelFamily::kOther) return {};
  if (!FamilyOf(s).mixes) {
    return {{"experts", fmt::format("{} has no experts", s.family), {"family"}}};
  }
  if (s.experts_per_token > 0 && s.expert_ffn > 0) return {};
  const std::string_view missing = s.expert_ffn > 0 ? "experts_per_token" : "expert_ffn";
  return {{"experts", fmt::format("{} is not given; {} experts need it", missing, s.experts), {missing}}};
}

// Problems with the shape itself.
std::vector<Problem> OfTheShape(const RunSpec& s) {
  std::vector<Problem> problems;
  const auto add = [&](std::string_view field, std::string message, Names with = {}) {
    problems.push_back({std::string(field), std::move(message), std::move(with)});
  };
  const Family& family = FamilyOf(s);
  if (s.head_dim == 0)
    add("heads", fmt::format("hidden {} is not divisible by heads {}", s.hidden, s.heads), {"hidden"});
  if (s.heads % s.kv_heads != 0)
    add("kv_heads", fmt::format("heads {} is not divisible by kv_heads {}", s.heads, s.kv_heads), {"heads"});
  if (family.rope_theta > 0) {
    if (s.head_dim % 2 != 0)
      add("head_dim", fmt::format("head_dim {} is odd; rotary embedding turns pairs", s.head_dim),
          {"family", "hidden", "heads"});
    if (s.rope_theta <= 0) add("rope_theta", fmt::format("rope_theta must be above 0 for {}", s.family), {"family"});
  } else {
    if (s.kv_heads != s.heads)
      add("kv_heads", fmt::format("{} has no grouped-query attention: kv_heads must equal heads", s.family),
          {"family", "heads"});
    if (s.head_dim != 0 && s.head_dim * s.heads != s.hidden) {
      add("head_dim",
          fmt::format("{} needs heads x head_dim = hidden, not {} x {} = {}", s.family, s.heads, s.head_dim, s.hidden),
          {"family", "heads", "hidden"});
    }
    if (s.rope_theta != 0) add("rope_theta", fmt::format("{} has no rotary embedding", s.family), {"family"});
  }
  if (!family.embeds) {
    if (s.vocab != 0)
      add("vocab", fmt::format("{} has no embedding and no head: vocab must be 0", s.family), {"family"});
    if (s.tied_head) add("tied_head", fmt::format("{} has no head to tie", s.family), {"family"});
    if (s.logits_chunk != RunSpec().logits_chunk)
      add("logits_chunk", fmt::format("{} has no head, and no logits", s.family), {"family"});
    if (s.data != "synthetic")
      add("data", fmt::format("{} trains on random input: data must be synthetic", s.family), {"family"});
    if (s.init_from != "seed")
      add("init_from", fmt::format("{}'s first weights come from the seed alone", s.family), {"family"});
  } else {
    if (s.vocab <= 0) add("vocab", fmt::format("vocab is not given; {} needs one", s.family), {"family"});
    if (s.data != "synthetic" && s.vocab > 0 && s.vocab < 256)
      add("vocab", "text is read as bytes: vocab must be at least 256", {"family", "data"});
  }
  if (family.learned_positions) {
    if (s.positions <= 0)
      add("positions", fmt::format("positions is not given; {} needs the longest sequence it can take", s.family),
          {"family"});
    if (s.positions > 0 && s.seq_length > s.positions) {
      add("seq_length",
          fmt::format("seq_length {} is beyond this {}'s {} positions", s.seq_length, s.family, s.positions),
          {"family", "positions"});
    }
  } else if (s.positions != 0) {
    add("positions", fmt::format("{} has no learned positions", s.family), {"family"});
  }
  return problems;
}

}  // namespace

std::vector<Problem> SetModel(const std::string& name, RunSpec& spec) {
  if (const Preset* preset = FindPreset(name)) {
    ApplyPreset(*preset, spec);
  } else if (spec.trainer == kOurTrainer) {
    return {{"model", UnknownModel(name)}};
  } else if (!IsModelName(name)) {
    return {{"model", fmt::format("model is a name or a path: one line of 1 to {} bytes without controls, and no '-' "
                                  "first, not {}",
                                  kLongestModel, ShortenToBytes(DumpJson(Json(name)), 80))}};
  } else {
    spec.model = name;
    spec.family = ModelFamily::kOther;
  }
  return {};
}

Problem OtherFamily(const std::string& given, const std::string& model, ModelFamily family) {
  if (family == ModelFamily::kOther) {
    return {
        "family",
        fmt::format("family is {}, but the model {} is not a preset and has no known family: leave out one of the two",
                    given, model),
        {"model"}};
  }
  return {"family", fmt::format("family is {}, but the model {} is a {}", given, model, family), {"model"}};
}

bool CheckModel(const RunSpec& s, std::vector<Problem>& problems) {
  const size_t before = problems.size();
  const auto add_all = [&](std::vector<Problem> more) {
    problems.insert(problems.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  if (s.trainer == kOurTrainer) add_all(NotOurs(s));
  if (problems.size() > before) return false;
  if (s.family != ModelFamily::kOther) {
    for (const auto& [name, value] :
         {std::pair{"layers", s.layers}, {"hidden", s.hidden}, {"heads", s.heads}, {"ffn", s.ffn}}) {
      if (value > 0) continue;
      problems.push_back(
          {name, fmt::format("{} is not given; name a model, or give layers, hidden, heads, ffn and vocab", name)});
    }
    if (problems.size() > before) return false;
    add_all(OfTheShape(s));
  } else if (s.model.empty()) {
    problems.push_back({"model", fmt::format("model is not given; family {} needs its name", s.family), {"family"}});
  }
  add_all(OfExperts(s));
  return true;
}

std::string ModelOfText(const Json& document) {
  const auto text = [&](const char* key) {
    const auto it = document.find(key);
    return it != document.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  std::string name = text("model");
  if (FindPreset(name) != nullptr || text("family") == NameOf(ModelFamily::kOther)) return name;
  RunSpec shape;
  for (const Field& field : Fields()) {
    const auto value = document.find(field.name);
    if (field.Has(Field::kOfShape) && value != document.end()) SetField(shape, field, *value);
  }
  const Preset* preset = PresetOfShape(shape);
  return preset == nullptr ? name : std::string(preset->name);
}

}  // namespace ridgeline
