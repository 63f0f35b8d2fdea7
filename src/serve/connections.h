// Every connection of a server, by one thread that never waits for any of them: it reads what each asks, until that is
// whole, writes what each is answered, and closes it. Who says half and falls silent takes a place in a table, and
// nobody's turn.
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

namespace ridgeline {

// Thread safety: Finish from any thread; all else from one.
class Connections {
 public:
  // Connections at once; those of one address that have not asked anything whole, or are about to be closed; bytes of
  // answers that their readers have not taken yet. Where one more comes, the one that waits longest gives way.
  static constexpr size_t kMost = 512;
  static constexpr size_t kMostIdleOfAnAddress = 64;
  static constexpr size_t kMostUnwritten = size_t{128} << 20;
  // How long a whole request may take to come; how long its answer, where that is not streamed; how long a reader may
  // take nothing of an answer.
  static constexpr std::chrono::seconds kHeadPatience{5};
  static constexpr std::chrono::seconds kAnswerPatience{60};
  static constexpr std::chrono::seconds kWritePatience{10};

  // What becomes of a request: an answer at once, or Finish later. Until then nobody else uses the socket of one that
  // is streamed.
  struct Reply {
    enum class Kind { kNow, kLater, kStreamed } kind = Kind::kNow;
    std::string bytes = {};  // kNow
  };
  // A request's head, to the empty line that ends it.
  using Asked = std::function<Reply(uint64_t id, int socket, std::string head)>;

  // `listening` must outlive it.
  Connections(int listening, Asked asked);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Does what can be done now, and waits for more for so long at most. Throws Error(kInfrastructure) where the
  // listening socket failed.
  void Turn(std::chrono::milliseconds at_most);

  // The answer, or what is left of it where some was streamed.
  void Finish(uint64_t id, std::string bytes);

  // Whether an answer is still being written.
  bool IsWriting() const;

  // An answer of a line for people.
  static std::string Refusal(int status, std::string_view words, std::string_view more_headers = {});

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State { kReading, kAsked, kStreaming, kWriting, kDraining };
  struct Connection {
    int socket = -1;
    std::string address;  // those of one of these are one stranger's
    State state = State::kReading;
    TimePoint since = {};  // in this state; of kWriting: since its reader took something
    std::string bytes;     // kReading: of its head, kWriting: of its answer
    size_t written = 0;
    size_t drained = 0;
    bool is_idle() const { return state == State::kReading || state == State::kDraining; }
  };
  using Table = std::map<uint64_t, Connection>;  // by age

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

}  // namespace ridgeline
