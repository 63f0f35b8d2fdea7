// Options that several commands have, so that each means the same everywhere.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ridgeline::cli {

// `-o FORMAT`: the form of what is printed or written, one of `forms`.
CLI::Option* AddFormatOption(CLI::App& command, std::string& format, std::initializer_list<const char*> forms);

// `--to PATH`: where a command writes; `kind` is FILE or DIR (commands.h).
CLI::Option* AddToOption(CLI::App& command, std::string& to, const char* kind, const std::string& help);

// Puts options under a heading of the command's help. Unknown names are a mistake of ours: CLI11 throws.
void GroupOptions(CLI::App& command, const char* heading, std::initializer_list<const char*> options);

// The form that `format` (of -o) names, else the one that the ending of `to` (of --to) implies, else the first of
// `forms`. Throws Error(kUsage) if `to` has none of their endings.
std::string FormOf(const std::string& format, const std::string& to, std::initializer_list<const char*> forms);

// Adds `--trainers DIR`, which must exist and may be repeated.
void AddTrainersOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// Adds `--devices DIR`, which must exist and may be repeated.
void AddDevicesOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// Adds `--frameworks DIR`, which must exist and may be repeated.
void AddFrameworksOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// Adds `-S FIELD=VALUE` and `--only FIELD=VALUE`, which may be given several times.
void AddGivenOptions(CLI::App& command, sweep::Given& given);

// Adds `--reports DIR`, which must exist.
CLI::Option* AddReportsOption(CLI::App& command, std::string& folder);

// Adds `--campaign NAME`, which must be a valid campaign name.
CLI::Option* AddCampaignOption(CLI::App& command, std::string& name, const std::string& help);

}  // namespace ridgeline::cli
