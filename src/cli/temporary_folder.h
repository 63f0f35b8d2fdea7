// A private temporary folder that the destructor deletes.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace ridgeline::cli {

class TemporaryFolder {
 public:
  // Creates a folder whose name begins with `begin`. Throws Error(kInfrastructure).
  explicit TemporaryFolder(const std::string& begin) {
    std::string pattern = (std::filesystem::temp_directory_path() / (begin + ".XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      ThrowErrno("cannot make a folder in " + std::filesystem::temp_directory_path().string());
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ridgeline::cli
