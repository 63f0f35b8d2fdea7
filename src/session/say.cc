#include "session/say.h"

#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline {

std::string CountOf(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

void Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    ThrowErrno("cannot write to the standard output");
  }
}

void WriteAside(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

}  // namespace ridgeline
