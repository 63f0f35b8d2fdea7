// What the fuzz targets share. A target is one file, NAME.cc: the function that libFuzzer calls with bytes of its own
// making, and in two lines what may become of them. Any other exception, a word of a sanitizer, more than a gigabyte
// or too many seconds is a finding.
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

// Whether `read` takes its input. It may refuse it in no other way than in words, as somebody else's mistake.
template <typename Read>
bool Takes(Read read) {
  try {
    read();
    return true;
  } catch (const Error& e) {
    Require(e.kind() == ErrorKind::kInvalidInput, "what is wrong with an input is the input's fault");
    Require(!e.message().empty(), "a refusal says what is wrong");
    return false;
  }
}

// For what is read from files: a folder, gone when this is.
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
