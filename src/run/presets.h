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
  std::string_view family;
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions;
  bool tied_head;
  int64_t parameters;  // exact
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0;
  // The name is younger than points that have this shape: their text, and so their ids, have
  // "<family>-<layers>x<hidden>" in its place.
  bool is_younger = false;

  bool is_ours() const;  // ridgeline trains it; the others are for other trainers
};

std::span<const Preset> Presets();
// By its name, or by another that people have for a model of this very shape ("llama3-8b" is llama-8b); nullptr where
// there is none.
const Preset* FindPreset(std::string_view name);
// The name of the preset that is meant; any other text as it is.
std::string_view MeantModel(std::string_view name);
// Every name that FindPreset knows: of all, and of those that ridgeline trains.
const std::vector<std::string>& PresetNames();
const std::vector<std::string>& OurPresetNames();

// The presets that somebody who wrote `name` may have meant: of a size, those of that family whose sizes are nearest,
// the nearest first; else one that is spelt alike, else all of its family. Empty where the name says none of it.
// `ours`: only those that ridgeline trains.
std::vector<std::string> PresetsNear(std::string_view name, bool ours);

// Sets the shape (family included) and nothing else. head_dim is set only where it is not hidden / heads, so that
// changing one of them afterwards changes it too.
void ApplyPreset(const Preset& preset, RunSpec& spec);

// The preset whose shape this is, else nullptr. rope_theta, norm_eps and dropout are not part of a shape.
const Preset* PresetOfShape(const RunSpec& spec);

// What a model of this shape is called: the preset's name, else "<family>-<layers>x<hidden>".
std::string NameOfShape(const RunSpec& spec);
// The model's name in a spec's text: its own, but of a younger preset.
std::string NameInText(const RunSpec& spec);

// Parameters of a canonical spec's model: what the spec says, else what its shape has, tied weights counted once. 0:
// nobody knows.
int64_t CountParameters(const RunSpec& spec);
// Of these, how many a token takes: all but those of experts that it is not sent to.
int64_t ActiveParameters(const RunSpec& spec);

// What an optimizer step of a canonical spec computes on each rank, as the model needs it, backward included. Ranks
// that share a model share its work, evenly: a rank's is that of the step over all of them. 6 FLOPs a token for each
// weight that multiplies it, and the attention's two products over the pairs that the causal mask leaves, or over all.
// Where the spec gives flops_per_token it is that; where only the parameters are known, each that a token takes counts
// as a weight that multiplies it. 0: nobody knows. `executed` is left 0: it depends on who computes. `data_parallel`:
// where a trainer splits its ranks otherwise (parallelism.h).
FlopFigures ModelFlops(const RunSpec& spec);
FlopFigures ModelFlops(const RunSpec& spec, int64_t data_parallel);

}  // namespace ridgeline
