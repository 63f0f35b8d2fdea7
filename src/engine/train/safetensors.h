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

namespace ridgeline {

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;           // "F32", "BF16", "F16", "I32", "I64", "U8"
    std::vector<int64_t> shape;  // row-major
    int64_t begin = 0;           // bytes, into the data
    int64_t end = 0;
    int64_t elements() const;
  };

  // Reads the header; a tensor is read when it is asked for. Throws Error(kInvalidInput) naming the file and what is
  // wrong with it (a header that is not JSON, a tensor outside the file or of the wrong length), Error(kInfrastructure)
  // where it cannot be read.
  explicit SafetensorsFile(const std::filesystem::path& path, ForeignFile::Links links = ForeignFile::Links::kRefused);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }

  // The tensor's elements, converted. Throws Error(kInvalidInput) where it is missing or of another dtype.
  std::vector<float> Floats(const std::string& name) const;  // F32, BF16, F16
  // Those from element `first` on, without the others.
  void ReadFloats(const std::string& name, int64_t first, std::span<float> to) const;
  std::vector<int32_t> Integers(const std::string& name) const;  // I32, I64
  const Entry& Find(const std::string& name) const;

  // Bytes of a tensor as they are stored, from its byte `first` on.
  void ReadBytes(const Entry& entry, int64_t first, std::span<std::byte> to) const;

 private:
  std::vector<char> AllBytes(const Entry& entry) const;

  std::string source_;
  FileReader file_;
  int64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

// Writes a file whose tensors are known beforehand and come in parts, so that none has to be in memory whole.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t bytes = 0;
  };

  // Writes the header. Throws Error(kInfrastructure) where the file is there already or cannot be written, as do the
  // others.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const Tensor> tensors);

  // The next bytes of the data: the tensors one after another, in the order given.
  void Append(std::span<const std::byte> bytes);

  // Everything is on the disk. `tensors` must have been appended whole.
  void Finish();

  int64_t bytes() const { return bytes_; }           // of the file so far
  Hash128 hash() const { return hasher_.Result(); }  // of them

 private:
  void Put(std::string_view bytes);

  FileWriter file_;
  Hasher hasher_;
  int64_t bytes_ = 0;
};

}  // namespace ridgeline
