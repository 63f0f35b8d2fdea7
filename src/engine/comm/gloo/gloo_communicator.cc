#include "engine/comm/gloo/gloo_communicator.h"

#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/machine.h"
#include "base/text.h"
#include "engine/comm/gloo/rendezvous.h"
#include "engine/comm/gloo/ring_context.h"
#include "ridgeline/json_fault.h"

namespace ridgeline {
namespace {

constexpr int64_t kSegmentBytes = 1 << 20;
constexpr int64_t kSegmentsAhead = 4;  // asked for before they are needed
constexpr int64_t kFloatBytes = sizeof(float);

// What a rank tells the others when it comes.
struct Introduction {
  std::string host;
  std::string address;        // as the network has it
  std::string first_address;  // rank 0's, as this rank reaches it
  std::map<std::string, std::string> identity;
};

std::string Encode(const Introduction& i) {
  return DumpJson(
      {{"host", i.host}, {"address", i.address}, {"first_address", i.first_address}, {"identity", i.identity}});
}

Introduction DecodeIntroduction(const std::string& text, int64_t rank) {
  const std::string source = fmt::format("what rank {} reports", rank);
  const Json document = ParseJson(text, source);
  try {
    return {document.at("host"), document.at("address"), document.at("first_address"), document.at("identity")};
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": " + JsonFault(e), "start every rank with the same trainer");
  }
}

// Throws if a rank's identity is not rank 0's.
void CheckAgreement(const std::vector<Introduction>& ranks) {
  std::vector<std::string> differences;
  const auto& first = ranks[0].identity;
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    auto other = ranks[rank].identity;
    std::vector<std::string> fields;
    for (const auto& [name, value] : first) {
      if (other[name] != value) fields.push_back(fmt::format("{} {} (rank 0: {})", name, other[name], value));
    }
    if (other.size() > first.size()) fields.emplace_back("more fields than rank 0");
    if (!fields.empty()) {
      differences.push_back(fmt::format("rank {} on {} has {}", rank, ranks[rank].host, Join(fields, ", ")));
    }
  }
  if (differences.empty()) return;
  throw Error(ErrorKind::kInvalidInput, "the ranks do not agree on what to run: " + Join(differences, "; "),
              "give every rank the same RunSpec and the same trainer");
}

// Returns where others reach this rank. A rank on rank 0's machine may have come over an address that only that machine
// knows; a rank elsewhere knows a better one.
std::string ReachableAddress(const std::vector<Introduction>& ranks, int64_t rank) {
  const std::string& mine = ranks[static_cast<size_t>(rank)].address;
  if (!IsLoopback(mine)) return mine;
  const auto elsewhere =
      std::find_if(ranks.begin(), ranks.end(), [](const Introduction& i) { return !IsLoopback(i.address); });
  return elsewhere == ranks.end() ? mine : elsewhere->first_address;
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const RankEnvironment& place, const std::map<std::string, std::string>& identity)
      : Communicator(place.rank, place.world),
        timeout_s_(place.timeout_s),
        received_(static_cast<size_t>(kSegmentsAhead * kSegmentBytes / kFloatBytes)),
        context_(static_cast<int>(place.rank), static_cast<int>(place.world),
                 std::chrono::milliseconds(static_cast<int64_t>(place.timeout_s * 1e3)),
                 [this](const std::string& why) { AbortWaits(why); }),
        rendezvous_(place, [this] { AbortWaits({}); }) {
    try {
      Meet(identity);
    } catch (const Error& why) {
      rendezvous_.Abandon(why);
      throw;
    }
  }

  std::string_view name() const override { return "gloo"; }
  int64_t ranks_here() const override { return ranks_here_; }
  int64_t refused_connections() const override {
    return rendezvous_.refused_connections() + context_.refused_connections();
  }
  void Abandon(const Error& why) noexcept override { rendezvous_.Abandon(why); }
  void Enter(int64_t collectives) override { rendezvous_.Enter(collectives); }
  std::optional<Error> Loss() const override { return rendezvous_.Loss(); }
  double timeout_s() const override { return timeout_s_; }

  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    std::byte* own = full + rank() * bytes;
    if (mine != own) std::copy_n(mine, bytes, own);
    Ring(full, bytes, rank(), nullptr);
  }

  void ReduceScatterMean(float* full, int64_t elements) override {
    const float scale = 1.0F / static_cast<float>(world());
    const Add add = [&](bool last, int64_t at, const float* from, int64_t count) {
      const float factor = last ? scale : 1.0F;
      for (int64_t i = 0; i < count; ++i) full[at + i] = (full[at + i] + from[i]) * factor;
    };
    Ring(reinterpret_cast<std::byte*>(full), elements * kFloatBytes, rank() - 1, &add);
  }

 private:
  void Meet(const std::map<std::string, std::string>& identity) {
    std::vector<Introduction> ranks;
    for (const std::string& text : rendezvous_.Exchange(
             Encode({HostName(), rendezvous_.local_address(), rendezvous_.first_address(), identity}))) {
      ranks.push_back(DecodeIntroduction(text, static_cast<int64_t>(ranks.size())));
    }
    CheckAgreement(ranks);
    ranks_here_ = std::count_if(ranks.begin(), ranks.end(), [&](const Introduction& i) {
      return i.host == ranks[static_cast<size_t>(rank())].host;
    });
    try {
      context_.Connect(rendezvous_, ReachableAddress(ranks, rank()));
    } catch (const ::gloo::Exception& e) {
      rendezvous_.ThrowLoss(std::string("the ranks cannot connect: ") + e.what());
    }
  }

  using Buffer = ::gloo::transport::UnboundBuffer;
  // Adds `count` values to full's from `at` on. `last`: no more values come for them.
  using Add = std::function<void(bool last, int64_t at, const float* from, int64_t count)>;

  // Takes world - 1 steps. In step s, part (first - s) of `full` goes to the rank after this one, and part (first - s -
  // 1) comes from the rank before it. That part goes into its place, or, with `add`, into memory of ours that `add`
  // then gets. A step sends what the step before received, so a segment goes on as soon as it is here.
  void Ring(std::byte* full, int64_t part_bytes, int64_t first, const Add* add) {
    rendezvous_.Enter(1);
    const int64_t segments = (part_bytes + kSegmentBytes - 1) / kSegmentBytes;  // of a part
    const int64_t total = segments * (world() - 1);
    const Transfer transfer(*this, full, part_bytes * world());
    Buffer& receiver = add == nullptr ? *transfer.whole : *transfer.received;
    const auto offset = [&](int64_t segment) { return segment % segments * kSegmentBytes; };
    const auto size = [&](int64_t segment) { return std::min(kSegmentBytes, part_bytes - offset(segment)); };
    const auto sent_from = [&](int64_t segment) {
      return (first - segment / segments + world()) % world() * part_bytes + offset(segment);
    };
    const auto belongs_at = [&](int64_t segment) { return sent_from(segment + segments); };
    const auto held_at = [](int64_t segment) { return segment % kSegmentsAhead * kSegmentBytes; };
    const auto ask = [&](int64_t segment) {
      if (segment >= total) return;
      context_.thread().Receive({&receiver, context_.before(), first_slot_ + segment,
                                 add == nullptr ? belongs_at(segment) : held_at(segment), size(segment)});
    };
    Guarded(context_.before(), [&] {
      for (int64_t segment = 0; segment < kSegmentsAhead; ++segment) ask(segment);
      int64_t sent = 0;
      for (int64_t got = 0; got < total; ++got) {
        for (; sent < std::min(total, got + std::min(segments, kSegmentsAhead)); ++sent) {
          context_.thread().Send(
              {transfer.whole.get(), context_.after(), first_slot_ + sent, sent_from(sent), size(sent)});
        }
        if (!receiver.waitRecv()) return false;
        if (add != nullptr) {
          (*add)(got >= total - segments, belongs_at(got) / kFloatBytes, received_.data() + held_at(got) / kFloatBytes,
                 size(got) / kFloatBytes);
        }
        ask(got + kSegmentsAhead);
      }
      return true;
    });
    Guarded(context_.after(), [&] {
      for (int64_t segment = 0; segment < total; ++segment) {
        if (!transfer.whole->waitSend()) return false;
      }
      return true;
    });
    first_slot_ += total;
  }

  // Runs `wait`. If Gloo fails, or the wait is aborted because a rank is lost, throws which rank and why.
  template <typename Wait>
  void Guarded(int peer, const Wait& wait) {
    std::string what;
    try {
      if (wait()) return;
      const std::lock_guard lock(waiting_mutex_);
      what = failure_;
    } catch (const ::gloo::Exception& e) {
      what = e.what();
    }
    rendezvous_.ThrowLoss(fmt::format("rank {} did not answer within {}: {}", peer, LimitText(timeout_s_), what));
  }

  // The buffers of one collective, known to AbortWaits.
  struct Transfer {
    Transfer(GlooCommunicator& owner, std::byte* full, int64_t bytes)
        : owner_(owner),
          whole(owner.context_.createUnboundBuffer(full, static_cast<size_t>(bytes))),
          received(owner.context_.createUnboundBuffer(owner.received_.data(), owner.received_.size() * sizeof(float))) {
      owner_.SetWaiting(whole.get(), received.get());
    }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer() {
      owner_.context_.thread().Settle();
      owner_.SetWaiting(nullptr, nullptr);
    }

    GlooCommunicator& owner_;
    std::unique_ptr<Buffer> whole;
    std::unique_ptr<Buffer> received;
  };

  void SetWaiting(Buffer* whole, Buffer* received) {
    const std::lock_guard lock(waiting_mutex_);
    waiting_ = {whole, received};
    if (lost_) AbortLocked();
  }
  // Called on the rendezvous' thread, or on Gloo's.
  void AbortWaits(const std::string& failure) {
    const std::lock_guard lock(waiting_mutex_);
    lost_ = true;
    if (failure_.empty()) failure_ = failure;
    AbortLocked();
  }
  void AbortLocked() {
    for (Buffer* buffer : waiting_) {
      if (buffer == nullptr) continue;
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

  double timeout_s_;
  int64_t ranks_here_ = 1;
  int64_t first_slot_ = 1;  // numbers every segment of a run
  std::vector<float> received_;
  std::mutex waiting_mutex_;
  std::array<Buffer*, 2> waiting_{};
  bool lost_ = false;
  std::string failure_;  // why Gloo could not start to send or to receive
  RingContext context_;
  Rendezvous rendezvous_;  // leaves before the connections close
};

}  // namespace

std::unique_ptr<Communicator> ConnectGloo(const RankEnvironment& place,
                                          const std::map<std::string, std::string>& identity) {
  // Gloo writes to connections whose other end may be gone. That must be an error, and not a signal that ends this
  // process.
  ::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<GlooCommunicator>(place, identity);
}

}  // namespace ridgeline
