#include "yaml/entries.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "run/synonyms.h"

namespace ridgeline::yaml {
namespace {

constexpr size_t kGuesses = 1000;  // guesses at the names meant; a file with more faults is of another kind

}  // namespace

std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known, std::vector<Fault>& faults) {
  std::vector<Entry> entries;
  std::set<std::string> seen;
  for (const auto& [key, value] : map.entries) {
    if (!key.scalar.is_string()) {
      faults.push_back({key.place, fmt::format("the name of a {} must be text, not {}", what, Describe(key))});
      continue;
    }
    auto name = key.scalar.get<std::string>();
    if (!seen.insert(name).second) {
      faults.push_back({key.place, fmt::format("'{}' is given twice", name)});
    } else if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string meant = faults.size() < kGuesses ? Meant(name, known) : "";
      faults.push_back(
          {key.place, fmt::format("unknown {} '{}'{}", what, name,
                                  meant.empty() && known.size() <= 12 ? "; known are " + Join(known, ", ") : meant)});
    } else {
      entries.emplace_back(std::move(name), &value);
    }
  }
  return entries;
}

std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone,
                                      std::vector<Fault>& faults, std::string_view of) {
  std::vector<const YamlNode*> maps;
  if (lone && node.kind == YamlNode::Kind::kMap) return {&node};
  if (node.kind != YamlNode::Kind::kList) {
    faults.push_back({node.place, fmt::format("{} is a list of mappings, not {}", section, Describe(node))});
  }
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kMap || item.entries.empty()) {
      faults.push_back({item.place, fmt::format("an entry of {} is a mapping of {}, not {}", section, of,
                                                item.kind == YamlNode::Kind::kMap ? "an empty one" : Describe(item))});
    } else {
      maps.push_back(&item);
    }
  }
  return maps;
}

bool IsOfAnotherKind(const std::filesystem::path& file, const Names& keys) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  try {
    const std::optional<std::string> text = ReadFileIfThere(file, kMostBytes + 1);
    if (!text) return false;
    const YamlNode root = ParseYaml(*text, {.bytes = kMostBytes});
    const auto known = std::count_if(root.entries.begin(), root.entries.end(), [&](const YamlEntry& entry) {
      return std::find(keys.begin(), keys.end(), entry.key.scalar) != keys.end();
    });
    return known < std::min<int64_t>(2, std::ssize(root.entries));
  } catch (const Fault&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace ridgeline::yaml
