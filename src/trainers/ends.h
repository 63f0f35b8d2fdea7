// How a run ended, by what it printed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/definition.h"
#include "trainers/end_words.h"
#include "trainers/tracebacks.h"

namespace ridgeline {

// An end with what shows it.
struct LogEnd {
  RunEnd end;
  std::string message;  // the evidence: the line itself, in at most 1 KiB
  std::string hint;
  int64_t line = 0;  // 0: of none, but of the exit code
  EndWeight weight = EndWeight::kCodeAlone;
};

// Of the ends that the logs of one run tell, its first cause: what a rank says of itself goes before what it was told
// of another, and words go before an exit code. Of equals the first. Each log is read with the exit code of its own
// process, as far as that is known. Nothing where none tells of an end.
std::optional<LogEnd> FirstCause(std::span<const std::optional<LogEnd>> ends);

// What a signal says that ended a process, and that nobody here sent: SIGTERM, that it was told to leave; SIGBUS, that
// it lacked shared memory. Nothing where it says no more than that there was a crash.
std::optional<LogEnd> EndOfSignal(int signal);

// Looks for ends in a log's lines. The weight of their words decides (EndWeight), and of equals the first line. What an
// earlier line says is void where the run went on: two steps came after it, and then other words, or where nobody
// raised it. A hint that quotes an end is none. What comes after a drain or a time-out of ranks that waited is its
// consequence.
//
// A run that ended with exit code 0 ended by what the definition's own `ends` say, by a loss that is not finite, or
// well: somebody caught the rest. Without an exit code and any words nothing is known.
class LogEnds {
 public:
  explicit LogEnds(const Trainer& trainer);
  void Line(int64_t number, std::string_view line);
  void LossIsNotFinite(int64_t number, std::string_view line);
  // The next line is one of a step that is done. `number`: its own, or empty; ranks may each print one of it.
  void Step(std::string_view number = {});
  std::optional<LogEnd> Decide(std::optional<int> exit_code) const;

  // What a run that has not ended yet has said of its end, if it was raised: want of memory, or a crash. Nothing of
  // what it has overcome.
  std::optional<LogEnd> Pending() const;

 private:
  struct Mark {
    LogEnd end;
    int64_t steps = 0;       // before it
    bool is_raised = false;  // of a traceback, and not only a line
    bool is_import = false;  // of a traceback for a module that is missing
    std::string who = {};    // whose traceback it is
  };
  using Slot = std::optional<Mark>;

  bool TakeWords(int64_t number, std::string_view line, const Traceback* traceback);
  std::optional<EndWeight> WeightOf(const EndWords& words, std::string_view line, std::string_view match) const;
  void TakeLast(const EndWords& words, std::string_view who);
  bool IsConsequence(std::string_view who) const;
  void TakeRaised(const Traceback& traceback, int64_t number, std::string_view message);
  void TakeFailure(int64_t number);
  void Set(Slot& slot, Mark mark);
  Slot& SlotOf(EndWeight weight) { return marks_[static_cast<size_t>(weight)]; }
  const Slot& SlotOf(EndWeight weight) const { return marks_[static_cast<size_t>(weight)]; }
  bool WentOn(const Mark& mark) const;
  std::optional<LogEnd> OwnEnd() const;
  std::optional<LogEnd> OfWords() const;
  void NameWhoFailed(const Mark& mark, LogEnd& end) const;

  const Trainer& trainer_;
  PatternSet own_set_;
  std::vector<Slot> own_;    // of each of the definition's
  std::vector<Slot> marks_;  // by weight, the first of each
  std::optional<LogEnd> diverged_;
  Tracebacks tracebacks_;
  FailureTable failure_;
  LogEnd no_program_;  // the last line of a shell that could not start one
  int64_t steps_ = 0;
  std::string last_step_;                      // its number
  bool is_draining_ = false;                   // a drain or a time-out came: the rest is its consequence
  bool is_over_ = false;                       // of all ranks
  std::set<std::string, std::less<>> waited_;  // ranks that waited in vain for others to start
};

}  // namespace ridgeline
