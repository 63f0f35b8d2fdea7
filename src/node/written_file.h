// The file that a program writes its metrics into (`result: file`), told apart from one that was there before it.
#ifndef RIDGELINE_NODE_WRITTEN_FILE_H_
#define RIDGELINE_NODE_WRITTEN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace ridgeline {

class WrittenFile {
 public:
  // Of no program: it writes none.
  WrittenFile() = default;
  // Before the program starts. `directory`: that it runs in, where a relative `file` lies; empty: where we do.
  WrittenFile(const std::filesystem::path& directory, const std::filesystem::path& file);

  // What the program wrote: of a file that it added to, what it added. Nothing where it wrote none that can be read.
  std::optional<Json> Read() const;
  // Whether the file is still the one that was there before the program.
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

}  // namespace ridgeline

#endif  // RIDGELINE_NODE_WRITTEN_FILE_H_
