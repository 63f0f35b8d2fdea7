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

namespace {

// What to do about a system error in any operation; empty if that depends on the operation.
const char* HintFor(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "it may belong to another user: name files of your own, or ask its owner for access";
    case EROFS:
      return "this disk is mounted read-only: use a folder on another disk, or remount it";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full: free some space, or files if it has no inodes left (`df -i`)";
    case EMFILE:
    case ENFILE:
      return "too many files are open: raise `ulimit -n`";
    default:
      return "";
  }
}

}  // namespace

void ThrowErrno(const std::string& what, const std::string& hint) {
  const int saved_errno = errno;
  throw Error(ErrorKind::kInfrastructure, what + ": " + std::strerror(saved_errno),
              hint.empty() ? HintFor(saved_errno) : hint);
}

}  // namespace ridgeline
