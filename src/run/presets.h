// Model presets: named shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

struct Preset {
  std::string_view name;
  ModelFamily family;
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions;
  bool tied_head;
  int64_t parameters;  // exact
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0;
  // The name is newer than points that have this shape. Their text, and so their ids, have "<family>-<layers>x<hidden>"
  // instead.
  bool is_younger = false;

  bool is_ours() const;  // Ridgeline trains it; the others are for other trainers
};

std::span<const Preset> Presets();
// Finds a preset by its name, or by another usual name of a model with exactly this shape ("llama3-8b" is llama-8b);
// nullptr if there is none.
const Preset* FindPreset(std::string_view name);
// The name of the preset that is meant; any other text unchanged.
std::string_view MeantModel(std::string_view name);
// Every name that FindPreset knows: of all presets, and of those that Ridgeline trains.
const std::vector<std::string>& PresetNames();
const std::vector<std::string>& OurPresetNames();

// The presets that a user may have meant by `name`. If it has a size: those of its family with the nearest sizes,
// nearest first. Otherwise: one with a similar spelling, else all of its family. Empty if nothing fits. `ours`: only
// those that Ridgeline trains.
std::vector<std::string> PresetsNear(std::string_view name, bool ours);

// Sets the shape (family included) and nothing else. Sets head_dim only if it is not hidden / heads, so that a later
// change of one of them changes it, too.
void ApplyPreset(const Preset& preset, RunSpec& spec);

// The preset with this shape, else nullptr. rope_theta, norm_eps and dropout are not part of a shape.
const Preset* PresetOfShape(const RunSpec& spec);

// The name of a model of this shape: the preset's, else "<family>-<layers>x<hidden>".
std::string NameOfShape(const RunSpec& spec);
// The model's name in a spec's text: its own, except for a younger preset.
std::string NameInText(const RunSpec& spec);

// The parameters of a canonical spec's model: those that the spec states, else those of its shape, with tied weights
// counted once. 0: unknown.
int64_t CountParameters(const RunSpec& spec);
// The number of these that a token uses: all but those of experts to which it is not sent.
int64_t ActiveParameters(const RunSpec& spec);

// The FLOPs of an optimizer step of a canonical spec on each rank, as the model needs them, backward included. Ranks
// that share a model share its work evenly: a rank's part is the step's divided by all of them. Each weight that
// multiplies a token counts 6 FLOPs per token. The attention's two products count over the pairs that the causal mask
// leaves, or over all. If the spec gives flops_per_token, that counts instead. If only the parameters are known, each
// parameter that a token uses counts as a weight that multiplies it. 0: unknown. `executed` stays 0, because it depends
// on the trainer. `data_parallel`: for a trainer that splits its ranks otherwise (parallelism.h).
FlopFigures ModelFlops(const RunSpec& spec);
FlopFigures ModelFlops(const RunSpec& spec, int64_t data_parallel);

}  // namespace ridgeline
