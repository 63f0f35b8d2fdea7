#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace ridgeline {

int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInvalidInput:
      return 2;
    case ErrorKind::kInfrastructure:
    case ErrorKind::kOutOfMemory:
    case ErrorKind::kInternal:
      return 3;
  }
  return 3;
}

Error::Error(ErrorKind kind, std::string message, std::string hint)
    : kind_(kind), message_(std::move(message)), hint_(std::move(hint)), text_(message_) {
  if (!hint_.empty()) text_ += "\n  " + hint_;
}

void ThrowErrno(const std::string& what, const std::string& hint) {
  const int saved_errno = errno;
  throw Error(ErrorKind::kInfrastructure, what + ": " + std::strerror(saved_errno), hint);
}

}  // namespace ridgeline
