#include "run/names.h"

#include <charconv>

namespace ridgeline {

std::string NameOf(const Checkpointing& checkpointing) {
  std::string name(NameOf(checkpointing.policy));
  if (checkpointing.layers_per_group > 1) name += fmt::format("/{}", checkpointing.layers_per_group);
  return name;
}

std::optional<Checkpointing> ParseCheckpointing(std::string_view name) {
  const size_t slash = name.find('/');
  const auto policy = ValueNamed<Checkpointing::Policy>(name.substr(0, slash));
  if (!policy) return std::nullopt;
  Checkpointing checkpointing{*policy};
  if (slash == std::string_view::npos) return checkpointing;
  if (*policy != Checkpointing::Policy::kFull) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + slash + 1, end, checkpointing.layers_per_group);
  if (error != std::errc() || at != end || checkpointing.layers_per_group < 1) return std::nullopt;
  return checkpointing;
}

}  // namespace ridgeline
