// Finds out from a log how a run ended.
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

namespace ridgeline::trainers {

// An end with its evidence.
struct LogEnd {
  RunEnd end;
  std::string message;  // the evidence: the line, at most 1 KiB
  std::string hint;
  int64_t line = 0;  // 0: the exit code tells it, no line
  EndWeight weight = EndWeight::kCodeAlone;
};

// Returns the first cause among the ends that the logs of one run tell; nothing if no log tells an end. A rank's words
// about itself go before its words about another rank, and words go before an exit code. Among equals the first counts.
// REQUIRES: each log was read with the exit code of its own process, if known.
std::optional<LogEnd> FirstCause(std::span<const std::optional<LogEnd>> ends);

// Returns what a signal from outside says about the end of a process. SIGTERM: it was told to stop. SIGBUS: it lacked
// shared memory. Returns nothing for signals that only say that it crashed.
std::optional<LogEnd> EndOfSignal(int signal);

// Looks for ends in a log's lines. The words with the greatest weight decide (EndWeight); among equals the first line.
// Words do not count if the run went on: two steps came after them, and then other words follow or no error was raised.
// A hint that quotes an end does not count. Words after a drain or a time-out of waiting ranks are a consequence.
//
// With exit code 0, only the definition's own `ends` and a loss that is not finite count; other errors were caught. If
// steps are missing, too, the errors count: the code is that of another program, such as `tee`, or of a drain.
// Without an exit code and without words nothing is known.
class LogEnds {
 public:
  explicit LogEnds(const Trainer& trainer);
  void Line(int64_t number, std::string_view line);
  void LossIsNotFinite(int64_t number, std::string_view line);
  // Says that the next line belongs to a finished step. `number`: the step's, or empty. Several ranks may print a step.
  void Step(std::string_view number = {});
  // `steps`: the run's, if known.
  std::optional<LogEnd> Decide(std::optional<int> exit_code, std::optional<int64_t> steps = std::nullopt) const;

  // The weightiest end that words tell. A mark that is only a line does not count if the run went on after it; with
  // `ended_well`, neither does a traceback.
  std::optional<LogEnd> OfWords(bool ended_well = false) const;

  // The error that a run which has not ended yet has raised: out of memory, or a crash. Nothing if it went on after it.
  std::optional<LogEnd> Pending() const;

 private:
  struct Mark {
    LogEnd end;
    int64_t steps = 0;       // steps before it
    bool is_raised = false;  // in a traceback, not only a line
    bool is_import = false;  // the traceback of a missing module
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
  bool IsShortOf(std::optional<int64_t> steps) const;
  std::optional<LogEnd> OwnEnd() const;
  void NameWhoFailed(const Mark& mark, LogEnd& end) const;

  const Trainer& trainer_;
  PatternSet own_set_;
  std::vector<Slot> own_;    // one for each of the definition's ends
  std::vector<Slot> marks_;  // the first mark of each weight
  std::optional<LogEnd> diverged_;
  Tracebacks tracebacks_;
  FailureTable failure_;
  LogEnd no_program_;        // the last line of a shell that could not start a program
  std::string last_words_;   // the last line that is of no step
  bool is_of_step_ = false;  // the next line
  int64_t steps_ = 0;
  std::string last_step_;                      // its number
  std::optional<int64_t> furthest_;            // the highest number of a step
  int64_t distance_ = 0;                       // from the one before it; 0: unknown
  bool is_draining_ = false;                   // a drain or a time-out came; the rest is its consequence
  bool is_over_ = false;                       // all ranks have ended
  std::set<std::string, std::less<>> waited_;  // ranks that waited in vain for others to start
};

}  // namespace ridgeline::trainers
