// What a launcher must know after whatever end: a folder of entries, a file each, so that whoever is killed when, the
// next one knows what was begun.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::plugin {

// Files carry a version and a checksum; one without was written before there were any and is of version 1. What is
// damaged, or of a newer version, is refused and left as it is: `remedy` says what becomes of the jobs in it. All but
// Names throw Failure.
class JournalFolder {
 public:
  JournalFolder(std::filesystem::path dir, std::string remedy);

  const std::filesystem::path& dir() const { return dir_; }
  std::vector<std::string> Names() const;

  // By `decode`, from JSON, which may throw what JSON throws. Nothing where there is no such entry.
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

  // On the disk when it returns; where it throws, the entry is as it was.
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
