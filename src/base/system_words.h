// Errors of the standard library in our words.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace ridgeline {

// Returns "FILE: No such file or directory". The library's own text is "filesystem error: status: … [FILE]".
inline std::string SystemErrorWords(const std::system_error& e) {
  const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&e);
  if (file != nullptr) return file->path1().string() + ": " + e.code().message();
  const bool is_thread = e.code() == std::errc::resource_unavailable_try_again;
  return (is_thread ? "cannot start a thread (is `ulimit -u` low?): " : "the system: ") + e.code().message();
}

}  // namespace ridgeline
