// Tells the program that started this one which error ended it.
#pragma once

#include <string>

#include "base/error.h"

namespace ridgeline::session {

// Names the file for the error. If it is set, a command that ends with an error writes that error there, as JSON with
// `message` and `hint`.
inline constexpr const char* kErrorFileVariable = "RIDGELINE_ERROR_FILE";

class ErrorFile {
 public:
  // Takes the variable out of the environment: the errors of programs that this one starts are not its own.
  ErrorFile();

  // If the file cannot be written, the exit code still says that there was an error.
  void Write(const Error& error) const noexcept;

 private:
  std::string file_;
};

}  // namespace ridgeline::session
