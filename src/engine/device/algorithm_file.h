// Which of a library's algorithms was the fastest for a piece of work, kept in a file from one process to the next. A
// choice holds for the machine that it was made on: a device, its driver, a version of the library. The file may have
// come from anywhere: what is not whole is neither taken nor written over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ridgeline {

// The algorithms' bytes, by machine and work.
using KeptAlgorithms = std::map<std::string, std::string>;

// The file's text, with a checksum over itself. Decoding throws Error(kInvalidInput) naming `source` where the text is
// not whole, or of another version.
std::string EncodeAlgorithms(const KeptAlgorithms& algorithms);
KeptAlgorithms DecodeAlgorithms(std::string_view text, const std::string& source);

class AlgorithmFile {
 public:
  enum class Use {
    kMeasure,   // what it lacks is to be measured and kept
    kTakeOnly,  // what it lacks is to be as it would be without it, and nothing is written
  };
  static constexpr size_t kMostBytes = size_t{4} << 20;  // some ten thousand choices

  // Reads it where it is there. `machine`: what else a choice holds for, in words. `note`, which may be empty, is told
  // why the file is not taken or not written: that ends nothing.
  AlgorithmFile(std::filesystem::path path, std::string machine, Use use,
                std::function<void(const std::string&)> note = {});

  const std::filesystem::path& path() const { return path_; }
  bool measures() const { return use_ == Use::kMeasure; }
  // Of all that could be found here now: the same where others would find the same.
  int64_t Digest() const;

  std::optional<std::string> Find(const std::string& work) const;
  void Keep(const std::string& work, std::string algorithm);
  // The names of ops that libraries do in other ops' calls since it was opened, for who tells of it.
  void Took(const std::string& op) { taken_.insert(op); }
  const std::set<std::string>& taken() const { return taken_; }
  // Writes what was kept since the last time, beside what others have written meanwhile. Who reads finds the old file
  // or the new one; of two who write at once the last one's is there. A file that would have more than kMostBytes is
  // begun anew.
  void Save();

 private:
  KeptAlgorithms Read();
  std::string KeyOf(const std::string& work) const { return machine_ + ": " + work; }
  void Note(const std::string& problem) const;

  const std::filesystem::path path_;
  const std::string machine_;
  const Use use_;
  const std::function<void(const std::string&)> note_;
  bool refused_ = false;  // what lies there is not ours to write over
  KeptAlgorithms kept_;
  KeptAlgorithms unsaved_;
  std::set<std::string> taken_;
};

}  // namespace ridgeline
