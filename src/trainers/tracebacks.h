// Python's tracebacks in a log into which many ranks write, and the table in which torchrun says who failed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/patterns.h"

namespace ridgeline {

// Of a line, what launchers put before it, such as "[rank3]: ", "[default0]:", "3: " or a time.
struct Undecorated {
  std::string who;  // which rank or node it is of, as far as it says: without the times
  std::string_view rest;
};
Undecorated Undecorate(std::string_view line);

// Its frames are indented, and what follows them is its message. "During handling of" one another may be raised.
struct Traceback {
  enum class State { kFrames, kSaid, kChained };
  State state = State::kFrames;
  std::string who;
  std::string label;         // what else stands before each of its lines
  bool has_frames = false;   // one was seen
  int64_t message_line = 0;  // 0: none yet
  int64_t chained_to = 0;    // the line of the message while which was handled it was raised; 0: it was not
  int64_t lines_since = 0;   // since the message, or since the last frame
  std::string first_stray;   // what is neither a frame nor looks like a message
  int64_t first_stray_line = 0;
};

class Tracebacks {
 public:
  enum class Kind {
    kNone,     // of no traceback
    kFrame,    // it is quoted code, and says nothing
    kMessage,  // what was raised
    kMore,     // of a message of several lines
  };
  struct Place {
    Kind kind = Kind::kNone;
    Traceback* traceback = nullptr;
    std::string_view text;  // without what stands before it
  };
  Place Take(int64_t number, std::string_view line);

  // A traceback of which no line looked like a message, but something came behind its frames. Null: there is none.
  const Traceback* Unsaid() const;

 private:
  Place Begin(std::string_view line, size_t at);
  Traceback* Find(const Undecorated& line, std::string_view& text);

  std::vector<Traceback> open_;  // one for each who
};

// Who failed first, in torchrun's words.
struct FirstFailure {
  std::string host;
  std::string rank;
  std::string local_rank;
  int exit_code = 0;  // of a signal its negative number
  std::string words;  // a traceback's last line, or which signal
  int64_t line = 0;   // of its exit code
};

// The table behind torchrun's ChildFailedError: of each rank that failed who it was and what it said, the first last.
class FailureTable {
 public:
  void Expect() { lines_left_ = kMostLines; }  // its error was raised
  // Whether the line is of the table.
  bool Take(int64_t number, std::string_view line);
  const std::optional<FirstFailure>& first() const { return first_; }  // the root cause
  bool is_whole() const { return is_whole_; }

 private:
  static constexpr int64_t kMostLines = 100'000;  // some for each rank
  enum class State { kOutside, kOthers, kFirst };

  State state_ = State::kOutside;
  int64_t lines_left_ = 0;
  bool has_traceback_ = false;
  bool is_whole_ = false;
  std::optional<FirstFailure> first_;
};

// Whether `text` is how Python shows an exception: its name, and what it says.
bool LooksRaised(std::string_view text);

}  // namespace ridgeline
