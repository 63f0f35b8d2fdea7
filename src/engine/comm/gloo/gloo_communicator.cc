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
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kSegmentBytes = 1 << 20;
constexpr int64_t kSegmentsAhead = 4;  // asked for before they are needed
constexpr int64_t kSlotsOfGrouping = int64_t{1} << 48;

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

// This rank's place in the ring of a group.
struct RingPlace {
  RingPlace(const RankGroup& group, int64_t rank, size_t grouping)
      : grouping(grouping),
        world(group.ranks),
        rank(group.PlaceOf(rank)),
        before(static_cast<int>(group.Rank((this->rank + world - 1) % world))),
        after(static_cast<int>(group.Rank((this->rank + 1) % world))),
        first_slot(static_cast<int64_t>(grouping) * kSlotsOfGrouping + 1) {}

  size_t grouping;  // in Mesh::Groupings
  int64_t world, rank;
  int before, after;   // of all ranks
  int64_t first_slot;  // numbers every segment of a run; rings of two ranks may share a connection
};

// Adds `count` elements to the whole's from `at` on. `last`: no more come for them.
using Add = std::function<void(bool last, int64_t at, const std::byte* from, int64_t count)>;

// Returns the addition of a reduction over `world` ranks.
Add AddTo(std::byte* full, DType dtype, Reduction reduction, int64_t world) {
  const float scale = reduction == Reduction::kMean ? 1.0F / static_cast<float>(world) : 1.0F;
  if (dtype == DType::kF32) {
    return [to = reinterpret_cast<float*>(full), scale](bool last, int64_t at, const std::byte* bytes, int64_t count) {
      const auto* from = reinterpret_cast<const float*>(bytes);
      const float factor = last ? scale : 1.0F;
      for (int64_t i = 0; i < count; ++i) to[at + i] = (to[at + i] + from[i]) * factor;
    };
  }
  const auto of_16_bits = [full, scale](auto value_of, auto rounded) -> Add {
    return [to = reinterpret_cast<uint16_t*>(full), scale, value_of, rounded](bool last, int64_t at,
                                                                              const std::byte* bytes, int64_t count) {
      const auto* from = reinterpret_cast<const uint16_t*>(bytes);
      const float factor = last ? scale : 1.0F;
      for (int64_t i = 0; i < count; ++i) to[at + i] = rounded((value_of(to[at + i]) + value_of(from[i])) * factor);
    };
  };
  if (dtype == DType::kF16)
    return of_16_bits([](uint16_t x) { return FromFp16(x); }, [](float x) { return ToFp16(x); });
  return of_16_bits([](uint16_t x) { return FromBf16(x); }, [](float x) { return ToBf16(x); });
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const RankEnvironment& place, const std::map<std::string, std::string>& identity, const Mesh& mesh)
      : Communicator(place.rank, mesh),
        timeout_s_(place.timeout_s),
        ring_(mesh.GroupOf(place.rank, MeshAxes::All()), place.rank, 0),
        received_(static_cast<size_t>(kSegmentsAhead * kSegmentBytes)),
        context_(static_cast<int>(place.rank), static_cast<int>(place.world),
                 std::chrono::milliseconds(static_cast<int64_t>(place.timeout_s * 1e3)),
                 [this](const std::string& why) { AbortWaits(why); }),
        rendezvous_(place, mesh, [this] { AbortWaits({}); }) {
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
  void Enter(int64_t collectives) override { Enter(ring_, collectives); }
  std::optional<Error> Loss() const override { return rendezvous_.Loss(); }
  double timeout_s() const override { return timeout_s_; }

  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    AllGather(ring_, mine, full, bytes);
  }
  void ReduceScatter(std::byte* full, DType dtype, int64_t elements, Reduction reduction) override {
    ReduceScatter(ring_, full, dtype, elements, reduction);
  }

  // The same among the ranks of a ring.
  void Enter(const RingPlace& ring, int64_t collectives) { rendezvous_.Enter(ring.grouping, collectives); }
  void AllGather(RingPlace& ring, const std::byte* mine, std::byte* full, int64_t bytes) {
    std::byte* own = full + ring.rank * bytes;
    if (mine != own) std::copy_n(mine, bytes, own);
    Ring(ring, full, bytes, ring.rank, nullptr, 1);
  }
  void ReduceScatter(RingPlace& ring, std::byte* full, DType dtype, int64_t elements, Reduction reduction) {
    const Add add = AddTo(full, dtype, reduction, ring.world);
    Ring(ring, full, elements * SizeOf(dtype), ring.rank - 1, &add, SizeOf(dtype));
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
      context_.Connect(rendezvous_, ReachableAddress(ranks, rank()), mesh());
    } catch (const ::gloo::Exception& e) {
      rendezvous_.ThrowLoss(std::string("the ranks cannot connect: ") + e.what());
    }
  }

  std::unique_ptr<Communicator> NewGroup(MeshAxes grouping) override;

  using Buffer = ::gloo::transport::UnboundBuffer;

  // Takes world - 1 steps. In step s, part (first - s) of `full` goes to the rank after this one, and part (first - s -
  // 1) comes from the rank before it. That part goes into its place, or, with `add`, into memory of ours that `add`
  // then gets. A step sends what the step before received, so a segment goes on as soon as it is here.
  void Ring(RingPlace& ring, std::byte* full, int64_t part_bytes, int64_t first, const Add* add,
            int64_t element_bytes) {
    Enter(ring, 1);
    const int64_t world = ring.world;
    const int64_t segments = (part_bytes + kSegmentBytes - 1) / kSegmentBytes;  // of a part
    const int64_t total = segments * (world - 1);
    const Transfer transfer(*this, full, part_bytes * world);
    Buffer& receiver = add == nullptr ? *transfer.whole : *transfer.received;
    const auto offset = [&](int64_t segment) { return segment % segments * kSegmentBytes; };
    const auto size = [&](int64_t segment) { return std::min(kSegmentBytes, part_bytes - offset(segment)); };
    const auto sent_from = [&](int64_t segment) {
      return (first - segment / segments + world) % world * part_bytes + offset(segment);
    };
    const auto belongs_at = [&](int64_t segment) { return sent_from(segment + segments); };
    const auto held_at = [](int64_t segment) { return segment % kSegmentsAhead * kSegmentBytes; };
    const auto ask = [&](int64_t segment) {
      if (segment >= total) return;
      context_.thread().Receive({&receiver, ring.before, ring.first_slot + segment,
                                 add == nullptr ? belongs_at(segment) : held_at(segment), size(segment)});
    };
    Guarded(ring.before, [&] {
      for (int64_t segment = 0; segment < kSegmentsAhead; ++segment) ask(segment);
      int64_t sent = 0;
      for (int64_t got = 0; got < total; ++got) {
        for (; sent < std::min(total, got + std::min(segments, kSegmentsAhead)); ++sent) {
          context_.thread().Send(
              {transfer.whole.get(), ring.after, ring.first_slot + sent, sent_from(sent), size(sent)});
        }
        if (!receiver.waitRecv()) return false;
        if (add != nullptr) {
          (*add)(got >= total - segments, belongs_at(got) / element_bytes, received_.data() + held_at(got),
                 size(got) / element_bytes);
        }
        ask(got + kSegmentsAhead);
      }
      return true;
    });
    Guarded(ring.after, [&] {
      for (int64_t segment = 0; segment < total; ++segment) {
        if (!transfer.whole->waitSend()) return false;
      }
      return true;
    });
    ring.first_slot += total;
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
  RingPlace ring_;  // of all ranks
  std::vector<std::byte> received_;
  std::mutex waiting_mutex_;
  std::array<Buffer*, 2> waiting_{};
  bool lost_ = false;
  std::string failure_;  // why Gloo could not start to send or to receive
  RingContext context_;
  Rendezvous rendezvous_;  // leaves before the connections close
};

// A group of ranks, over the connections of all.
class GlooGroup final : public Communicator {
 public:
  GlooGroup(GlooCommunicator& all, const RingPlace& ring)
      : Communicator(ring.rank, Mesh({.shard = ring.world})), all_(all), ring_(ring) {}

  std::string_view name() const override { return all_.name(); }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    all_.AllGather(ring_, mine, full, bytes);
  }
  void ReduceScatter(std::byte* full, DType dtype, int64_t elements, Reduction reduction) override {
    all_.ReduceScatter(ring_, full, dtype, elements, reduction);
  }
  void Abandon(const Error& why) noexcept override { all_.Abandon(why); }
  void Enter(int64_t collectives) override { all_.Enter(ring_, collectives); }
  std::optional<Error> Loss() const override { return all_.Loss(); }
  double timeout_s() const override { return all_.timeout_s(); }

 private:
  GlooCommunicator& all_;
  RingPlace ring_;
};

std::unique_ptr<Communicator> GlooCommunicator::NewGroup(MeshAxes grouping) {
  const std::vector<MeshAxes> groupings = mesh().Groupings();
  const auto place = static_cast<size_t>(std::ranges::find(groupings, grouping) - groupings.begin());
  return std::make_unique<GlooGroup>(*this, RingPlace(mesh().GroupOf(rank(), grouping), rank(), place));
}

}  // namespace

std::unique_ptr<Communicator> ConnectGloo(const RankEnvironment& place,
                                          const std::map<std::string, std::string>& identity, const Mesh& mesh) {
  // Gloo writes to connections whose other end may be gone. That must be an error, and not a signal that ends this
  // process.
  ::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<GlooCommunicator>(place, identity, mesh);
}

}  // namespace ridgeline::engine
