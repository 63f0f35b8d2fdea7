#include "engine/comm/gloo/rendezvous.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/machine.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kRetryNs = 10'000'000;
constexpr int64_t kRetryOtherNs = 500'000'000;  // when another than rank 0 answers: it may belong to an earlier attempt

std::chrono::nanoseconds Limit(const RankEnvironment& place) {
  return std::chrono::nanoseconds(static_cast<int64_t>(place.timeout_s * 1e9));
}

// Returns nothing if the secret's file does not exist yet.
std::optional<Secret> SecretOf(const RankEnvironment& place) {
  return place.secret_file.empty() ? Secret() : Secret::Read(place.secret_file);
}

[[noreturn]] void ThrowNobodyThere(const RankEnvironment& place, bool has_secret, bool other_answered) {
  const std::string limit = LimitText(place.timeout_s);
  const std::string there = fmt::format("{}:{}", place.master_address, place.master_port);
  const std::string file = place.secret_file.string();
  if (!has_secret) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("the ranks' secret {} did not come within {}", file, limit),
                "node 0 puts it into the job's folder, which every node must see");
  }
  if (other_answered) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format(
            "a process at {} answered with another secret than {}, and none with the right one answered within {}",
            there, file.empty() ? "none, as RIDGELINE_SECRET_FILE is not set here" : file, limit),
        "give every rank the same RIDGELINE_SECRET_FILE, and MASTER_PORT to no other program");
  }
  throw Error(ErrorKind::kInfrastructure, fmt::format("rank 0 did not answer at {} within {}", there, limit),
              "was it started, and are MASTER_ADDR and MASTER_PORT its own?");
}

// `address`: the address of rank 0's end.
void CheckMayMeetAt(const std::string& address, const RankEnvironment& place) {
  if (!place.secret_file.empty() || IsLoopback(address)) return;
  throw Error(
      ErrorKind::kInvalidInput,
      fmt::format("the ranks would meet at {} without a secret, and others could join them", address),
      "set RIDGELINE_SECRET_FILE for each to a file that only you can read, with the same 32 random bytes or more "
      "((umask 077; head -c 32 /dev/urandom >FILE)); or, on one machine, MASTER_ADDR to 127.0.0.1");
}

}  // namespace

Rendezvous::Rendezvous(const RankEnvironment& place, const Mesh& mesh, std::function<void()> on_lost)
    : place_(place), on_lost_(std::move(on_lost)), entered_(std::max<size_t>(1, mesh.Groupings().size())) {
  if (place.rank == 0) {
    Socket listener = engine::Listen(place.master_address, place.master_port);
    CheckMayMeetAt(LocalAddress(listener), place);
    const std::optional<Secret> secret = SecretOf(place);
    if (!secret) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("the ranks' secret {} is not there", place.secret_file.string()),
                  "RIDGELINE_SECRET_FILE must name a file that rank 0 can read");
    }
    meeting_place_ = std::make_unique<MeetingPlace>(std::move(listener), *secret, mesh, place.timeout_s);
  }
  Join();
  stop_ = Socket(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) ThrowErrno("cannot make an eventfd");
  std::string hello;
  AppendNumber(place.rank, hello);
  AppendNumber(place.world, hello);
  AppendText(HostName(), hello);
  Tell(MessageKind::kHello, hello);
  thread_ = std::thread([this] { Listen(); });
}

void Rendezvous::Join() {
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + Limit(place_).count();
  bool other_answered = false;  // without the secret, in this call or an earlier one
  for (;;) {
    const std::optional<Secret> secret = SecretOf(place_);
    if (auto socket = secret ? TryConnect(place_.master_address, place_.master_port) : std::nullopt) {
      CheckMayMeetAt(PeerAddress(*socket), place_);
      const Proof proof = Prove(*socket, {*secret, MeetingPlace::kPurpose});
      other_answered = other_answered || proof == Proof::kWrong;
      if (proof == Proof::kTaken) {
        secret_ = *secret;
        socket_ = *std::move(socket);
        return;
      }
    }
    if (clock.MonotonicNs() >= end_ns) ThrowNobodyThere(place_, secret.has_value(), other_answered);
    clock.SleepNs(other_answered ? kRetryOtherNs : kRetryNs);
  }
}

Rendezvous::~Rendezvous() {
  Tell(MessageKind::kLeave, {});
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, Limit(place_), [&] { return everyone_left_ || why_lost_; });
  }
  ::eventfd_write(stop_.fd(), 1);
  thread_.join();
}

std::vector<std::string> Rendezvous::Exchange(std::string_view mine) {
  Tell(MessageKind::kExchange, mine);
  std::string body;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return exchanged_ || why_lost_; });  // the texts come, or a rank is lost
    if (!exchanged_) throw Error(*why_lost_);
    body = *std::exchange(exchanged_, std::nullopt);
  }
  std::vector<std::string> texts;
  std::string_view rest = body;
  for (int64_t rank = 0; rank < place_.world; ++rank) texts.push_back(TakeText(rest));
  return texts;
}

void Rendezvous::Abandon(const Error& why) noexcept {
  if (!lost()) Tell(MessageKind::kAbandon, EncodeError(why));
}

std::optional<Error> Rendezvous::Loss() const {
  const std::lock_guard lock(mutex_);
  return why_lost_;
}

void Rendezvous::ThrowLoss(const std::string& otherwise) {
  std::unique_lock lock(mutex_);
  const auto soon = std::max<std::chrono::nanoseconds>(Limit(place_) / 10, std::chrono::seconds(1));
  changed_.wait_for(lock, soon, [&] { return why_lost_.has_value(); });
  if (why_lost_) throw Error(*why_lost_);
  throw Error(ErrorKind::kInfrastructure, otherwise);
}

void Rendezvous::Listen() {
  SystemClock clock;
  const int64_t beat_ns = BeatNs(place_.timeout_s);
  const timespec interval{beat_ns / 1'000'000'000, beat_ns % 1'000'000'000};
  int64_t heard_ns = clock.MonotonicNs();
  int64_t told_ns = 0;
  while (!lost()) {
    std::array<pollfd, 2> fds = {pollfd{stop_.fd(), POLLIN, 0}, pollfd{socket_.fd(), POLLIN, 0}};
    ::ppoll(fds.data(), fds.size(), &interval, nullptr);
    if (fds[0].revents != 0) return;
    const int64_t now_ns = clock.MonotonicNs();
    if (fds[1].revents != 0) {
      const bool open = reader_.Read(socket_);
      while (const auto message = reader_.Next()) Take(*message);
      heard_ns = now_ns;
      if (!open) {
        return Lose({ErrorKind::kInfrastructure, First() + " closed the connection", "its log says why it ended"});
      }
    }
    if (now_ns - heard_ns > PatienceNs(place_.timeout_s)) {
      Lose({ErrorKind::kInfrastructure,
            fmt::format("{} did not answer within {}", First(), LimitText(place_.timeout_s)),
            "is it stopped, or its machine gone? RIDGELINE_COMM_TIMEOUT_S sets the limit"});
    }
    if (now_ns - told_ns >= beat_ns) {
      std::string body;
      for (const auto& entered : entered_) AppendNumber(entered.load(std::memory_order_relaxed), body);
      Tell(MessageKind::kBeat, body);
      told_ns = now_ns;
    }
  }
}

void Rendezvous::Take(const Message& message) {
  if (message.kind == MessageKind::kLost) return Lose(DecodeError(message.body));
  const std::lock_guard lock(mutex_);
  if (message.kind == MessageKind::kExchange) exchanged_ = message.body;
  if (message.kind == MessageKind::kEveryoneLeft) everyone_left_ = true;
  changed_.notify_all();
}

void Rendezvous::Lose(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (why_lost_ || everyone_left_) return;
    why_lost_ = why;
    changed_.notify_all();
  }
  on_lost_();
}

void Rendezvous::Tell(MessageKind kind, std::string_view body) {
  const std::lock_guard lock(send_mutex_);
  Send(socket_, kind, body);  // if it fails, the listening thread sees the connection close
}

std::string Rendezvous::First() const { return "rank 0 on " + place_.master_address; }

}  // namespace ridgeline::engine
