#include "trainers/tracebacks.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostOpen = 1024;  // nobody reads the tracebacks of more ranks
constexpr size_t kMostLabelBytes = 64;
constexpr size_t kMostWordsBytes = 1024;
constexpr int64_t kMessageLines = 12;  // of one message
constexpr int64_t kStrays = 100;       // lines of others between those of a traceback
constexpr std::string_view kHead = "Traceback (most recent call last)";
constexpr std::string_view kIgnored = "Exception ignored ";

bool IsTime(std::string_view token) {
  for (size_t i = 2; i + 1 < token.size(); ++i) {
    const auto digit = [&](size_t at) { return std::isdigit(static_cast<unsigned char>(token[at])) != 0; };
    if (token[i] == ':' && digit(i - 1) && digit(i + 1)) return true;
  }
  return false;
}

// Frames are indented, or in the box that the library rich draws with characters of three bytes.
bool IsFrame(std::string_view text) {
  return text.empty() || text.front() == ' ' || text.front() == '\t' || text.starts_with("\xe2\x94") ||
         text.starts_with("\xe2\x95");
}

// Returns the label before a head if it looks like one that stands before each line; a progress bar does not.
std::string LabelOf(std::string_view before) {
  const bool is_label = before.size() <= kMostLabelBytes && before.find('%') == std::string_view::npos &&
                        (before.ends_with(": ") || before.ends_with(":") || before.ends_with("| "));
  return is_label ? std::string(before) : std::string();
}

std::string_view Trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

}  // namespace

Undecorated Undecorate(std::string_view line) {
  static const Pattern token(
      R"(^(?P<value>\[[^\[\]]{1,80}\](?:<std(?:out|err)>)?:? ?|\(\w[\w.]* pid=\d+(?:, ip=[\w.:]+)?\) ?|)"
      R"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?: \||:)? ?| {0,4}\d{1,5}: |)"
      R"([\w.-]{1,64} \|{1,2} ))");
  Undecorated undecorated{"", line};
  // Most lines match none of these.
  while (!undecorated.rest.empty()) {
    const auto match = token.Find(undecorated.rest);
    if (!match) break;
    if (!IsTime(match->value) && undecorated.who.size() < kMostLabelBytes) undecorated.who += Trimmed(match->value);
    undecorated.rest.remove_prefix(match->value.size());
  }
  return undecorated;
}

bool LooksRaised(std::string_view text) {
  static const Pattern looks(
      R"(^(?:(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Iteration|)"
      R"(Failure|Fault|Abort|Aborted|Exhausted|Closed|Empty|Full|Killed)\w{0,12})(?:\([\w.]*\))?(?::(?: |$)|$))");
  return looks.Find(text).has_value();
}

Tracebacks::Place Tracebacks::Begin(std::string_view line, size_t at) {
  Undecorated before = Undecorate(line.substr(0, at));
  const auto same = [&](const Traceback& other) {
    return other.who == before.who && (other.label.empty() || before.rest.starts_with(other.label));
  };
  auto found = std::find_if(open_.begin(), open_.end(), same);
  if (found == open_.end()) {
    if (open_.size() >= kMostOpen) return {Kind::kFrame, nullptr, {}};
    found = open_.emplace(open_.end());
  } else if (found->state == Traceback::State::kFrames) {
    return {Kind::kFrame, &*found, {}};  // another rank's, in the same log
  }
  const int64_t chained_to = found->state == Traceback::State::kChained ? found->message_line : 0;
  *found = Traceback();
  found->who = before.who;
  found->label = LabelOf(before.rest);
  found->chained_to = chained_to;
  found->is_ignored = ignores_ == found->who;
  if (found->is_ignored) ignores_.reset();
  return {Kind::kFrame, &*found, {}};
}

Traceback* Tracebacks::Find(const Undecorated& line, std::string_view& text) {
  for (Traceback& traceback : open_) {
    if (traceback.who != line.who) continue;
    if (line.rest.starts_with(traceback.label)) {
      text = line.rest.substr(traceback.label.size());
      return &traceback;
    }
    // The text before the head belonged to that line alone.
    if (traceback.state == Traceback::State::kFrames && !traceback.has_frames && IsFrame(line.rest)) {
      traceback.label.clear();
      text = line.rest;
      return &traceback;
    }
  }
  return nullptr;
}

Tracebacks::Place Tracebacks::Take(int64_t number, std::string_view line) {
  using enum Traceback::State;
  if (const size_t at = line.find(kHead); at != std::string_view::npos) return Begin(line, at);
  if (line.find(kIgnored) != std::string_view::npos) {
    Undecorated said = Undecorate(line);
    if (said.rest.starts_with(kIgnored)) {
      ignores_ = std::move(said.who);
      return {};
    }
  }
  if (open_.empty()) return {};
  std::string_view text;
  Traceback* const traceback = Find(Undecorate(line), text);
  if (traceback == nullptr) return {};
  ++traceback->lines_since;
  if (traceback->state == kFrames) {
    if (IsFrame(text)) {
      traceback->has_frames = traceback->has_frames || !text.empty();
      traceback->lines_since = 0;
      return {Kind::kFrame, traceback, text};
    }
    // Behind Ray's own exception stands the one that the task raised, with its frames.
    if (LooksRaised(text) && !text.starts_with("ray.exceptions.RayTaskError")) {
      traceback->state = kSaid;
      traceback->message_line = number;
      traceback->lines_since = 0;
      return {traceback->is_ignored ? Kind::kFrame : Kind::kMessage, traceback, text};
    }
    if (traceback->first_stray.empty()) {
      traceback->first_stray = ShortenToBytes(text, kMostWordsBytes);
      traceback->first_stray_line = number;
    }
    if (traceback->lines_since > kStrays) traceback->state = kSaid;
    return {};
  }
  if (text.starts_with("During handling of the above exception") ||
      text.starts_with("The above exception was the direct cause")) {
    traceback->state = kChained;
  }
  const bool is_more = traceback->state == kSaid && traceback->lines_since <= kMessageLines;
  if (is_more && !traceback->is_ignored) return {Kind::kMore, traceback, text};
  return {};
}

const Traceback* Tracebacks::Unsaid() const {
  const auto found = std::find_if(open_.begin(), open_.end(), [](const Traceback& traceback) {
    return traceback.has_frames && traceback.message_line == 0 && !traceback.first_stray.empty() &&
           !traceback.is_ignored;
  });
  return found == open_.end() ? nullptr : &*found;
}

bool FailureTable::Take(int64_t number, std::string_view line) {
  static const Pattern field(R"(^ +(?:host|rank|exitcode|error_file|traceback) *: (?P<value>.*)$)");
  static const Pattern local_rank(R"(\(local_rank: (\d+)\))");
  if (lines_left_ == 0) return false;
  --lines_left_;
  const std::string_view text = Undecorate(line).rest;
  if (state_ == State::kOutside) {
    if (text == "Failures:") state_ = State::kOthers;
    if (!text.starts_with("Root Cause (first observed failure)")) return state_ != State::kOutside;
  }
  if (text.starts_with("Root Cause (first observed failure)")) {
    state_ = State::kFirst;
    first_.emplace();
    has_traceback_ = false;
    return true;
  }
  if (state_ == State::kOthers) return true;
  if (text.starts_with("=====")) {
    is_whole_ = true;
    lines_left_ = 0;
    return true;
  }
  const auto match = field.Find(text);
  const std::string_view name = Trimmed(text.substr(0, std::min(text.find(':'), text.size())));
  if (match && name == "host") first_->host = ShortenToBytes(match->value, kMostLabelBytes);
  if (match && name == "rank") {
    first_->rank = ShortenToBytes(match->value.substr(0, match->value.find(' ')), kMostLabelBytes);
    if (const auto local = local_rank.Find(match->value)) first_->local_rank = ShortenToBytes(local->value, 16);
  }
  if (match && name == "exitcode") {
    std::from_chars(match->value.data(), match->value.data() + match->value.size(), first_->exit_code);
    first_->line = number;
  }
  if (match && name == "traceback") {
    has_traceback_ = match->value.starts_with("Traceback");
    if (match->value.starts_with("Signal")) first_->words = ShortenToBytes(match->value, kMostWordsBytes);
  } else if (has_traceback_ && LooksRaised(Trimmed(text))) {
    first_->words = ShortenToBytes(Trimmed(text), kMostWordsBytes);
  }
  return true;
}

}  // namespace ridgeline::trainers
