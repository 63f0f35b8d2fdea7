// Words that tell how a run ended, in lines of any trainer or launcher.
#pragma once

#include <string_view>
#include <vector>

#include "trainers/definition.h"
#include "trainers/patterns.h"

namespace ridgeline::trainers {

// How much a word tells about the cause of an end, the most first.
enum class EndWeight {
  kDefinition,  // one of the definition's own `ends`
  kCause,       // names the cause: memory, a disk, a GPU, a port
  kDiverged,    // the loss is not finite
  kExitCode,    // the definition knows the exit code
  kCrash,       // the program's own error, such as a traceback's last line
  kKilled,      // a launcher says that a signal ended its first process
  kToLeave,     // the program was told to stop
  kTold,        // this rank was told of another's end, or waited for another in vain
  kLauncher,    // a launcher says that something failed
  kCodeAlone,   // only an exit code
};

struct EndWords {
  Pattern pattern;
  EndRule rule;
  EndWeight weight;
  // Later words are its consequence, as after a drain or a time-out of waiting ranks.
  bool is_last = false;
};

// If a line has several of these words, the first in the list counts. The set has all their patterns.
const std::vector<EndWords>& BuiltInEndWords();
const PatternSet& BuiltInEndSet();

// Whether `line` only quotes the words from `at` to `end`, as advice or as a problem that was overcome.
bool IsQuoted(std::string_view line, size_t at, size_t end);

}  // namespace ridgeline::trainers
