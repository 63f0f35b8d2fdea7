// The file into which a program writes its metrics (`result: file`), distinguished from one that existed before the
// program.
#ifndef RIDGELINE_NODE_WRITTEN_FILE_H_
#define RIDGELINE_NODE_WRITTEN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace ridgeline::node {

class WrittenFile {
 public:
  // For a program that writes no file.
  WrittenFile() = default;
  // Call this before the program starts. `directory`: the program's working folder, which contains a relative `file`;
  // empty: ours.
  WrittenFile(const std::filesystem::path& directory, const std::filesystem::path& file);

  // What the program wrote; if it appended to a file, only that part. Nothing if it wrote no readable file.
  std::optional<Json> Read() const;
  // Whether the file is still the one from before the program.
  bool IsOld() const;

 private:
  struct State {
    uint64_t inode = 0;
    int64_t modified_ns = 0;
    int64_t bytes = 0;
    bool operator==(const State&) const = default;
  };
  static std::optional<State> StateOf(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::optional<State> before_;
  std::string text_before_;  // at most kMaxResultBytes
};

}  // namespace ridgeline::node

#endif  // RIDGELINE_NODE_WRITTEN_FILE_H_
