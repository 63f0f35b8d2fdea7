// Which of a library's algorithms was the fastest for a piece of work, kept in a file from one process to the next. A
// choice is valid for the machine on which it was made: a device, its driver, a version of the library. The file may
// have come from anywhere: a damaged one is neither used nor overwritten.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ridgeline::engine {

// The algorithms' bytes, by machine and work.
using KeptAlgorithms = std::map<std::string, std::string>;

// The file's text, with a checksum over itself. Decoding throws Error(kInvalidInput), naming `source`, if the text is
// damaged or of another version.
std::string EncodeAlgorithms(const KeptAlgorithms& algorithms);
KeptAlgorithms DecodeAlgorithms(std::string_view text, const std::string& source);

class AlgorithmFile {
 public:
  enum class Use {
    kMeasure,   // missing choices are measured and kept
    kTakeOnly,  // missing choices behave as without the file, and nothing is written
  };
  static constexpr size_t kMostBytes = size_t{4} << 20;  // some ten thousand choices

  // Reads the file if it exists. `machine`: what else a choice is valid for, in words. `note` may be empty; it is told
  // why the file is not used or not written, which is no error.
  AlgorithmFile(std::filesystem::path path, std::string machine, Use use,
                std::function<void(const std::string&)> note = {});

  const std::filesystem::path& path() const { return path_; }
  bool measures() const { return use_ == Use::kMeasure; }
  // Returns a digest of all choices that can be found here now: the same for processes that would find the same.
  int64_t Digest() const;

  std::optional<std::string> Find(const std::string& work) const;
  void Keep(const std::string& work, std::string algorithm);
  // The names of ops that libraries have done in calls of other ops since the file was opened, for reports.
  void Took(const std::string& op) { taken_.insert(op); }
  const std::set<std::string>& taken() const { return taken_; }
  // Writes the choices kept since the last time, and keeps those that others have written meanwhile. A reader finds the
  // old file or the new one. If two write at once, the last one's stays. A file that would exceed kMostBytes is started
  // again.
  void Save();

 private:
  KeptAlgorithms Read();
  std::string KeyOf(const std::string& work) const { return machine_ + ": " + work; }
  void Note(const std::string& problem) const;

  const std::filesystem::path path_;
  const std::string machine_;
  const Use use_;
  const std::function<void(const std::string&)> note_;
  bool refused_ = false;  // the existing file is not ours to overwrite
  KeptAlgorithms kept_;
  KeptAlgorithms unsaved_;
  std::set<std::string> taken_;
};

}  // namespace ridgeline::engine
