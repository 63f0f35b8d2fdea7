// What shells complete: the programs' commands, their options and what these take, for a writer of each shell's script.
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

// What may stand where a value does.
struct Completed {
  enum class Kind { kAnything, kWords, kFiles, kFolders };
  Kind kind = Kind::kAnything;
  std::vector<std::string> words;  // kWords: them; kFiles: their extensions, none for files of any
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
  Completed argument;                      // of those without a flag
  std::vector<CompletedCommand> commands;  // its own
};

struct CompletedPrograms {
  CompletedCommand ridgeline;
  CompletedCommand train;  // ridgeline-train
};

std::string BashCompletion(const CompletedPrograms& programs);
std::string ZshCompletion(const CompletedPrograms& programs);
std::string FishCompletion(const CompletedPrograms& programs);

}  // namespace ridgeline
