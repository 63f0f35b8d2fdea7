// 128-bit content hashes (XXH3): for identity, not for security.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 Hash(std::string_view bytes);

// The same for bytes that come in parts.
class Hasher {
 public:
  Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  ~Hasher();
  void Add(std::string_view bytes);
  Hash128 Result() const;

 private:
  void* state_;
};

// 32 lowercase hexadecimal digits.
std::string Hex(const Hash128& hash);

}  // namespace ridgeline
