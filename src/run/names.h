// What else the harness and the trainer do with the names of a RunSpec's fixed values (ridgeline/run_values.h): all
// names in one text, the names of checkpointing, and values in messages.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ridgeline/run.h"

namespace ridgeline {

// The names in one text, "none|optimizer|gradients|full".
template <NamedEnum Enum>
constexpr auto JoinNames() {
  constexpr size_t kBytes = [] {
    size_t bytes = kNames<Enum>.size() - 1;
    for (const std::string_view name : kNames<Enum>) bytes += name.size();
    return bytes;
  }();
  std::array<char, kBytes> text{};
  auto* at = text.begin();
  for (const std::string_view name : kNames<Enum>) {
    if (at != text.begin()) *at++ = '|';
    at = std::ranges::copy(name, at).out;
  }
  return text;
}
template <NamedEnum Enum>
inline constexpr auto kJoinedNames = JoinNames<Enum>();
template <NamedEnum Enum>
inline constexpr std::string_view kChoices{kJoinedNames<Enum>.data(), kJoinedNames<Enum>.size()};

// "none", "selective", "full", or "full/4" for groups of 4 layers.
std::string NameOf(const Checkpointing& checkpointing);
// Reads such a name, and "full/1" for full. Returns nothing for any other text.
std::optional<Checkpointing> ParseCheckpointing(std::string_view name);

template <typename AnyJson>
void to_json(AnyJson& json, const Checkpointing& value) {
  json = NameOf(value);
}

}  // namespace ridgeline

template <ridgeline::NamedEnum Enum>
struct fmt::formatter<Enum> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(Enum value, Context& context) const {
    return fmt::formatter<std::string_view>::format(ridgeline::NameOf(value), context);
  }
};
template <>
struct fmt::formatter<ridgeline::Checkpointing> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const ridgeline::Checkpointing& value, Context& context) const {
    return fmt::formatter<std::string_view>::format(ridgeline::NameOf(value), context);
  }
};
