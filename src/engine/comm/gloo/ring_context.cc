#include "engine/comm/gloo/ring_context.h"

#include <fcntl.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/folders.h"
#include "engine/comm/gloo/authenticated_listener.h"

namespace ridgeline::engine {
namespace tcp = ::gloo::transport::tcp;
namespace {

constexpr int64_t kCallAgainNs = 10'000'000;
constexpr int kComesMs = 10'000;

// Returns an address of the loopback network, 127.0.0.0/8, all of whose addresses are this machine. The pair with the
// higher address connects to the other one.
enum class Half { kLower, kHigher };
std::string RandomLoopbackAddress(Half half) {
  std::array<char, 3> random;
  FillRandomly(random.data(), random.size());
  const auto part = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(random[i])); };
  return fmt::format("127.{}.{}.{}", (half == Half::kLower ? 0 : 128) + part(0) % 128, part(1), 1 + part(2) % 254);
}

// Returns one end of a connection, as the kernel has it; nothing if `fd` is no connection. `ask`: getsockname or
// getpeername.
std::string EndOf(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage end{};
  socklen_t length = sizeof end;
  if (ask(fd, reinterpret_cast<sockaddr*>(&end), &length) != 0) return {};
  return {reinterpret_cast<const char*>(&end), length};
}

// Returns this process's own descriptor at the other end of a connection; -1 if that end belongs to another process.
int OtherEndHere(const Socket& connection) {
  const std::string own = EndOf(connection.fd(), ::getsockname);
  const std::string other = EndOf(connection.fd(), ::getpeername);
  int found = -1;
  ForEachEntry("/proc/self/fd", [&](const std::filesystem::directory_entry& entry) {
    const std::string name = entry.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (EndOf(fd, ::getsockname) == other && EndOf(fd, ::getpeername) == own) found = fd;
  });
  return found;
}

// Returns a connection whose other end has proved that it knows the secret; nothing if `gives_up` says yes first.
Socket Call(const std::string& address, int64_t port, const Terms& terms, const std::function<bool()>& gives_up) {
  SystemClock clock;
  for (; !gives_up(); clock.SleepNs(kCallAgainNs)) {
    std::optional<Socket> socket = TryConnect(address, port);
    if (socket && Prove(*socket, terms) == Proof::kTaken) return *std::move(socket);
  }
  return Socket();
}

// Returns the ranks next to this one in any ring of the mesh.
std::set<int> NeighboursOf(int rank, const Mesh& mesh) {
  std::set<int> neighbours;
  for (const MeshAxes axes : mesh.Groupings()) {
    const RankGroup group = mesh.GroupOf(rank, axes);
    const int64_t place = group.PlaceOf(rank);
    for (const int64_t next : {place + 1, place + group.ranks - 1}) {
      neighbours.insert(static_cast<int>(group.Rank(next % group.ranks)));
    }
  }
  return neighbours;
}

// Returns the port at which a rank, from what it told all ranks, waits for rank `from`.
int64_t PortFor(int from, std::string_view told) {
  while (!told.empty()) {
    const int64_t port = TakeNumber(told);
    if (TakeNumber(told) == from) return port;
  }
  return 0;
}

}  // namespace

RingContext::RingContext(int rank, int world, std::chrono::milliseconds timeout,
                         std::function<void(const std::string&)> failed)
    : ::gloo::Context(rank, world), failed_(std::move(failed)) {
  setTimeout(timeout);
}

void RingContext::Connect(Rendezvous& rendezvous, const std::string& address, const Mesh& mesh) {
  const tcp::attr attr(RandomLoopbackAddress(Half::kHigher).c_str());
  device_ = tcp::CreateDevice(attr);
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(getTimeout());

  // The lower rank of two neighbours calls.
  const auto terms = [&](int from, int to) {
    return Terms{rendezvous.secret(), fmt::format("data from rank {} to rank {}", from, to)};
  };
  const std::set<int> neighbours = NeighboursOf(rank, mesh);
  std::map<int, AuthenticatedListener> listeners;  // by the rank that calls
  std::string mine;
  AppendText(address, mine);
  for (const int peer : neighbours) {
    if (peer > rank) continue;
    Socket listener = Listen(address, 0);
    AppendNumber(LocalPort(listener), mine);
    AppendNumber(peer, mine);
    listeners.try_emplace(peer, std::move(listener), terms(peer, rank), 1);
  }
  const std::vector<std::string> all = rendezvous.Exchange(mine);

  const std::string limit = LimitText(static_cast<double>(getTimeout().count()) / 1e3);
  const int64_t end_ns = SystemClock().MonotonicNs() + getTimeout().count() * 1'000'000;
  const auto gives_up = [&] { return rendezvous.lost() || SystemClock().MonotonicNs() >= end_ns; };
  const auto take = [&](int peer, const Socket& socket) {
    if (!socket) rendezvous.ThrowLoss(fmt::format("rank {} did not connect within {}", peer, limit));
    Pair(peer, socket);
  };
  // The called rank must answer, so all ranks connect in one order, that of (lower rank, higher rank). Otherwise ranks
  // could wait in a circle.
  for (const int peer : neighbours) {
    if (peer < rank) {
      AuthenticatedListener& own = listeners.at(peer);
      take(peer, own.Await(gives_up));
      refused_ += own.refused();
    } else {
      std::string_view body = all[static_cast<size_t>(peer)];
      const std::string there = TakeText(body);
      take(peer, Call(there, PortFor(rank, body), terms(rank, peer), gives_up));
    }
  }
  thread_.emplace(std::dynamic_pointer_cast<tcp::Device>(device_), failed_);
}

void RingContext::Pair(int peer, const Socket& connection) {
  const Socket here = Listen(RandomLoopbackAddress(Half::kLower), 0);
  transportContext_->createPair(peer);
  ::gloo::transport::Pair& pair = *transportContext_->getPair(peer);
  pair.connect(tcp::Address::fromSockName(here.fd()).bytes());
  int fd = -1;
  Socket other_end;
  while (fd < 0) {  // the pair has connected, and others may have, too
    pollfd comes{here.fd(), POLLIN, 0};
    ::poll(&comes, 1, kComesMs);
    other_end = Accept(here);
    if (!other_end) ThrowErrno("cannot connect with this process itself");
    fd = OtherEndHere(other_end);
  }
  auto& device = dynamic_cast<tcp::Device&>(*device_);
  auto* const handler = dynamic_cast<tcp::Handler*>(&pair);
  device.unregisterDescriptor(fd, handler);  // returns when Gloo's thread has let go of it
  const bool swapped =
      ::fcntl(connection.fd(), F_SETFL, O_NONBLOCK) == 0 && ::dup3(connection.fd(), fd, O_CLOEXEC) == fd;
  device.registerDescriptor(fd, EPOLLIN, handler);  // as for a pair that has nothing to send
  if (!swapped) ThrowErrno("cannot hand a connection to Gloo");
}

}  // namespace ridgeline::engine
