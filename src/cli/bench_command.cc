// `ridgeline bench`: a sweep that is made from the command line.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "run/fields.h"
#include "session/say.h"
#include "sweep/formula.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kModel = "model";
constexpr size_t kLongestName = 120;  // of a sweep that is made here, in bytes

// The values that the command line gives, by the names of fields and settings.
using BenchValues = std::map<std::string, std::string, std::less<>>;

bool IsSetting(const Field& field) { return field.name.find('.') != std::string_view::npos; }

// The field, setting or global_batch of this name. REQUIRES: there is one.
const Field& FieldNamed(std::string_view name) {
  return name == sweep::GlobalBatch().name ? sweep::GlobalBatch() : *FindField(name);
}

// "1,8" -> "1", "8".
std::vector<std::string> SplitValues(std::string_view text) {
  std::vector<std::string> values;
  for (;;) {
    const size_t comma = text.find(',');
    values.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

// Returns the value as a sweep has it. Omits quotes if the meaning is the same without them.
std::string SweepValue(const Field& field, const std::string& value) {
  constexpr std::string_view kPlain = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_./+-";
  const bool is_plain = !value.empty() && value.find_first_not_of(kPlain) == std::string::npos &&
                        kPlain.find(value[0]) < kPlain.find('_');
  if (!is_plain || (field.type() == "text" && !yaml::ParseYaml(value).scalar.is_string())) return DumpJson(Json(value));
  return value;
}

std::string HashPart(const std::string& text) { return Hex(Hash(text)).substr(0, 8); }

// Returns a name that says what is measured. Names that would be too long end with a hash of what is left out.
std::string NameOf(const BenchValues& given) {
  std::string name = "bench-" + given.find(kModel)->second;
  for (const auto& [field, values] : given) {
    if (field != kModel) name += fmt::format("-{}={}", field, values);
  }
  const std::string printable = PrintableLine(name);
  if (name.size() <= kLongestName && printable == name) return name;
  size_t end = std::min(printable.size(), kLongestName);
  while (end < printable.size() && (static_cast<unsigned char>(printable[end]) & 0xc0) == 0x80) --end;
  return printable.substr(0, end) + "-" + HashPart(name);
}

// Returns the file of the sweep, in this folder. Two names never have one file.
fs::path FileOf(const std::string& name) {
  std::string file = name;
  const auto is_odd = [](unsigned char c) {
    return std::isalnum(c) == 0 && std::string_view("-_=,.").find(static_cast<char>(c)) == std::string_view::npos;
  };
  std::replace_if(file.begin(), file.end(), is_odd, '_');
  if (file != name) file += "-" + HashPart(name);
  return file + ".yaml";
}

// Returns the sweep of all combinations of the values.
std::string SweepText(const std::string& name, const BenchValues& given) {
  std::string defaults;
  std::string matrix;
  std::map<std::string, std::string> sections;  // of settings
  for (const auto& [key, text] : given) {
    const Field& field = FieldNamed(key);
    std::vector<std::string> values = SplitValues(text);
    for (std::string& value : values) value = SweepValue(field, value);
    if (IsSetting(field)) {
      if (values.size() > 1) {
        throw Error(ErrorKind::kUsage, fmt::format("bench: {} takes one value, not {}", field.flag(), text));
      }
      const size_t dot = key.find('.');
      std::string& section = sections[key.substr(0, dot)];
      section += fmt::format("{}{}: {}", section.empty() ? "" : ", ", key.substr(dot + 1), values[0]);
    } else if (values.size() == 1) {
      defaults += fmt::format("  {}: {}\n", key, values[0]);
    } else {
      matrix += fmt::format("  {}: [{}]\n", key, Join(values, ", "));
    }
  }
  std::string sweep =
      fmt::format("# Made by `ridgeline bench`. Run it with `ridgeline run`.\nname: {}\n", DumpJson(Json(name)));
  if (!defaults.empty()) sweep += "defaults:\n" + defaults;
  if (!matrix.empty()) sweep += "matrix:\n" + matrix;
  for (const auto& [section, entries] : sections) sweep += fmt::format("{}: {{{}}}\n", section, entries);
  return sweep;
}

// Writes the file, or finds it as an earlier call wrote it.
void KeepFile(const fs::path& file, const std::string& text) {
  if (const std::optional<std::string> there = ReadFileIfThere(file, yaml::YamlLimits().bytes); !there) {
    WriteFileAtomic(file, text);
  } else if (*there != text) {
    throw Error(ErrorKind::kUsage,
                fmt::format("bench: {} was changed after an earlier call with these arguments", file.string()),
                "run it with `ridgeline run`, or rename it, together with its `name`");
  }
}

int Bench(const BenchValues& given, const std::vector<fs::path>& trainers,
          const std::function<int(const fs::path& sweep)>& run) {
  const std::string name = NameOf(given);
  const fs::path file = FileOf(name);
  const std::string text = SweepText(name, given);
  try {
    sweep::ParseSweep(text, file, trainers);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput) throw;
    throw Error(e.kind(), e.message(), fmt::format("these arguments make this sweep, which was not kept:\n{}", text));
  }
  KeepFile(file, text);
  session::Say("sweep file: {}\n", file.string());
  return run(file);
}

}  // namespace

Action BenchCommand(CLI::App& self) {
  const auto given = std::make_shared<std::map<std::string, std::string>>();
  const auto run = AddRunOptions(self);
  self.add_option("model", (*given)[std::string(kModel)], "a model, or several: llama-10m,llama-25m")
      ->required()
      ->type_name("MODEL");
  const auto add = [&](const Field& field) {
    if (field.name == kModel) return;
    self.add_option(field.flag(), (*given)[std::string(field.name)], std::string(field.help))
        ->type_name(IsSetting(field) ? "VALUE" : "A,B")
        ->group(IsSetting(field) ? "Settings, one value each" : "Fields, one value or several each");
  };
  for (const Field& field : Fields()) add(field);
  add(sweep::GlobalBatch());
  for (const Field& setting : Settings()) add(setting);
  self.footer(
      "Every combination of the values is a point. The command writes a sweep file into this folder and "
      "runs it as `ridgeline run` does. If you repeat the call, it measures only what has no result yet. To"
      " leave combinations out, or for what else a sweep can say (docs/sweeps.md), edit the file under "
      "another `name`.\n\n"
      "Examples:\n"
      "  ridgeline bench llama-25m --batch-size 1,8 --checkpointing none,full\n"
      "  ridgeline bench llama-10m,llama-25m --precision bf16,fp32 --launcher slurm");
  return [given, run, &self] {
    BenchValues named;
    for (const auto& [name, values] : *given) {
      const CLI::Option* option = self.get_option(name == kModel ? std::string(kModel) : FieldNamed(name).flag());
      if (option->count() > 0) named[name] = values;
    }
    const CLI::Option* trainers = self.get_option("--trainers");
    return Bench(named, trainers->count() > 0 ? trainers->as<std::vector<fs::path>>() : std::vector<fs::path>(), run);
  };
}

}  // namespace ridgeline::cli
