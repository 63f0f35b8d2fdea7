// Rank 0's server: ranks of a run meet there, and it decides which of them is lost.
//
// Every rank, 0 included, holds one connection to it and reports at short intervals how many collectives it has
// entered, for each of its groups. A rank is lost in four cases: its connection closes before it has left; it says
// nothing for the time limit (its process is stopped, or its machine is gone); the others of a group have waited that
// long for it to enter a collective; or it says itself that it must end. The first lost rank ends the run, and every
// rank is told which one, where, and why. One server gives one answer; a single rank would blame the neighbour for
// which it waits, and which waits itself.
//
// Only those who know the job's secret come in (authenticated_listener.h). When every rank has come, the port is
// closed, before the first step.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/comm/gloo/authenticated_listener.h"
#include "engine/comm/gloo/wire.h"
#include "engine/comm/mesh.h"

namespace ridgeline::engine {

// How often each side says that it is alive, and how long it may be silent: together less than the time limit.
int64_t BeatNs(double timeout_s);
int64_t PatienceNs(double timeout_s);

// "20 s".
std::string LimitText(double timeout_s);

class MeetingPlace {
 public:
  // `listener`: from Listen().
  MeetingPlace(Socket listener, const Secret& secret, const Mesh& mesh, double timeout_s);
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  // Does not wait for the ranks.
  ~MeetingPlace();

  // The purpose of its connections in a handshake.
  static constexpr const char* kPurpose = "meeting";
  // The number of connections that did not prove that they know the secret.
  int64_t refused() const { return refused_; }

 private:
  struct Guest {
    Socket socket;
    MessageReader reader;
    int64_t rank = -1;  // known after its hello
    std::string host;
    int64_t heard_ns = 0;
    std::vector<int64_t> entered;    // by grouping of the mesh
    std::vector<int64_t> behind_ns;  // since when others of its group are ahead of it; 0: they are not
    bool waits = false;              // it is ahead of others of a group
    std::optional<std::string> text;
    bool left = false;
  };

  void Serve();
  void ServeCallers(const pollfd* fds);
  void Take(Guest& guest, const Message& message);
  void Hello(Guest& guest, std::string_view body);
  void LookForLate();
  void NoteWhoIsBehind(int64_t now_ns);
  // Whether others of its group have waited too long for this rank, which waits for nobody itself. Ranks that wait for
  // each other have twice the time.
  bool IsLate(const Guest& guest, int64_t now_ns) const;
  void AnswerExchange();
  void Lose(const Error& why);
  Guest* Of(int64_t rank);
  static std::string Name(const Guest& guest);

  int64_t world_;
  const Mesh mesh_;
  const std::vector<MeshAxes> groupings_;
  double timeout_s_;
  int64_t began_ns_;
  Socket stop_;
  std::optional<AuthenticatedListener> listener_;  // until every rank has come
  std::atomic<int64_t> refused_ = 0;
  std::vector<Guest> guests_;
  std::optional<Error> lost_;
  std::thread thread_;
};

// An Error in a message's body.
std::string EncodeError(const Error& error);
Error DecodeError(std::string_view body);

}  // namespace ridgeline::engine
