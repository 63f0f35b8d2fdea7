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
  std::string_view name;  // "<family>-<size>"
  std::string_view family;
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions;
  bool tied_head;
  int64_t parameters;  // exact
};

std::span<const Preset> Presets();
const Preset* FindPreset(std::string_view name);  // nullptr where there is none
const std::vector<std::string>& PresetNames();

// The presets that somebody who wrote `name` may have meant: of a size, those of that family whose sizes are nearest,
// the nearest first; else one that is spelt alike, else all of its family. Empty where the name says none of it.
std::vector<std::string> PresetsNear(std::string_view name);

// Sets the shape (family included) and nothing else. head_dim is set only where it is not hidden / heads, so that
// changing one of them afterwards changes it too.
void ApplyPreset(const Preset& preset, RunSpec& spec);

// The preset whose shape this is, else nullptr. rope_theta, norm_eps and dropout are not part of a shape.
const Preset* PresetOfShape(const RunSpec& spec);

// Parameters of any canonical shape, tied weights counted once.
int64_t CountParameters(const RunSpec& spec);

// What an optimizer step of a canonical spec computes on each rank, as the model needs it, backward included. Ranks
// that share a model share its work, evenly: a rank's is that of the step over all of them. 6 FLOPs a token for each
// weight that multiplies it, and the attention's two products over the pairs that the causal mask leaves, or over all.
// `executed` is left 0: it depends on who computes. `data_parallel`: where a trainer splits its ranks otherwise
// (parallelism.h).
FlopFigures ModelFlops(const RunSpec& spec);
FlopFigures ModelFlops(const RunSpec& spec, int64_t data_parallel);

}  // namespace ridgeline
