#include "session/say.h"

#include <cstdio>

#include "base/error.h"

namespace ridgeline::session {

void Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    ThrowErrno("cannot write to the standard output");
  }
}

void WriteAside(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

}  // namespace ridgeline::session
