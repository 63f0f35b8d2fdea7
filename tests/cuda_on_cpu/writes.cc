#include "cuda_on_cpu/writes.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

std::unordered_set<const std::byte*>* atomics = nullptr;  // of the grid that is watched

}  // namespace

void NoteAtomic(const void* address, size_t bytes) {
  if (atomics == nullptr) return;
  for (size_t i = 0; i < bytes; ++i) atomics->insert(static_cast<const std::byte*>(address) + i);
}

WriteWatch::WriteWatch(const DeviceMemory& memory) {
  memory.ForEach([&](const std::byte* data, size_t bytes) {
    pieces_.push_back({data, std::vector<std::byte>(data, data + bytes), std::vector<int>(bytes)});
  });
  atomics = new std::unordered_set<const std::byte*>;
}

WriteWatch::~WriteWatch() {
  delete atomics;
  atomics = nullptr;
}

std::string WriteWatch::AfterBlock() {
  ++block_;
  for (Piece& piece : pieces_) {
    auto before = piece.before.begin();
    const std::byte* now = piece.memory;
    for (;;) {
      std::tie(before, now) = std::mismatch(before, piece.before.end(), now);
      if (before == piece.before.end()) break;
      int& writer = piece.writer[static_cast<size_t>(before - piece.before.begin())];
      if (writer != 0 && !atomics->contains(now)) {
        return "two blocks write to one place, byte " + std::to_string(now - piece.memory) +
               " of an allocation, and not by atomics";
      }
      writer = block_;
      *before++ = *now++;
    }
  }
  return {};
}

}  // namespace cuda_on_cpu
