// The name of a page's style or script in a Content-Security-Policy: the base64 of its SHA-256.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {

inline std::string PolicyHash(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const TempDir dir;
  WriteFileAtomic(dir / "text", text);
  const std::string hex = ridgeline::Run({"sha256sum", (dir / "text").string()}).stdout_text.substr(0, 64);
  const auto byte = [&](size_t i) {
    return 2 * i < hex.size() ? static_cast<uint32_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16)) : 0;
  };
  std::string out;
  for (size_t i = 0; 2 * i < hex.size(); i += 3) {
    const uint32_t group = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    for (size_t j = 0; j < 4; ++j) out += 2 * (i + j) > hex.size() ? '=' : kDigits[group >> (18 - 6 * j) & 0x3FU];
  }
  return out;
}

}  // namespace ridgeline
