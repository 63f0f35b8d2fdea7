// The commands, their options and the values that these take, as input for the writer of each shell's completion
// script.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::completion {

// What a value may be.
struct Completed {
  enum class Kind { kAnything, kWords, kFiles, kFolders };
  Kind kind = Kind::kAnything;
  std::vector<std::string> words;  // kWords: the words; kFiles: extensions, empty for any file
};

struct CompletedOption {
  std::vector<std::string> flags;  // "--format", "-o"
  std::string help;                // one line
  bool takes_value = false;
  Completed value;
};

struct CompletedCommand {
  std::string name;
  std::string help;
  std::vector<CompletedOption> options;
  Completed argument;                      // the arguments without a flag
  std::vector<CompletedCommand> commands;  // its subcommands
};

struct CompletedPrograms {
  CompletedCommand ridgeline;
  CompletedCommand train;  // ridgeline-train
};

std::string BashCompletion(const CompletedPrograms& programs);
std::string ZshCompletion(const CompletedPrograms& programs);
std::string FishCompletion(const CompletedPrograms& programs);

}  // namespace ridgeline::completion
