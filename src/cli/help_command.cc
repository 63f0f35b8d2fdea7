// `ridgeline help` and `ridgeline version`: print the same as --help and --version.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "session/say.h"

namespace ridgeline::cli {

Action HelpCommand(CLI::App& self) {
  const auto name = std::make_shared<std::string>();
  self.add_option("command", *name, "the command to explain (default: list all commands)")->type_name("COMMAND");
  self.footer(
      "Examples:\n"
      "  ridgeline help\n"
      "  ridgeline help run");
  return [name, &self] {
    const CLI::App* asked = self.get_parent();
    std::string title = asked->get_name();
    if (!name->empty()) {
      std::vector<std::string> names;
      for (const Command& command : Commands()) names.emplace_back(command.name);
      if (std::find(names.begin(), names.end(), *name) == names.end()) {
        throw Error(ErrorKind::kUsage, fmt::format("there is no command '{}'{}", *name, DidYouMean(*name, names)),
                    "see ridgeline --help");
      }
      asked = asked->get_subcommand(*name);
      title += " " + *name;
    }
    // Does not call help(), because that prints the help of the running command.
    session::Write(asked->get_formatter()->make_help(asked, title, CLI::AppFormatMode::Normal));
    return 0;
  };
}

Action VersionCommand(CLI::App& self) {
  self.footer(
      "Prints one line, as `ridgeline --version` does. `ridgeline doctor` also prints the commit.\n\n"
      "Example:\n"
      "  ridgeline version");
  return [] {
    session::Say("{}\n", VersionLine());
    return 0;
  };
}

}  // namespace ridgeline::cli
