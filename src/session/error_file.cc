#include "session/error_file.h"

#include <cstdlib>
#include <exception>

#include "base/files.h"
#include "base/json.h"

namespace ridgeline::session {

ErrorFile::ErrorFile() {
  const char* named = std::getenv(kErrorFileVariable);
  if (named != nullptr) file_ = named;
  ::unsetenv(kErrorFileVariable);
}

void ErrorFile::Write(const Error& error) const noexcept {
  if (file_.empty()) return;
  try {
    WriteFileAtomic(file_, DumpJson({{"message", error.message()}, {"hint", error.hint()}}) + "\n");
  } catch (const std::exception&) {
  }
}

}  // namespace ridgeline::session
