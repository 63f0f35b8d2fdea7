// Reading safetensors files: a length, a JSON header, then the tensors' bytes.
// Format: https://huggingface.co/docs/safetensors
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ridgeline {

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;           // "F32", "BF16", "I32", "I64"
    std::vector<int64_t> shape;  // row-major
    int64_t begin = 0;           // bytes, into the data
    int64_t end = 0;
    int64_t elements() const;
  };

  // Reads the whole file. Throws Error(kInvalidInput) naming the file and what is wrong with it (a header that is not
  // JSON, a tensor outside the file or of the wrong length), Error(kInfrastructure) where it cannot be read.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }

  // The tensor's elements, converted. Throws Error(kInvalidInput) where it is missing or of another dtype.
  std::vector<float> Floats(const std::string& name) const;      // F32, BF16
  std::vector<int32_t> Integers(const std::string& name) const;  // I32, I64
  const Entry& Find(const std::string& name) const;

 private:
  std::string source_;
  std::string bytes_;
  size_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace ridgeline
