// Reads frameworks/NAME.yaml (docs/frameworks.md).
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "predict/framework.h"
#include "predict/sourced_reader.h"
#include "ridgeline/amount.h"
#include "run/fields.h"
#include "run/gpus.h"

namespace ridgeline::predict {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxFrameworkBytes = size_t{1} << 18;  // of a file
constexpr const char* kAboutFrameworks = "docs/frameworks.md describes frameworks";

constexpr Unit kPlain[] = {{"", 1}};
constexpr Unit kPerParameter[] = {{"B", 1}, {"number", 1}, {"numbers", 1}};
constexpr Unit kPerNumber[] = {{"B", 1}};
constexpr Unit kBytes[] = {{"MB", 1e6}, {"GiB", 0x1p30}, {"GB", 1e9}};
constexpr Unit kTimes[] = {{"ms", 1e-3}, {"s", 1}};

// A figure that a framework's file may have, and where it is stored.
struct FigureKind {
  std::string_view name;  // "memory.weights": the key of a section, and the key within it
  std::span<const Unit> units;
  double most;
  std::function<void(Framework&, double value, bool numbers)> put;
  double least = 0;
};

template <typename Part>
auto Into(double Part::*member, Part Framework::*part) {
  return [=](Framework& framework, double value, bool) { framework.*part.*member = value; };
}
auto IntoAmount(Amount FrameworkMemory::*member) {
  return [=](Framework& framework, double value, bool numbers) { framework.memory.*member = {value, numbers}; };
}
auto IntoKept(double KeptOfLayer::*member, KeptOfLayer FrameworkMemory::*kept) {
  return [=](Framework& framework, double value, bool) { framework.memory.*kept.*member = value; };
}
auto IntoMemory(double FrameworkMemory::*member) {
  return [=](Framework& framework, double value, bool) { framework.memory.*member = value; };
}
auto IntoSwitch(bool FrameworkMemory::*member) {
  return [=](Framework& framework, double value, bool) { framework.memory.*member = value > 0; };
}
auto IntoRecomputed(const char* policy, double Recomputed::*member) {
  return [=](Framework& framework, double value, bool) { framework.recomputes[policy].*member = value; };
}
auto IntoOwn(double Framework::*member) {
  return [=](Framework& framework, double value, bool) { framework.*member = value; };
}

const std::vector<FigureKind>& Kinds() {
  using E = Efficiency;
  using M = FrameworkMemory;
  using K = KeptOfLayer;
  constexpr double kMany = 100;
  static const std::vector<FigureKind> kinds = [] {
    std::vector<FigureKind> all = {
        {"efficiency.products", kPlain, 1, Into(&E::products, &Framework::efficiency), 0.05},
        {"efficiency.products_fp8", kPlain, 1, Into(&E::products_fp8, &Framework::efficiency), 0.05},
        {"efficiency.products_fp4", kPlain, 1, Into(&E::products_fp4, &Framework::efficiency), 0.05},
        {"efficiency.attention", kPlain, 1, Into(&E::attention, &Framework::efficiency), 0.05},
        {"efficiency.memory", kPlain, 1, Into(&E::memory, &Framework::efficiency), 0.05},
        {"efficiency.link", kPlain, 1, Into(&E::link, &Framework::efficiency), 0.05},
        {"efficiency.network", kPlain, 1, Into(&E::network, &Framework::efficiency), 0.05},
        {"efficiency.power", kPlain, 1, Into(&E::power, &Framework::efficiency)},
        {"step.passes", kPlain, kMany, IntoOwn(&Framework::passes), 0.1},
        {"step.eager_passes", kPlain, kMany, IntoOwn(&Framework::eager_passes), 0.1},
        {"step.straggle", kPlain, 0.5, IntoOwn(&Framework::straggle)},
        {"step.first_iteration", kTimes, 3600, IntoOwn(&Framework::first_iteration_s)},
        {"step.start", kTimes, 3600, IntoOwn(&Framework::start_s)},
        {"step.reduced", kPerNumber, 8, IntoOwn(&Framework::reduced_bytes), 1},
        {"step.overlap", kPlain, 1, IntoOwn(&Framework::overlap)},
        {"step.overlap_full", kPlain, 1, IntoOwn(&Framework::overlap_full)},
    };
    const std::vector<FigureKind> recomputed = {
        {"full.products", kPlain, 1, IntoRecomputed("full", &Recomputed::products)},
        {"full.attention", kPlain, 1, IntoRecomputed("full", &Recomputed::attention)},
        {"full.passes", kPlain, 1, IntoRecomputed("full", &Recomputed::passes)},
        {"selective.products", kPlain, 1, IntoRecomputed("selective", &Recomputed::products)},
        {"selective.attention", kPlain, 1, IntoRecomputed("selective", &Recomputed::attention)},
        {"selective.passes", kPlain, 1, IntoRecomputed("selective", &Recomputed::passes)},
    };
    all.insert(all.end(), recomputed.begin(), recomputed.end());
    const std::vector<FigureKind> memory = {
        {"memory.weights", kPerParameter, kMany, IntoAmount(&M::weights)},
        {"memory.gradients", kPerParameter, kMany, IntoAmount(&M::gradients)},
        {"memory.moments", kPerParameter, kMany, IntoAmount(&M::moments)},
        {"memory.master", kPerParameter, kMany, IntoAmount(&M::master)},
        {"memory.buckets", kPerParameter, kMany, IntoAmount(&M::buckets)},
        {"memory.gathered_layers", kPlain, kMany, IntoMemory(&M::gathered_layers)},
        {"memory.reduced_layers", kPlain, kMany, IntoMemory(&M::reduced_layers)},
        {"memory.splits_weights", kPlain, 1, IntoSwitch(&M::splits_weights)},
        {"memory.gathers_head", kPlain, 1, IntoSwitch(&M::gathers_head)},
        {"memory.keeps_codes", kPlain, 1, IntoSwitch(&M::keeps_codes)},
        {"memory.frees_gradients", kPlain, 1, IntoSwitch(&M::frees_gradients)},
        {"memory.logits", kPerNumber, kMany, IntoMemory(&M::logits)},
        {"memory.reserved", kPlain, 2, IntoMemory(&M::reserved), 1},
        {"memory.fixed", kBytes, 64e9, IntoMemory(&M::fixed)},
        {"kept.hidden", kPlain, kMany, IntoKept(&K::hidden, &M::kept)},
        {"kept.kv", kPlain, kMany, IntoKept(&K::kv, &M::kept)},
        {"kept.ffn", kPlain, kMany, IntoKept(&K::ffn, &M::kept)},
        {"kept.gated_ffn", kPlain, kMany, IntoKept(&K::gated_ffn, &M::kept)},
        {"kept.hidden_operands", kPlain, kMany, IntoKept(&K::hidden_operands, &M::kept)},
        {"kept.ffn_operands", kPlain, kMany, IntoKept(&K::ffn_operands, &M::kept)},
        {"kept.dropout_masks", kPlain, kMany, IntoKept(&K::dropout_masks, &M::kept)},
        {"kept_selective.hidden", kPlain, kMany, IntoKept(&K::hidden, &M::kept_selective)},
        {"kept_selective.kv", kPlain, kMany, IntoKept(&K::kv, &M::kept_selective)},
        {"kept_selective.ffn", kPlain, kMany, IntoKept(&K::ffn, &M::kept_selective)},
        {"kept_selective.gated_ffn", kPlain, kMany, IntoKept(&K::gated_ffn, &M::kept_selective)},
        {"kept_selective.hidden_operands", kPlain, kMany, IntoKept(&K::hidden_operands, &M::kept_selective)},
        {"kept_selective.ffn_operands", kPlain, kMany, IntoKept(&K::ffn_operands, &M::kept_selective)},
        {"kept_selective.dropout_masks", kPlain, kMany, IntoKept(&K::dropout_masks, &M::kept_selective)},
    };
    all.insert(all.end(), memory.begin(), memory.end());
    return all;
  }();
  return kinds;
}

yaml::Names SectionsOfFrameworks() {
  yaml::Names sections;
  for (const FigureKind& kind : Kinds()) {
    if (std::ranges::find(sections, SectionOf(kind.name)) == sections.end()) {
      sections.emplace_back(SectionOf(kind.name));
    }
  }
  return sections;
}

yaml::Names KeysOfFrameworks() {
  yaml::Names keys = {"name", "about", "trainers", "supports", "compile", "sources", "evidence"};
  for (const std::string& section : SectionsOfFrameworks()) keys.push_back(section);
  return keys;
}

class FrameworkReader : public SourcedReader {
 public:
  explicit FrameworkReader(const fs::path& file) : file_(file) {}

  Framework Read(const yaml::YamlNode& root) {
    Framework framework;
    framework.file = file_;
    framework.plans = false;
    framework.quantizes_apart = true;
    framework.efficiency = {};
    if (root.kind != yaml::YamlNode::Kind::kMap) {
      Wrong(root, yaml::NotAMapping("a framework is a mapping", root));
      return framework;
    }
    Map map;
    for (const auto& [key, value] : yaml::Entries(root, "key", KeysOfFrameworks(), faults)) map.emplace(key, value);
    framework.name = file_.stem().string();
    for (const char* needed : {"about", "sources", "efficiency", "memory", "kept", "evidence"}) {
      if (!map.contains(needed)) Wrong(root, fmt::format("'{}' is missing", needed));
    }
    RequireName(root, map, framework.name);
    if (map.contains("about")) framework.about = Words(*map["about"], "about");
    if (map.contains("compile")) framework.compile = Words(*map["compile"], "compile");
    if (map.contains("trainers")) framework.trainers = List(*map["trainers"], "trainers");
    if (map.contains("supports")) ReadSupports(*map["supports"], framework);
    if (map.contains("sources")) ReadSources(*map["sources"]);
    for (const std::string& section : SectionsOfFrameworks()) {
      if (map.contains(section)) ReadFigures(*map[section], section, framework);
    }
    if (map.contains("evidence")) ReadEvidence(*map["evidence"], framework);
    return framework;
  }

 private:
  void ReadSupports(const yaml::YamlNode& node, Framework& framework) {
    if (!IsMap(node, "supports")) return;
    for (const auto& [key, value] :
         yaml::Entries(node, "field", {"family", "shard", "checkpointing", "precision"}, faults)) {
      framework.supports[key] = List(*value, key);
    }
  }

  void ReadFigures(const yaml::YamlNode& node, const std::string& section, Framework& framework) {
    if (!IsMap(node, section)) return;
    yaml::Names keys;
    for (const FigureKind& kind : Kinds()) {
      if (SectionOf(kind.name) == section) keys.emplace_back(KeyOf(kind.name));
    }
    for (const auto& [key, value] : yaml::Entries(node, "figure of " + section, keys, faults)) {
      const auto kind = std::ranges::find(Kinds(), section + "." + key, &FigureKind::name);
      ReadFigureOf(*value, *kind, framework);
    }
  }

  void ReadFigureOf(const yaml::YamlNode& node, const FigureKind& kind, Framework& framework) {
    const auto map = FigureOf(node, kind.name, kind.units);
    if (!map) return;
    if (map->contains("note")) Words(*map->at("note"), "note");
    if (map->contains("source")) {
      const std::string source = SourceOf(*map->at("source"));
      if (kind.name == "step.first_iteration" && !source.starts_with("assumed")) {
        framework.first_iteration_from = source;
      }
    }
    if (!map->contains("value")) return;
    const yaml::YamlNode& value = *map->at("value");
    const std::string text = TextOf(value);
    const bool numbers = text.ends_with("number") || text.ends_with("numbers");
    if (const auto amount = NumberFrom(value, kind.name, kind.units, kind.least, kind.most)) {
      kind.put(framework, *amount, numbers);
    }
  }

  std::optional<double> NumberFrom(const yaml::YamlNode& node, std::string_view what, std::span<const Unit> units,
                                   double least, double most) {
    const auto amount = AmountOf(node, what, units);
    if (!amount || (*amount >= least && *amount <= most)) return amount;
    Wrong(node, fmt::format("{} is from {:g} to {:g}", what, least, most));
    return std::nullopt;
  }

  void ReadEvidence(const yaml::YamlNode& node, Framework& framework) {
    if (!IsMap(node, "evidence")) return;
    Map map;
    for (const auto& [key, value] : yaml::Entries(node, "kind of evidence", {"time", "memory"}, faults))
      map[key] = value;
    for (const auto& [key, to] :
         {std::pair{"time", &framework.time_evidence}, {"memory", &framework.memory_evidence}}) {
      if (!map.contains(key)) {
        Wrong(node, fmt::format("evidence has no '{}': write `assumed` if no published row supports it", key));
        continue;
      }
      const yaml::YamlNode& of = *map[key];
      if (of.scalar.is_string() && of.scalar == "assumed") continue;
      ReadRows(of, fmt::format("evidence.{}", key), *to);
    }
  }

  void ReadRows(const yaml::YamlNode& node, const std::string& what, PublishedEvidence& evidence) {
    if (!IsMap(node, what + " is `assumed`, or", " of rows, error, spread, gpus and source")) return;
    yaml::Names missing = {"rows", "error", "spread", "gpus", "source"};
    const yaml::Names known = missing;
    for (const auto& [key, value] : yaml::Entries(node, "key of evidence", known, faults)) {
      std::erase(missing, key);
      if (key == "source") SourceOf(*value);
      if (key == "rows") {
        const auto rows = NumberFrom(*value, what + ".rows", kPlain, 1, 1e6);
        if (rows) evidence.rows = static_cast<int64_t>(*rows);
      }
      if (key == "error") evidence.error = NumberFrom(*value, what + ".error", kPlain, 0, 10).value_or(0);
      if (key == "spread") evidence.spread = NumberFrom(*value, what + ".spread", kPlain, 1, 100).value_or(1);
      if (key == "gpus") {
        evidence.gpus = List(*value, "gpus");
        for (const std::string& gpu : evidence.gpus) {
          if (FindGpu(gpu) == nullptr) Wrong(*value, fmt::format("unknown gpu '{}'", ShortenToBytes(gpu, 80)));
        }
      }
    }
    if (!missing.empty()) Wrong(node, fmt::format("{} has no {}", what, Join(missing, ", ")));
  }

  const fs::path& file_;
};

// Decides by keys that only frameworks have: a device has `memory` and `sources`, a trainer's definition `supports`.
bool MayBeFramework(const fs::path& file) {
  static const yaml::Names keys = {"name", "trainers",       "evidence", "step",
                                   "kept", "kept_selective", "full",     "selective"};
  return !yaml::IsOfAnotherKind(file, keys);
}

}  // namespace

std::vector<fs::path> FrameworkFolders(std::vector<fs::path> own) {
  own.emplace_back("frameworks");
  return FoldersOf("frameworks", std::move(own));
}

Framework ParseFramework(std::string_view text, const fs::path& file) {
  FrameworkReader reader(file);
  Framework framework;
  try {
    framework = reader.Read(yaml::ParseYaml(text, {.bytes = kMaxFrameworkBytes}));
  } catch (const yaml::Fault& fault) {
    yaml::ThrowFaults(file, {fault}, kAboutFrameworks);
  }
  if (!reader.faults.empty()) yaml::ThrowFaults(file, std::move(reader.faults), kAboutFrameworks);
  return framework;
}

namespace {

Framework LoadFramework(const fs::path& file) {
  if (auto text = ReadFileIfThere(file, kMaxFrameworkBytes + 1)) return ParseFramework(*text, file);
  throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
}

}  // namespace

Framework FindFramework(const std::string& name, const std::vector<fs::path>& folders) {
  if (name == kOurTrainer) return {};
  try {
    return LoadFramework(FindNamedFile("framework", name, folders, MayBeFramework));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUsage) throw;
    yaml::Names names = {std::string(kOurTrainer)};
    for (const fs::path& file : NamedFiles(folders, MayBeFramework)) names.push_back(file.stem().string());
    throw NoneOfName("framework", name, names, folders);
  }
}

Frameworks::Frameworks(const std::vector<fs::path>& folders, const std::string& as) {
  if (!as.empty()) {
    forced_ = FindFramework(as, folders);
    return;
  }
  for (const fs::path& file : NamedFiles(folders, MayBeFramework)) others_.push_back(LoadFramework(file));
}

void Frameworks::ForEach(const std::function<void(Framework&)>& change) {
  if (forced_) return change(*forced_);
  change(ours_);
  for (Framework& other : others_) change(other);
}

const Framework* Frameworks::Of(const std::string& trainer) const {
  if (forced_) return &*forced_;
  if (trainer == kOurTrainer) return &ours_;
  const std::string any_release = trainer.substr(0, trainer.find('@'));
  const auto found = std::ranges::find_if(others_, [&](const Framework& framework) {
    return std::ranges::any_of(framework.trainers,
                               [&](const std::string& name) { return name == trainer || name == any_release; });
  });
  return found == others_.end() ? nullptr : &*found;
}

}  // namespace ridgeline::predict
