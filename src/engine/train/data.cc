#include "engine/train/data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/comm/mesh.h"
#include "engine/ops/philox.h"
#include "run/parallelism.h"

namespace ridgeline::engine {
namespace {

// The stream of random numbers for data, apart from the model's streams. Other words of it name a step and a sequence.
constexpr uint32_t kDataStream = 0xda7a0000;

// Returns the number in a step of this rank's n-th sequence: every micro-step has batch_size sequences of each
// data-parallel rank, in their order.
class Rows {
 public:
  Rows(const RunSpec& spec, int64_t rank)
      : batch_(spec.batch_size), ranks_(DataParallelRanks(spec)), place_(MeshOf(spec).PlaceOf(rank, kDataAxes)) {}
  int64_t Number(int64_t sequence) const { return (sequence / batch_ * ranks_ + place_) * batch_ + sequence % batch_; }

 private:
  int64_t batch_;
  int64_t ranks_;
  int64_t place_;
};

class SyntheticTokens final : public TokenSource {
 public:
  SyntheticTokens(const RunSpec& spec, int64_t rank)
      : rows_(spec, rank),
        seed_(static_cast<uint64_t>(spec.seed)),
        seq_(spec.seq_length),
        vocab_(static_cast<uint64_t>(spec.vocab)) {}

  void Fill(int64_t step, std::span<int32_t> ids, std::span<int32_t> targets) override {
    const auto sequences = static_cast<int64_t>(ids.size()) / seq_;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      // Each sequence has seq + 1 tokens, four from a draw.
      const int64_t per_sequence = seq_ + 1;
      const int64_t number = rows_.Number(sequence);
      for (int64_t position = 0; position < per_sequence; position += 4) {
        const auto draw =
            RandomGroup(seed_, step, kDataStream, static_cast<uint64_t>((number * per_sequence + position) / 4));
        for (int64_t i = 0; i < 4 && position + i < per_sequence; ++i) {
          const auto token = static_cast<int32_t>((static_cast<uint64_t>(draw[static_cast<size_t>(i)]) * vocab_) >> 32);
          const int64_t p = position + i;
          if (p < seq_) ids[static_cast<size_t>(sequence * seq_ + p)] = token;
          if (p > 0) targets[static_cast<size_t>(sequence * seq_ + p - 1)] = token;
        }
      }
    }
  }

 private:
  Rows rows_;
  uint64_t seed_;
  int64_t seq_;
  uint64_t vocab_;
};

// A file mapped as bytes; every sequence begins at a random place in it.
class TextTokens final : public TokenSource {
 public:
  TextTokens(const RunSpec& spec, int64_t rank)
      : rows_(spec, rank), seed_(static_cast<uint64_t>(spec.seed)), seq_(spec.seq_length) {
    const int fd = ::open(spec.data.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) ThrowErrno("cannot read the data file " + spec.data, "give a text file's path, or data: synthetic");
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      throw Error(ErrorKind::kInvalidInput, "the data file " + spec.data + " is not a regular file");
    }
    size_ = info.st_size;
    if (size_ < seq_ + 1) {
      ::close(fd);
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("the data file {} has {} bytes; a sequence of {} tokens needs {}", spec.data, size_, seq_,
                              seq_ + 1),
                  "use a longer file or a smaller seq_length");
    }
    void* data = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (data == MAP_FAILED) ThrowErrno("cannot map the data file " + spec.data);
    data_ = static_cast<const unsigned char*>(data);
  }
  TextTokens(const TextTokens&) = delete;
  TextTokens& operator=(const TextTokens&) = delete;
  ~TextTokens() override { ::munmap(const_cast<unsigned char*>(data_), static_cast<size_t>(size_)); }

  void Fill(int64_t step, std::span<int32_t> ids, std::span<int32_t> targets) override {
    const auto sequences = static_cast<int64_t>(ids.size()) / seq_;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const auto draw = RandomGroup(seed_, step, kDataStream, static_cast<uint64_t>(rows_.Number(sequence)));
      const uint64_t random = (static_cast<uint64_t>(draw[0]) << 32) | draw[1];
      const auto begin = static_cast<int64_t>(random % static_cast<uint64_t>(size_ - seq_));
      for (int64_t p = 0; p < seq_; ++p) {
        ids[static_cast<size_t>(sequence * seq_ + p)] = data_[begin + p];
        targets[static_cast<size_t>(sequence * seq_ + p)] = data_[begin + p + 1];
      }
    }
  }

 private:
  Rows rows_;
  uint64_t seed_;
  int64_t seq_;
  int64_t size_ = 0;
  const unsigned char* data_ = nullptr;
};

}  // namespace

std::unique_ptr<TokenSource> MakeTokenSource(const RunSpec& spec, int64_t rank) {
  if (spec.data == "synthetic") return std::make_unique<SyntheticTokens>(spec, rank);
  return std::make_unique<TextTokens>(spec, rank);
}

}  // namespace ridgeline::engine
