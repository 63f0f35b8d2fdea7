#include "engine/comm/gloo/meeting_place.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"

namespace ridgeline::engine {

int64_t BeatNs(double timeout_s) {
  return std::clamp<int64_t>(static_cast<int64_t>(timeout_s * 0.05e9), 5'000'000, 1'000'000'000);
}

int64_t PatienceNs(double timeout_s) { return static_cast<int64_t>(timeout_s * 0.9e9); }

std::string LimitText(double timeout_s) { return fmt::format("{:g} s", timeout_s); }

std::string EncodeError(const Error& error) {
  std::string body;
  AppendNumber(static_cast<int64_t>(error.kind()), body);
  AppendText(error.message(), body);
  AppendText(error.hint(), body);
  return body;
}

Error DecodeError(std::string_view body) {
  const auto kind = static_cast<ErrorKind>(TakeNumber(body));
  std::string message = TakeText(body);
  return {kind, std::move(message), TakeText(body)};
}

MeetingPlace::MeetingPlace(Socket listener, const Secret& secret, const Mesh& mesh, double timeout_s)
    : world_(mesh.ranks()),
      mesh_(mesh),
      groupings_(mesh.Groupings()),
      timeout_s_(timeout_s),
      began_ns_(SystemClock().MonotonicNs()),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) ThrowErrno("cannot make an eventfd");
  listener_.emplace(std::move(listener), Terms{secret, kPurpose}, world_);
  thread_ = std::thread([this] { Serve(); });
}

MeetingPlace::~MeetingPlace() {
  ::eventfd_write(stop_.fd(), 1);
  thread_.join();
}

void MeetingPlace::Serve() {
  const int64_t beat_ns = BeatNs(timeout_s_);
  std::vector<pollfd> fds;
  for (;;) {
    fds = {{stop_.fd(), POLLIN, 0}};
    for (const Guest& guest : guests_) fds.push_back({guest.socket.fd(), POLLIN, 0});
    const size_t of_listener = fds.size();
    const int64_t wait_ns = listener_ ? std::min(beat_ns, listener_->Watch(fds)) : beat_ns;
    const timespec wait{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    ::ppoll(fds.data(), fds.size(), &wait, nullptr);
    if (fds[0].revents != 0) return;
    for (size_t i = guests_.size(); i-- > 0;) {
      if (fds[i + 1].revents == 0) continue;
      Guest& guest = guests_[i];
      const bool open = guest.reader.Read(guest.socket);
      while (const auto message = guest.reader.Next()) Take(guest, *message);
      if (open) continue;
      if (guest.rank >= 0 && !guest.left) {
        Lose({ErrorKind::kInfrastructure, Name(guest) + " closed the connection", "its log says why it ended"});
      }
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (listener_) ServeCallers(&fds[of_listener]);
    LookForLate();
  }
}

void MeetingPlace::ServeCallers(const pollfd* fds) {
  for (Socket& socket : listener_->Serve(fds)) guests_.emplace_back().socket = std::move(socket);
  refused_ = listener_->refused();
  if (std::count_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.rank >= 0; }) == world_) {
    listener_.reset();
  }
}

void MeetingPlace::Take(Guest& guest, const Message& message) {
  std::string_view body = message.body;
  guest.heard_ns = SystemClock().MonotonicNs();
  if (message.kind == MessageKind::kHello) return Hello(guest, body);
  if (guest.rank < 0) return;
  switch (message.kind) {
    case MessageKind::kBeat: {
      for (size_t i = 0; i < groupings_.size(); ++i) {
        const int64_t entered = TakeNumber(body);
        if (entered != guest.entered[i]) guest.behind_ns[i] = 0;
        guest.entered[i] = entered;
      }
      Send(guest.socket, MessageKind::kBeat, {});
      break;
    }
    case MessageKind::kExchange:
      guest.text = message.body;
      AnswerExchange();
      break;
    case MessageKind::kAbandon: {
      const Error why = DecodeError(body);
      Lose({why.kind(), Name(guest) + " ended: " + why.message(), why.hint()});
      break;
    }
    case MessageKind::kLeave:
      guest.left = true;
      if (std::count_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.left; }) == world_) {
        for (const Guest& g : guests_) Send(g.socket, MessageKind::kEveryoneLeft, {});
      }
      break;
    default:
      break;
  }
}

void MeetingPlace::Hello(Guest& guest, std::string_view body) {
  const int64_t rank = TakeNumber(body);
  const int64_t world = TakeNumber(body);
  guest.host = TakeText(body);
  const auto refuse = [&](const std::string& why) {
    const Error error(ErrorKind::kInvalidInput, why, "start every rank of a run with its own RANK and one WORLD_SIZE");
    Send(guest.socket, MessageKind::kLost, EncodeError(error));
    Lose(error);
  };
  if (world != world_) {
    return refuse(fmt::format("rank {} on {} has WORLD_SIZE {}, and rank 0 has {}", rank, guest.host, world, world_));
  }
  if (const Guest* other = Of(rank)) {
    return refuse(fmt::format("two processes are rank {}: on {} and on {}", rank, other->host, guest.host));
  }
  guest.rank = rank;
  guest.entered.assign(groupings_.size(), 0);
  guest.behind_ns.assign(groupings_.size(), 0);
  if (lost_) Send(guest.socket, MessageKind::kLost, EncodeError(*lost_));
}

void MeetingPlace::AnswerExchange() {
  std::string all;
  for (int64_t rank = 0; rank < world_; ++rank) {
    const Guest* guest = Of(rank);
    if (guest == nullptr || !guest->text) return;
    AppendText(*guest->text, all);
  }
  for (Guest& guest : guests_) {
    if (guest.rank < 0) continue;
    guest.text.reset();
    Send(guest.socket, MessageKind::kExchange, all);
  }
}

void MeetingPlace::LookForLate() {
  if (lost_) return;
  const int64_t now_ns = SystemClock().MonotonicNs();
  const int64_t patience_ns = PatienceNs(timeout_s_);
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < world_; ++rank) {
    if (Of(rank) == nullptr) missing.push_back(std::to_string(rank));
  }
  const auto late = [&](const std::string& who) {
    Lose({ErrorKind::kInfrastructure, fmt::format("{} did not answer within {}", who, LimitText(timeout_s_)),
          "is it stopped, or its machine gone? RIDGELINE_COMM_TIMEOUT_S sets the limit"});
  };
  NoteWhoIsBehind(now_ns);
  for (const Guest& guest : guests_) {
    if (guest.rank < 0 || guest.left || lost_) continue;
    if (now_ns - guest.heard_ns > patience_ns || IsLate(guest, now_ns)) late(Name(guest));
  }
  if (!missing.empty() && !lost_ && now_ns - began_ns_ > patience_ns) {
    Lose({ErrorKind::kInfrastructure,
          fmt::format("rank{} {} of {} did not come within {}{}", missing.size() == 1 ? "" : "s", Join(missing, ", "),
                      world_, LimitText(timeout_s_),
                      refused_ == 0 ? "" : fmt::format("; of who came, {} did not know the job's secret", refused())),
          "every rank must be started, with the same MASTER_ADDR and MASTER_PORT"});
  }
}

void MeetingPlace::NoteWhoIsBehind(int64_t now_ns) {
  struct Entered {
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t most = 0;
  };
  for (Guest& guest : guests_) guest.waits = false;
  std::vector<Entered> entered(static_cast<size_t>(world_));  // by the first rank of the group
  for (size_t i = 0; i < groupings_.size(); ++i) {
    const auto of_group = [&](const Guest& guest) -> Entered& {
      return entered[static_cast<size_t>(mesh_.GroupOf(guest.rank, groupings_[i]).first)];
    };
    std::ranges::fill(entered, Entered());
    for (const Guest& guest : guests_) {
      if (guest.rank < 0) continue;
      Entered& all = of_group(guest);
      all.least = std::min(all.least, guest.entered[i]);
      all.most = std::max(all.most, guest.entered[i]);
    }
    for (Guest& guest : guests_) {
      if (guest.rank < 0) continue;
      const auto [least, most] = of_group(guest);
      guest.waits = guest.waits || guest.entered[i] > least;
      if (guest.entered[i] == most) guest.behind_ns[i] = 0;
      if (guest.entered[i] < most && guest.behind_ns[i] == 0) guest.behind_ns[i] = now_ns;
    }
  }
}

bool MeetingPlace::IsLate(const Guest& guest, int64_t now_ns) const {
  const int64_t patience_ns = (guest.waits ? 2 : 1) * PatienceNs(timeout_s_);
  return std::ranges::any_of(guest.behind_ns,
                             [&](int64_t since_ns) { return since_ns > 0 && now_ns - since_ns > patience_ns; });
}

// Tells rank 0 last, because this place ends with rank 0's process.
void MeetingPlace::Lose(const Error& why) {
  if (lost_) return;
  lost_ = why;
  const std::string body = EncodeError(why);
  for (const Guest& guest : guests_) {
    if (guest.rank > 0) Send(guest.socket, MessageKind::kLost, body);
  }
  if (const Guest* first = Of(0)) Send(first->socket, MessageKind::kLost, body);
}

MeetingPlace::Guest* MeetingPlace::Of(int64_t rank) {
  const auto it = std::find_if(guests_.begin(), guests_.end(), [&](const Guest& g) { return g.rank == rank; });
  return it == guests_.end() ? nullptr : &*it;
}

std::string MeetingPlace::Name(const Guest& guest) { return fmt::format("rank {} on {}", guest.rank, guest.host); }

}  // namespace ridgeline::engine
