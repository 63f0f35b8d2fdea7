// The only exception type. It is thrown if something is wrong, and caught in the mains, which map its kind to an exit
// code.
#pragma once

#include <exception>
#include <string>

namespace ridgeline {

enum class ErrorKind {
  kUsage,           // a wrong command line
  kInvalidInput,    // an invalid sweep, spec, result or database
  kInfrastructure,  // the disk, a scheduler, the network, the kernel
  kOutOfMemory,     // a plan that does not fit
  kInternal,        // a bug in Ridgeline
};

// Exit codes of `ridgeline` for exceptions: 2 for usage or invalid input, 3 for infrastructure. 0 means success, 1 a
// run with failed points.
int ExitCode(ErrorKind kind);

class Error : public std::exception {
 public:
  // `message` says what was wrong and where; `hint` says what to do about it, and may be empty.
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
