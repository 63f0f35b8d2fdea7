// Rank 0's server: where the ranks of a run find each other, and where it is decided which of them is lost.
//
// Every rank, 0 included, holds one connection to it and says at short intervals how many collectives it has entered.
// A rank is lost where its connection closes before it has left, where it says nothing for the time limit (its process
// is stopped, its machine is gone), where the others have waited that long for it to enter a collective, or where it
// says itself that it must end. The first of these ends the run, and is told to every rank: which rank, where, and why.
// Asking one place gives one answer; a rank alone would blame the neighbour it waits for, which waits itself.
//
// Only who knows the job's secret comes in (door.h), and where every rank has come, nobody does any more: the port is
// closed before the first step.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/comm/gloo/door.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline {

// How often each side says that it is alive, and how long it may say nothing: together less than the time limit.
int64_t BeatNs(double timeout_s);
int64_t PatienceNs(double timeout_s);

// "20 s".
std::string LimitText(double timeout_s);

class MeetingPlace {
 public:
  // `listener`: of Listen().
  MeetingPlace(Socket listener, const Secret& secret, int64_t world, double timeout_s);
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  // Does not wait for the ranks.
  ~MeetingPlace();

  // What the place is for, in a handshake.
  static constexpr const char* kPurpose = "meeting";
  // Connections of those who did not prove that they know the secret.
  int64_t refused() const { return refused_; }

 private:
  struct Guest {
    Socket socket;
    MessageReader reader;
    int64_t rank = -1;  // until it has said hello
    std::string host;
    int64_t heard_ns = 0;
    int64_t entered = 0;
    int64_t behind_ns = 0;  // since when others are ahead of it; 0: they are not
    std::optional<std::string> text;
    bool left = false;
  };

  void Serve();
  void ServeDoor(const pollfd* fds);
  void Take(Guest& guest, const Message& message);
  void Hello(Guest& guest, std::string_view body);
  void LookForLate();
  void AnswerExchange();
  void Lose(const Error& why);
  Guest* Of(int64_t rank);
  static std::string Name(const Guest& guest);

  int64_t world_;
  double timeout_s_;
  int64_t began_ns_;
  Socket stop_;
  std::optional<Door> door_;  // until every rank has come
  std::atomic<int64_t> refused_ = 0;
  std::vector<Guest> guests_;
  std::optional<Error> lost_;
  std::thread thread_;
};

// An Error in a message's body.
std::string EncodeError(const Error& error);
Error DecodeError(std::string_view body);

}  // namespace ridgeline
