// Checksums of records: XXH3-128, as 32 hexadecimal digits. They detect damage. They do not prevent forgery.
#ifndef RIDGELINE_CHECKSUM_H_
#define RIDGELINE_CHECKSUM_H_

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL  // header only: a reader or writer of records links no library
#endif
#include <xxhash.h>

#include <optional>
#include <string>
#include <string_view>

namespace ridgeline {

inline std::string HexDigits(const XXH128_hash_t& hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  std::string digits;
  for (const unsigned char byte : bytes.digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

// The same digits as `xxhsum -H2` prints.
inline std::string Checksum(std::string_view text) { return HexDigits(XXH3_128bits(text.data(), text.size())); }

// The checksum of `text`, seeded with `head`: a change in either of them changes it.
inline std::string Checksum(std::string_view head, std::string_view text) {
  return HexDigits(XXH3_128bits_withSeed(text.data(), text.size(), XXH3_64bits(head.data(), head.size())));
}

// Formats a record as one line, "RECORD xxh3:CHECKSUM\n". REQUIRES: the record is one line and not empty.
inline constexpr std::string_view kLineSeal = " xxh3:";
inline std::string SealedLine(std::string_view record) {
  return std::string(record) + std::string(kLineSeal) + Checksum(record) + '\n';
}

// Returns the record of a sealed line, or nothing if it is damaged.
inline std::optional<std::string_view> Unsealed(std::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const size_t seal = line.find(kLineSeal);
  if (seal == std::string_view::npos) return std::nullopt;
  const std::string_view record = line.substr(0, seal);
  if (line.substr(seal + kLineSeal.size()) != Checksum(record)) return std::nullopt;
  return record;
}

}  // namespace ridgeline

#endif  // RIDGELINE_CHECKSUM_H_
