// Code that the fuzz targets share. A target is one file, NAME.cc: its first lines say what may happen for any bytes,
// and libFuzzer calls its function with bytes. Any other exception, a report of a sanitizer, more memory or more time
// than the script `fuzz` allows is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ridgeline::fuzz {

inline std::string_view TextOf(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", what);
  std::abort();
}

// Returns whether `read` accepts its input. It may refuse only with an Error that has a message and blames the input.
template <typename Read>
bool Takes(Read read) {
  try {
    read();
    return true;
  } catch (const Error& e) {
    Require(e.kind() == ErrorKind::kInvalidInput, "a refusal blames the input");
    Require(!e.message().empty(), "a refusal says what is wrong");
    return false;
  }
}

// A temporary folder for targets that read files. The destructor removes it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ridgeline-fuzz-XXXXXX").string();
    Require(::mkdtemp(name.data()) != nullptr, "a folder can be made for temporary files");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace ridgeline::fuzz
