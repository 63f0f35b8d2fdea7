#include "node/written_file.h"

#include <sys/stat.h>

#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/limits.h"
#include "trainers/json_values.h"

namespace ridgeline::node {
namespace {

std::optional<std::string> ResultTextAt(const std::filesystem::path& path) {
  try {
    return ReadForeignFile(path, kMaxResultBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

WrittenFile::WrittenFile(const std::filesystem::path& directory, const std::filesystem::path& file)
    : path_(file.empty() ? file : directory / file), before_(StateOf(path_)) {
  if (before_) text_before_ = ResultTextAt(path_).value_or("");
}

std::optional<WrittenFile::State> WrittenFile::StateOf(const std::filesystem::path& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return std::nullopt;
  return State{info.st_ino, info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec, info.st_size};
}

bool WrittenFile::IsOld() const { return before_ && StateOf(path_) == before_; }

std::optional<Json> WrittenFile::Read() const {
  if (path_.empty() || IsOld()) return std::nullopt;
  const auto text = ResultTextAt(path_);
  if (!text) return std::nullopt;
  try {
    // A rewritten file may begin with the same text. A file that is appended to is longer.
    std::string_view own = *text;
    if (own.size() > text_before_.size() && own.starts_with(text_before_)) own.remove_prefix(text_before_.size());
    return trainers::ParseJsonOrLines(own, path_.string());
  } catch (const Error&) {
    return std::nullopt;  // its metrics are missing, and the result says so
  }
}

}  // namespace ridgeline::node
