#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "completion/completion.h"

namespace ridgeline::completion {
namespace {

std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

// The arguments of `complete` that complete a value.
std::string ValueArguments(const Completed& value) {
  switch (value.kind) {
    case Completed::Kind::kAnything:
      return "";
    case Completed::Kind::kWords:
      return " -a " + Quote(Join(value.words, " "));
    case Completed::Kind::kFiles:
      return value.words.empty() ? " -F" : fmt::format(" -a '(__ridgeline_files {})'", Join(value.words, " "));
    case Completed::Kind::kFolders:
      return " -a '(__ridgeline_files)'";
  }
  return "";
}

// `condition`: when the command's options are offered; always if empty.
std::string OptionLines(const CompletedCommand& command, const std::string& program, const std::string& condition) {
  std::string lines;
  for (const CompletedOption& option : command.options) {
    lines += fmt::format("complete -c {}{}", program, condition.empty() ? "" : " -n " + Quote(condition));
    for (const std::string& flag : option.flags) {
      lines += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
    }
    // -x completes nothing else, such as the folder's files.
    const std::string values = ValueArguments(option.value);
    if (option.takes_value) lines += (values == " -F" ? " -r" : " -x") + values;
    lines += " -d " + Quote(option.help) + "\n";
  }
  return lines;
}

// `path`: the names of the parent commands and of this one; empty for the program itself.
std::string CommandLines(const CompletedCommand& command, const std::string& path) {
  std::string lines =
      OptionLines(command, "ridgeline", command.commands.empty() ? "__ridgeline_in " + path : "__ridgeline_at " + path);
  if (const std::string values = ValueArguments(command.argument); !values.empty()) {
    lines += fmt::format("complete -c ridgeline -n '__ridgeline_in {}'{}\n", path, values);
  }
  for (const CompletedCommand& inner : command.commands) {
    lines +=
        fmt::format("complete -c ridgeline -n '__ridgeline_at {}' -a {} -d {}\n", path, inner.name, Quote(inner.help));
    lines += CommandLines(inner, path.empty() ? inner.name : path + " " + inner.name);
  }
  return lines;
}

}  // namespace

std::string FishCompletion(const CompletedPrograms& programs) {
  return fmt::format(
      R"(# Completion of ridgeline and ridgeline-train for fish: a file ridgeline.fish in ~/.config/fish/completions, or
#   ridgeline completion fish | source
# Whether these words follow the program's name, whatever follows them.
function __ridgeline_in
    set -l words (commandline -opc)[2..-1]
    string match -q -- "$argv *" "$words "
end
# The same where nothing follows them.
function __ridgeline_at
    set -l words (commandline -opc)[2..-1]
    test "$words" = "$argv"
end
# Folders, and the files with one of these extensions.
function __ridgeline_files
    set -l endings /
    for extension in $argv
        set -a endings "\.$extension"
    end
    complete -C "'' "(commandline -ct) | string match -r '^.*(?:'(string join '|' $endings)')(?:\t.*)?$'
end
complete -c ridgeline -f
complete -c ridgeline-train -f
{}{})",
      CommandLines(programs.ridgeline, ""), OptionLines(programs.train, "ridgeline-train", ""));
}

}  // namespace ridgeline::completion
