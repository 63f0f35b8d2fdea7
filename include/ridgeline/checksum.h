// Checksums by which a record that was damaged says so: XXH3-128, as 32 hexadecimal digits. They find what happened to
// it, and keep nobody from forging it.
#ifndef RIDGELINE_CHECKSUM_H_
#define RIDGELINE_CHECKSUM_H_

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL  // whoever reads or writes a record links nothing for that
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

// As `xxhsum -H2` has it.
inline std::string Checksum(std::string_view text) { return HexDigits(XXH3_128bits(text.data(), text.size())); }

// Of a text and of what is said before it, so that neither can be mistaken for the other's.
inline std::string Checksum(std::string_view head, std::string_view text) {
  return HexDigits(XXH3_128bits_withSeed(text.data(), text.size(), XXH3_64bits(head.data(), head.size())));
}

// A record of one line, which must not be empty: "RECORD xxh3:CHECKSUM\n".
inline constexpr std::string_view kLineSeal = " xxh3:";
inline std::string SealedLine(std::string_view record) {
  return std::string(record) + std::string(kLineSeal) + Checksum(record) + '\n';
}

// The record of such a line; of one without a checksum, as earlier versions wrote them, all of it but its line end.
// Nothing where it is damaged.
inline std::optional<std::string_view> Unsealed(std::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const size_t seal = line.find(kLineSeal);
  if (seal == std::string_view::npos) return line;
  const std::string_view record = line.substr(0, seal);
  if (line.substr(seal + kLineSeal.size()) != Checksum(record)) return std::nullopt;
  return record;
}

}  // namespace ridgeline

#endif  // RIDGELINE_CHECKSUM_H_
