// The one exception type. Thrown where something is wrong, caught in the mains, which map its kind to an exit code.
#pragma once

#include <exception>
#include <string>

namespace ridgeline {

enum class ErrorKind {
  kUsage,           // a wrong command line
  kInvalidInput,    // a sweep, spec, result or database that is not what it must be
  kInfrastructure,  // the disk, a scheduler, the network, the kernel
  kOutOfMemory,     // a plan that does not fit
  kInternal,        // a bug of ours
};

// Exit codes of `ridgeline` for what is thrown: 2 usage or bad input, 3 infrastructure. 0 is done, 1 a run whose points
// failed.
int ExitCode(ErrorKind kind);

class Error : public std::exception {
 public:
  // `message` says what was wrong and where; `hint` what to do about it (may be empty).
  Error(ErrorKind kind, std::string message, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const char* what() const noexcept override { return text_.c_str(); }  // message, then the hint on its own line

 private:
  ErrorKind kind_;
  std::string message_;
  std::string hint_;
  std::string text_;
};

// "what: strerror(errno)" as an infrastructure error.
[[noreturn]] void ThrowErrno(const std::string& what, const std::string& hint = {});

}  // namespace ridgeline
