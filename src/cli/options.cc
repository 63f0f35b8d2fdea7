#include "cli/options.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "run/measurement.h"

namespace ridgeline::cli {
namespace fs = std::filesystem;

CLI::Option* AddFormatOption(CLI::App& command, std::string& format, std::initializer_list<const char*> forms) {
  CLI::Option* option = command.add_option("-o,--format", format, "the form of the output")
                            ->check(CLI::IsMember(std::vector<std::string>(forms.begin(), forms.end())));
  return format.empty() ? option : option->capture_default_str();
}

CLI::Option* AddToOption(CLI::App& command, std::string& to, const char* kind, const std::string& help) {
  CLI::Option* option = command.add_option("--to", to, help)->type_name(kind);
  return to.empty() ? option : option->capture_default_str();
}

void GroupOptions(CLI::App& command, const char* heading, std::initializer_list<const char*> options) {
  for (const char* name : options) command.get_option(name)->group(heading);
}

std::string FormOf(const std::string& format, const std::string& to, std::initializer_list<const char*> forms) {
  if (!format.empty()) return format;
  if (to.empty()) return *forms.begin();
  std::string ending = std::filesystem::path(to).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* form : forms) {
    if (ending == fmt::format(".{}", form)) return form;
  }
  throw Error(ErrorKind::kUsage, fmt::format("the ending of '{}' does not name a format", to),
              fmt::format("name the format with -o: {}; or change the ending",
                          Join(std::vector<std::string>(forms.begin(), forms.end()), ", ")));
}

void AddTrainersOption(CLI::App& command, std::vector<fs::path>& folders) {
  command.add_option("--trainers", folders, "a folder with trainer definitions; repeatable")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

void AddDevicesOption(CLI::App& command, std::vector<fs::path>& folders) {
  command.add_option("--devices", folders, "a folder with device files; repeatable")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

void AddFrameworksOption(CLI::App& command, std::vector<fs::path>& folders) {
  command.add_option("--frameworks", folders, "a folder with framework files; repeatable")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

void AddGivenOptions(CLI::App& command, sweep::Given& given) {
  command.add_option("-S", given.set, "set a field (batch_size=8) or an axis (batch_size=1,8); repeatable")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  command.add_option("--only", given.only, "only points with batch_size=1,8 or 'batch_size<8'; repeatable")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
}

CLI::Option* AddReportsOption(CLI::App& command, std::string& folder) {
  return command.add_option("--reports", folder, "a folder with your own reports, each a folder in it")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
}

CLI::Option* AddCampaignOption(CLI::App& command, std::string& name, const std::string& help) {
  return command.add_option("--campaign", name, help)->type_name("NAME")->check([](const std::string& text) {
    return CampaignProblem(text);
  });
}

}  // namespace ridgeline::cli
