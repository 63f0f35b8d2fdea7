// A launcher's journal: a folder of entries, one file each. If the launcher is killed at any moment, the next one still
// knows which jobs were begun.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::plugin {

// Removes a file, if it is there. Throws Error.
void RemoveFile(const std::filesystem::path& path);

// Files carry a version and a checksum. A damaged file, or one of another version, is refused and left as it is;
// `remedy` says what to do about its jobs. All functions but Names throw Error.
class JournalFolder {
 public:
  JournalFolder(std::filesystem::path dir, std::string remedy);

  const std::filesystem::path& dir() const { return dir_; }
  std::vector<std::string> Names() const;

  // Reads the entry with `decode`, which takes JSON and may throw JSON's exceptions. Returns nothing if there is no
  // such entry.
  template <typename Decode>
  auto Read(const std::string& name, Decode decode) const -> std::optional<decltype(decode(Json()))> {
    const std::optional<std::string> text = Text(name);
    if (!text) return std::nullopt;
    try {
      return decode(Checked(name, Json::parse(*text)));
    } catch (const Json::exception& e) {
      RefuseDamaged(name, JsonFault(e));
    }
  }

  // The entry is on the disk when it returns. If it throws, the entry is unchanged.
  void Write(const std::string& name, Json entry) const;
  void Remove(const std::string& name) const;

 private:
  std::filesystem::path FileOf(const std::string& name) const { return dir_ / (name + ".json"); }
  std::optional<std::string> Text(const std::string& name) const;
  Json Checked(const std::string& name, Json document) const;
  [[noreturn]] void RefuseDamaged(const std::string& name, std::string_view why) const;

  std::filesystem::path dir_;
  std::string remedy_;
};

}  // namespace ridgeline::plugin
