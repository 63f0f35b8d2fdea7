// safetensors files: a length, a JSON header, then the tensors' bytes.
// Format: https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"

namespace ridgeline::engine {

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;           // "F32", "BF16", "F16", "I32", "I64", "U8"
    std::vector<int64_t> shape;  // row-major
    int64_t begin = 0;           // bytes, into the data
    int64_t end = 0;
    int64_t elements() const;
  };

  // Reads the header; a tensor is read when it is asked for. Throws Error(kInvalidInput), naming the file and its fault
  // (a header that is not JSON, a tensor outside the file or of the wrong length), and Error(kInfrastructure) if the
  // file cannot be read.
  explicit SafetensorsFile(const std::filesystem::path& path, ForeignFile::Links links = ForeignFile::Links::kRefused);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }

  // Returns the tensor's elements, converted. Throws Error(kInvalidInput) if it is missing or of another dtype.
  std::vector<float> Floats(const std::string& name) const;  // F32, BF16, F16
  // Reads elements from `first` on, and no others.
  void ReadFloats(const std::string& name, int64_t first, std::span<float> to) const;
  std::vector<int32_t> Integers(const std::string& name) const;  // I32, I64
  const Entry& Find(const std::string& name) const;

  // Reads bytes of a tensor as they are stored, from its byte `first` on.
  void ReadBytes(const Entry& entry, int64_t first, std::span<std::byte> to) const;

 private:
  std::vector<char> AllBytes(const Entry& entry) const;

  std::string source_;
  FileReader file_;
  int64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

// Writes a file whose tensors are known beforehand and come in parts, so that no tensor has to be in memory whole.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t bytes = 0;
  };

  // Writes the header. The constructor and the other functions throw Error(kInfrastructure) if the file exists already
  // or cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const Tensor> tensors);

  // Appends the next bytes of the data: the tensors one after another, in the given order.
  void Append(std::span<const std::byte> bytes);

  // Returns when everything is on the disk. REQUIRES: all `tensors` have been appended.
  void Finish();

  int64_t bytes() const { return bytes_; }           // of the file so far
  Hash128 hash() const { return hasher_.Result(); }  // of these bytes

 private:
  void Put(std::string_view bytes);

  FileWriter file_;
  Hasher hasher_;
  int64_t bytes_ = 0;
};

}  // namespace ridgeline::engine
