#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ridgeline {
namespace {

// From xxHash's own documentation and `xxhsum -H2` (XXH3, 128 bits, seed 0).
TEST(Hash, KnownVectors) {
  EXPECT_EQ(Hex(Hash("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Hex(Hash("a")), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(Hex(Hash("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, HexKeepsLeadingZeros) {
  EXPECT_EQ(Hex({0, 0}), "00000000000000000000000000000000");
  EXPECT_EQ(Hex({1, 0xabc}), "00000000000000010000000000000abc");
  EXPECT_EQ(Hex({0xffffffffffffffff, 0x8000000000000000}), "ffffffffffffffff8000000000000000");
}

TEST(Hash, EveryByteCounts) {
  std::set<std::string> seen;
  for (const size_t size : {1U, 16U, 17U, 128U, 129U, 240U, 241U, 1024U, 5000U}) {  // each of XXH3's code paths
    const std::string zeros(size, '\0');
    EXPECT_TRUE(seen.insert(Hex(Hash(zeros))).second) << size;
    for (size_t i = 0; i < size; ++i) {
      std::string changed = zeros;
      changed[i] = 1;
      EXPECT_TRUE(seen.insert(Hex(Hash(changed))).second) << size << " bytes, byte " << i;
    }
  }
}

TEST(Hash, DependsOnTheBytesAndNotOnTheirAlignment) {
  const std::string text = "xllama-124m";
  EXPECT_EQ(Hash(std::string_view(text).substr(1)), Hash("llama-124m"));
}

TEST(Hasher, HashingPartsGivesTheHashOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t part : {size_t{1}, size_t{999}, bytes.size()}) {
    Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += part) hasher.Add(std::string_view(bytes).substr(at, part));
    EXPECT_EQ(hasher.Result(), Hash(bytes)) << part;
  }
  EXPECT_EQ(Hasher().Result(), Hash(""));
}

}  // namespace
}  // namespace ridgeline
