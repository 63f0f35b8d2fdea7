// Finds Python tracebacks in a log of many ranks, and torchrun's table of the first failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/patterns.h"

namespace ridgeline::trainers {

// The prefix that launchers put before a line, such as "[rank3]: ", "[default0]:", "3: " or a time.
struct Undecorated {
  std::string who;  // the rank or node it names, without times
  std::string_view rest;
};
Undecorated Undecorate(std::string_view line);

// Frames are indented, and the message follows them. Another may be raised "during handling of" one.
struct Traceback {
  enum class State { kFrames, kSaid, kChained };
  State state = State::kFrames;
  std::string who;
  std::string label;         // the rest of the prefix of its lines
  bool has_frames = false;   // a frame was seen
  bool is_ignored = false;   // Python says that it ignores the exception, such as one of a destructor
  int64_t message_line = 0;  // 0: no message yet
  int64_t chained_to = 0;    // message line of the error during whose handling it was raised; 0: none
  int64_t lines_since = 0;   // lines since the message, or since the last frame
  std::string first_stray;   // the first line that looks like neither a frame nor a message
  int64_t first_stray_line = 0;
};

class Tracebacks {
 public:
  enum class Kind {
    kNone,     // not part of a traceback
    kFrame,    // quoted code, which says nothing about the end
    kMessage,  // the error
    kMore,     // a further line of a message
  };
  struct Place {
    Kind kind = Kind::kNone;
    Traceback* traceback = nullptr;
    std::string_view text;  // the line without its prefix
  };
  Place Take(int64_t number, std::string_view line);

  // A traceback without a line that looks like a message, but with lines after its frames. Null if there is none.
  const Traceback* Unsaid() const;

 private:
  Place Begin(std::string_view line, size_t at);
  Traceback* Find(const Undecorated& line, std::string_view& text);

  std::vector<Traceback> open_;         // at most one for each `who`
  std::optional<std::string> ignores_;  // who said that it ignores the exception whose traceback comes next
};

// The first failure, as torchrun reports it.
struct FirstFailure {
  std::string host;
  std::string rank;
  std::string local_rank;
  int exit_code = 0;  // of a signal, its negative number
  std::string words;  // a traceback's last line, or the signal
  int64_t line = 0;   // line number of its exit code
};

// The table after torchrun's ChildFailedError: each failed rank and its error, with the first failure last.
class FailureTable {
 public:
  void Expect() { lines_left_ = kMostLines; }  // ChildFailedError was raised
  // Returns whether the line is part of the table.
  bool Take(int64_t number, std::string_view line);
  const std::optional<FirstFailure>& first() const { return first_; }  // the root cause
  bool is_whole() const { return is_whole_; }

 private:
  static constexpr int64_t kMostLines = 100'000;  // several per rank
  enum class State { kOutside, kOthers, kFirst };

  State state_ = State::kOutside;
  int64_t lines_left_ = 0;
  bool has_traceback_ = false;
  bool is_whole_ = false;
  std::optional<FirstFailure> first_;
};

// Whether `text` looks like Python's form of an exception: its name and message.
bool LooksRaised(std::string_view text);

}  // namespace ridgeline::trainers
