// What lines say of a run's end, whichever trainer or launcher printed them.
#pragma once

#include <string_view>
#include <vector>

#include "trainers/definition.h"
#include "trainers/patterns.h"

namespace ridgeline {

// How much a word tells of why a run ended, the most first.
enum class EndWeight {
  kDefinition,  // it is one of the definition's own `ends`
  kCause,       // it names what was at fault: memory, a disk, a GPU, a port
  kDiverged,    // the loss stopped being a number
  kExitCode,    // the definition knows the exit code
  kCrash,       // the program says what it failed of, such as a traceback's last line
  kKilled,      // a launcher says that a signal ended the first of its processes
  kToLeave,     // somebody told the program to leave
  kTold,        // this rank was told of another's end, or waited for one in vain
  kLauncher,    // a launcher says that something failed
  kCodeAlone,   // an exit code, and nothing else
};

struct EndWords {
  Pattern pattern;
  EndRule rule;
  EndWeight weight;
  // What comes after it is its consequence: after a time-out of ranks that waited, after a drain.
  bool is_last = false;
};

// Of the words on one line the first counts. The set is of all their patterns.
const std::vector<EndWords>& BuiltInEndWords();
const PatternSet& BuiltInEndSet();

// Whether `line` quotes such words as advice, or says that they were overcome. `at`: where they begin in it, `end`:
// where they end.
bool IsQuoted(std::string_view line, size_t at, size_t end);

}  // namespace ridgeline
