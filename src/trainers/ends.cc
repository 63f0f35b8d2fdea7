#include "trainers/ends.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/process.h"
#include "base/text.h"
#include "trainers/line_metrics.h"

namespace ridgeline::trainers {
namespace {

using enum EndWeight;

constexpr size_t kEvidenceBytes = 1024;
constexpr size_t kWordsBytes = 200;
constexpr size_t kMostWaiting = 65536;  // ranks
// One step more may come from a rank that had finished it before.
constexpr int64_t kStepsThatGoOn = 2;
constexpr int kShellsSignal = 128;  // an exit code above it is a signal's
constexpr const char* kSeeItsLog = "see its log";
constexpr int kShellsNoCommand = 126;  // the program may not be run; 127: it was not found
constexpr const char* kInstall = "install what is missing on the machine where it runs";
constexpr const char* kKilledHint =
    "something killed it, as the kernel does where memory runs out: give it more of the host's memory. The kernel's "
    "log says whether it was that";

std::vector<const Pattern*> PatternsOf(const Trainer& trainer) {
  std::vector<const Pattern*> patterns;
  for (const PatternEnd& end : trainer.ends) patterns.push_back(&end.pattern);
  return patterns;
}

LogEnd Seen(const EndRule& rule, EndWeight weight, int64_t number, std::string_view line) {
  return {rule.end, ShortenToBytes(line, kEvidenceBytes), rule.hint, number, weight};
}

bool IsImportError(std::string_view message) {
  return message.starts_with("ModuleNotFoundError:") || message.starts_with("ImportError:") ||
         message.starts_with("importlib.metadata.PackageNotFoundError:");
}

// Returns which rank failed first, from torchrun's table: "rank 3 (local rank 1) on node-1".
std::string WhoFailed(const FirstFailure& failure) {
  std::string who = "rank " + failure.rank;
  if (!failure.local_rank.empty()) who += fmt::format(" (local rank {})", failure.local_rank);
  if (!failure.host.empty()) who += " on " + failure.host;
  return who;
}

std::string HowFailed(const FirstFailure& failure) {
  if (failure.exit_code >= 0) return fmt::format("exit code {}", failure.exit_code);
  return Describe({0, -failure.exit_code, 0});
}

// Whether a shell says that it cannot start a program.
bool IsNoProgram(std::string_view line) {
  return line.ends_with("command not found") || line.ends_with(": not found") ||
         line.ends_with(": Permission denied") || line.ends_with(": No such file or directory");
}

// Returns the end for an exit code that the definition does not know.
LogEnd OfCode(int exit_code) {
  LogEnd end{RunStatus::kCrashed, fmt::format("it ended with exit code {}", exit_code), kSeeItsLog, 0, kCodeAlone};
  if (exit_code == 0) return {RunStatus::kOk, "", "", 0, kCodeAlone};
  if (exit_code <= kShellsSignal || exit_code > kShellsSignal + SIGRTMAX) return end;
  const int signal = exit_code - kShellsSignal;
  end.message += ", which is " + Describe({0, signal, 0});
  if (const auto told = EndOfSignal(signal)) {
    end.end = told->end;
    end.hint = told->hint;
  } else if (signal == SIGKILL) {
    end.message += ", and nothing says who sent that";
    end.hint = "the kernel's log says whether memory ran out, and its scheduler's whether the job was ended";
  }
  return end;
}

}  // namespace

std::optional<LogEnd> FirstCause(std::span<const std::optional<LogEnd>> ends) {
  const std::optional<LogEnd>* first = nullptr;
  for (const auto& end : ends) {
    if (end && (first == nullptr || end->weight < (*first)->weight)) first = &end;
  }
  return first == nullptr ? std::nullopt : *first;
}

std::optional<LogEnd> EndOfSignal(int signal) {
  const std::string how = "it ended with " + Describe({0, signal, 0});
  if (signal == SIGTERM) {
    return LogEnd{InfrastructureReason::kPreempted, how + ", which was not sent from here",
                  "somebody told it to leave: its scheduler, or a person who drains the node", 0, kCodeAlone};
  }
  if (signal == SIGBUS) {
    return LogEnd{InfrastructureReason::kNode, how + ", as where shared memory is full",
                  "give it more shared memory: /dev/shm, or the container's setting for it", 0, kCodeAlone};
  }
  return std::nullopt;
}

LogEnds::LogEnds(const Trainer& trainer)
    : trainer_(trainer),
      own_set_(PatternsOf(trainer)),
      own_(trainer.ends.size()),
      marks_(static_cast<size_t>(kCodeAlone) + 1) {}

bool LogEnds::WentOn(const Mark& mark) const { return steps_ - mark.steps >= kStepsThatGoOn; }

// Whether the next line of a step would not have been beyond the run's end. A log without steps is perhaps another
// rank's.
bool LogEnds::IsShortOf(std::optional<int64_t> steps) const {
  return steps && distance_ > 0 && *furthest_ + distance_ < *steps;
}

// The first mark of each weight counts. If the run went on after a mark, it had recovered, and the mark is dropped.
void LogEnds::Set(Slot& slot, Mark mark) {
  const bool is_own = mark.end.weight < kTold;
  for (Slot& other : marks_) {
    if (other && WentOn(*other) && (is_own || !other->is_raised)) other.reset();
  }
  if (is_own && slot && slot->is_import && !mark.is_import) slot.reset();
  if (!slot) slot = std::move(mark);
}

void LogEnds::Step(std::string_view number) {
  is_of_step_ = true;
  if (number.empty() || number != last_step_) ++steps_;
  last_step_ = number.substr(0, kEvidenceBytes);
  const auto step = StepOf(number);
  if (!step || (furthest_ && *step <= *furthest_)) return;
  if (furthest_) distance_ = *step - *furthest_;
  furthest_ = *step;
}

void LogEnds::Line(int64_t number, std::string_view line) {
  if (!std::exchange(is_of_step_, false) && line.find_first_not_of(" \t") != std::string_view::npos) {
    last_words_ = line.substr(0, kWordsBytes);
  }
  if (failure_.Take(number, line)) {
    if (failure_.is_whole()) TakeFailure(number);
    return;
  }
  const Tracebacks::Place place = tracebacks_.Take(number, line);
  if (place.kind == Tracebacks::Kind::kFrame) return;
  if (IsNoProgram(line)) {
    no_program_ =
        Seen({InfrastructureReason::kStart, "is the program's path right on the node?"}, kCodeAlone, number, line);
  }
  const Traceback* const traceback = place.kind == Tracebacks::Kind::kNone ? nullptr : place.traceback;
  bool is_known = TakeWords(number, line, traceback);
  if (!is_known) {
    const std::string_view text = Undecorate(line).rest;  // behind a launcher's prefix, where a line begins, too
    is_known = text.size() < line.size() && TakeWords(number, text, traceback);
  }
  if (place.kind == Tracebacks::Kind::kMessage && !is_known) TakeRaised(*place.traceback, number, place.text);
}

// Returns nothing for quoted words.
std::optional<EndWeight> LogEnds::WeightOf(const EndWords& words, std::string_view line, std::string_view match) const {
  if (words.weight >= kTold || words.weight == kKilled) return words.weight;
  const auto begin = static_cast<size_t>(match.data() - line.data());
  if (!IsQuoted(line, begin, begin + match.size())) return words.weight;
  // A GPU's warning counts as much as a message from a rank that heard of the failure.
  return words.rule.end == InfrastructureReason::kNode ? std::optional(kTold) : std::nullopt;
}

// Returns whether the line has built-in words for an end, that is, words that are not the definition's.
bool LogEnds::TakeWords(int64_t number, std::string_view line, const Traceback* traceback) {
  const bool is_raised = traceback != nullptr;
  // The set may name more patterns than match.
  for (const int place : own_set_.Matching(line)) {
    const auto at = static_cast<size_t>(place);
    if (own_[at] || !trainer_.ends[at].pattern.Find(line)) continue;
    own_[at] = {Seen(trainer_.ends[at].rule, kDefinition, number, line), steps_, is_raised, false};
  }
  for (const int place : BuiltInEndSet().Matching(line)) {
    const EndWords& words = BuiltInEndWords()[static_cast<size_t>(place)];
    const auto match = words.pattern.Find(line);
    const std::optional<EndWeight> weight = match ? WeightOf(words, line, match->whole) : std::nullopt;
    if (!weight) continue;
    // An end on the second line of a message replaces the one on its first line.
    Slot& crash = SlotOf(kCrash);
    const bool is_more = is_raised && crash && crash->end.line == traceback->message_line;
    if (is_more && *weight >= kKilled && *weight <= kTold) crash.reset();
    if (match->whole.find("ChildFailedError") != std::string_view::npos) failure_.Expect();
    if ((*weight == kCrash && IsConsequence(Undecorate(line).who)) || (*weight == kKilled && is_draining_)) return true;
    Mark mark{Seen(words.rule, *weight, number, line), steps_, is_raised, false};
    if (is_raised) mark.who = traceback->who;
    Set(SlotOf(*weight), std::move(mark));
    if (words.is_last) TakeLast(words, Undecorate(line).who);
    return true;
  }
  return false;
}

void LogEnds::TakeLast(const EndWords& words, std::string_view who) {
  is_draining_ = true;
  const std::string_view rank = RankOf(who);
  const bool has_waited = words.rule.end == InfrastructureReason::kStart && !rank.empty();
  if (has_waited && waited_.size() < kMostWaiting) {
    waited_.emplace(rank);
  } else {
    is_over_ = true;
  }
}

// Returns whether the message of `who` is a consequence and no cause. If ranks waited in vain for others to start, a
// rank that did not wait never came. Its failure is the cause.
bool LogEnds::IsConsequence(std::string_view who) const {
  if (!is_draining_ || is_over_) return is_draining_;
  const std::string_view rank = RankOf(who);
  return rank.empty() || waited_.contains(rank);
}

void LogEnds::TakeRaised(const Traceback& traceback, int64_t number, std::string_view message) {
  const bool import = IsImportError(message);
  const EndRule rule{import ? RunEnd(InfrastructureReason::kStart) : RunEnd(RunStatus::kCrashed),
                     import ? kInstall : kSeeItsLog};
  Slot& crash = SlotOf(kCrash);
  Mark mark{Seen(rule, kCrash, number, message), steps_, true, import, traceback.who};
  if (traceback.chained_to != 0) {
    // The last traceback of a chain ended the program. If its first is a consequence of another's end, so is the last.
    if (crash && crash->end.line == traceback.chained_to) crash = std::move(mark);
    return;
  }
  if (!IsConsequence(traceback.who) && !SlotOf(kToLeave)) Set(crash, std::move(mark));
}

void LogEnds::TakeFailure(int64_t number) {
  const FirstFailure& failure = *failure_.first();
  if (failure.exit_code == 0) return;
  if (!failure.words.empty() && failure.exit_code > 0 && !TakeWords(number, failure.words, nullptr)) {
    Traceback raised;
    TakeRaised(raised, number, failure.words);
  }
  const std::string said = failure.words.empty() ? "" : ": " + failure.words;
  const std::string message = WhoFailed(failure) + " ended with " + HowFailed(failure) + said;
  EndRule rule{RunStatus::kCrashed, kSeeItsLog};
  EndWeight weight = kLauncher;
  const auto code = trainer_.exit_codes.find(failure.exit_code);
  if (code != trainer_.exit_codes.end()) {
    rule = code->second;
    weight = kExitCode;
  } else if (failure.exit_code == -SIGKILL) {
    rule = {RunStatus::kOomHost, kKilledHint};
    weight = kKilled;
  } else if (const auto end = failure.exit_code < 0 ? EndOfSignal(-failure.exit_code) : std::nullopt) {
    rule = {end->end, end->hint};
    weight = failure.exit_code == -SIGTERM ? kToLeave : kKilled;
  }
  if (is_draining_ && weight == kKilled) return;
  Slot& slot = SlotOf(weight);
  if (slot && weight != kExitCode) slot.reset();  // it says more than an earlier line of a launcher
  Set(slot, {Seen(rule, weight, failure.line, message), steps_, true, false});
}

void LogEnds::LossIsNotFinite(int64_t number, std::string_view line) {
  if (!diverged_) diverged_ = Seen({RunStatus::kDiverged, "its loss is not a finite number"}, kDiverged, number, line);
}

std::optional<LogEnd> LogEnds::OwnEnd() const {
  const auto found = std::find_if(own_.begin(), own_.end(), [](const Slot& slot) { return slot.has_value(); });
  return found == own_.end() ? std::nullopt : std::optional((*found)->end);
}

// Adds which rank it was, if torchrun names the one that failed first.
void LogEnds::NameWhoFailed(const Mark& mark, LogEnd& end) const {
  const auto& failure = failure_.first();
  if (!failure_.is_whole() || !failure || failure->rank.empty() || failure->exit_code <= 0) return;
  if (end.weight != kCause && end.weight != kCrash) return;
  if (mark.who.find("rank") != std::string::npos && mark.who.find("rank" + failure->rank + "]") == std::string::npos) {
    return;
  }
  if (!failure->words.empty() && end.message.find(failure->words) == std::string::npos) return;
  const std::string who = fmt::format("; {}, {}", WhoFailed(*failure), HowFailed(*failure));
  end.message = ShortenToBytes(end.message, kEvidenceBytes - std::min(who.size(), kEvidenceBytes / 2)) + who;
}

std::optional<LogEnd> LogEnds::OfWords(bool ended_well) const {
  for (const Slot& slot : marks_) {
    if (!slot) continue;
    const EndWeight weight = slot->end.weight;
    const bool is_line = !slot->is_raised && weight != kKilled && weight != kToLeave;
    const bool is_void = WentOn(*slot) && (ended_well || is_line);
    if (is_void) continue;
    LogEnd end = slot->end;
    NameWhoFailed(*slot, end);
    return end;
  }
  return std::nullopt;
}

std::optional<LogEnd> LogEnds::Decide(std::optional<int> exit_code, std::optional<int64_t> steps) const {
  if (auto own = OwnEnd()) return own;
  if (exit_code == 0) {
    if (diverged_) return diverged_;
    const Slot& diverged = SlotOf(kDiverged);
    if (diverged && !WentOn(*diverged)) return diverged->end;
    if (IsShortOf(steps)) {
      if (auto end = OfWords(/*ended_well=*/true)) return end;
    }
  }
  std::vector<std::optional<LogEnd>> ends;
  if (exit_code != 0) ends.emplace_back(OfWords());
  ends.emplace_back(diverged_);
  const auto code = exit_code ? trainer_.exit_codes.find(*exit_code) : trainer_.exit_codes.end();
  if (code != trainer_.exit_codes.end()) {
    ends.emplace_back(LogEnd{code->second.end, fmt::format("it ended with exit code {}", *exit_code), code->second.hint,
                             0, kExitCode});
  } else if (exit_code) {
    const bool is_no_command = *exit_code == kShellsNoCommand || *exit_code == kShellsNoCommand + 1;
    ends.emplace_back(is_no_command && steps_ == 0 && no_program_.line > 0 ? no_program_ : OfCode(*exit_code));
    // Such as what sys.exit("words") prints.
    const bool is_alone = *exit_code != 0 && *exit_code <= kShellsSignal && ends.back()->weight == kCodeAlone;
    if (is_alone && !last_words_.empty() && ends.back()->line == 0) {
      ends.back()->message += "; its last line: " + ValidUtf8(last_words_);
    }
  }
  if (const Traceback* unsaid = tracebacks_.Unsaid(); unsaid != nullptr && exit_code != 0) {
    const EndRule rule{RunStatus::kCrashed, kSeeItsLog};
    ends.emplace_back(Seen(rule, kLauncher, unsaid->first_stray_line, unsaid->first_stray));
  }
  return FirstCause(ends);
}

std::optional<LogEnd> LogEnds::Pending() const {
  const auto is_pending = [&](const Slot& slot) {
    return slot && !WentOn(*slot) && slot->end.end.status != RunStatus::kDiverged &&
           (slot->is_raised || slot->end.end == RunStatus::kOomDevice || slot->end.end == RunStatus::kOomHost);
  };
  for (const Slot& slot : own_) {
    if (is_pending(slot)) return slot->end;
  }
  for (const EndWeight weight : {kCause, kCrash}) {
    if (is_pending(SlotOf(weight))) return SlotOf(weight)->end;
  }
  return std::nullopt;
}

}  // namespace ridgeline::trainers
