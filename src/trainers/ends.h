// How a run ended, by what it printed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/definition.h"

namespace ridgeline {

// An end with what shows it.
struct LogEnd {
  RunEnd end;
  std::string message;  // the evidence: the line itself, in at most 1 KiB
  std::string hint;
  int64_t line = 0;  // 0: of none, but of the exit code
};

// Looks for ends in a log's lines. Where several lines tell of one, the first of these that there is decides:
//   1. what the definition's own `ends` say, in their order;
//   2. what is most specific and the cause of others: the device's memory, the host's, a full disk, a failed GPU, a
//      script that is not there. So an OOM beats the time-out of NCCL that the other ranks run into for want of the
//      one;
//   3. a time-out of NCCL, unless a traceback came before it: one rank crashed, and the others waited for it. A
//      traceback for a module that cannot be imported is a start that failed;
//   4. a loss that is NaN, which is mostly why a trainer then stops itself;
//   5. the definition's exit codes;
//   6. a traceback: crashed, with its last line. Of several the first, and of those "during handling of" which others
//      came, the last;
//   7. an exit code that is not 0: crashed.
// A run that ended with exit code 0 did not end by what stands in 2, 3 and 6: somebody caught it. Without an exit code
// and any of these nothing is known.
class LogEnds {
 public:
  explicit LogEnds(const Trainer& trainer);
  void Line(int64_t number, std::string_view line);
  void LossIsNotFinite(int64_t number, std::string_view line);
  std::optional<LogEnd> Decide(std::optional<int> exit_code) const;

 private:
  // Python's traceback: its frames are indented, and what follows them is its message. Each line has what stands before
  // "Traceback", such as a rank.
  struct Traceback {
    enum class State { kNone, kFrames, kSaid, kChained };
    State state = State::kNone;
    std::string prefix;
    LogEnd end;
  };

  void FollowTraceback(int64_t number, std::string_view line);
  std::optional<LogEnd> OwnEnd() const;
  std::optional<LogEnd> BuiltInEnd() const;
  bool SaidMessage() const { return !traceback_.end.message.empty(); }

  const Trainer& trainer_;
  std::vector<const Pattern*> patterns_;  // the definition's, then those built in
  PatternSet set_;
  std::vector<std::optional<LogEnd>> first_;  // of each pattern
  std::optional<LogEnd> diverged_;
  Traceback traceback_;
};

}  // namespace ridgeline
