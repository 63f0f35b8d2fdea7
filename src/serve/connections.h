// All connections of a server, handled by one thread that never waits for any single one. It reads each request until
// it is whole, writes each answer, and closes the connection. A client that sends half a request and falls silent takes
// a place in a table, but delays nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"

namespace ridgeline::serve {

// Thread safety: Finish may be called from any thread, everything else from one thread.
class Connections {
 public:
  // The limits: connections at once; those of one address that have sent no whole request or are about to be closed;
  // and bytes of answers that their readers have not accepted yet. Beyond a limit, the connection that waits longest is
  // dropped.
  static constexpr size_t kMost = 512;
  static constexpr size_t kMostIdleOfAnAddress = 64;
  static constexpr size_t kMostUnwritten = size_t{128} << 20;
  // The time limits: for a whole request to arrive; for its answer, unless it is streamed; and for a reader that
  // accepts nothing of an answer.
  static constexpr std::chrono::seconds kHeadPatience{5};
  static constexpr std::chrono::seconds kAnswerPatience{60};
  static constexpr std::chrono::seconds kWritePatience{10};

  // The outcome of a request: an answer at once, or a later call of Finish. Until then only the request's handler uses
  // the socket of a streamed one.
  struct Reply {
    enum class Kind { kNow, kLater, kStreamed } kind = Kind::kNow;
    std::string bytes = {};  // kNow
  };
  // A request's head, up to the empty line that ends it.
  using Asked = std::function<Reply(uint64_t id, int socket, std::string head)>;

  // `listening` must outlive it.
  Connections(int listening, Asked asked);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Does everything that can be done now, and then waits for more, at most this long. Throws Error(kInfrastructure) if
  // the listening socket failed.
  void Turn(std::chrono::milliseconds at_most);

  // Sends the answer, or the rest of a streamed one.
  void Finish(uint64_t id, std::string bytes);

  // Whether an answer is still being written.
  bool IsWriting() const;

  // An answer with one line for people.
  static std::string Refusal(int status, std::string_view words, std::string_view more_headers = {});

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State { kReading, kAsked, kStreaming, kWriting, kDraining };
  struct Connection {
    int socket = -1;
    std::string address;  // identifies a client: equal addresses count together
    State state = State::kReading;
    TimePoint since = {};  // begin of this state; for kWriting, when its reader last accepted something
    std::string bytes;     // kReading: the head so far; kWriting: the rest of the answer
    size_t written = 0;
    size_t drained = 0;
    bool is_idle() const { return state == State::kReading || state == State::kDraining; }
  };
  using Table = std::map<uint64_t, Connection>;  // sorted by age

  void Accept();
  bool MakeRoom(const std::string& address);
  void TakeFinished();
  void Expire();
  // These may close the connection.
  void Read(uint64_t id);
  void Write(uint64_t id, std::string bytes);
  void WriteMore(uint64_t id);
  void Drain(uint64_t id);
  void Close(Table::iterator connection);

  const int listening_;
  const Asked asked_;
  const Fd wake_;  // an eventfd
  Table table_;
  uint64_t next_id_ = 1;
  size_t unwritten_ = 0;
  TimePoint accept_after_ = {};
  std::mutex mutex_;
  std::vector<std::pair<uint64_t, std::string>> finished_;  // guarded by mutex_
};

}  // namespace ridgeline::serve
