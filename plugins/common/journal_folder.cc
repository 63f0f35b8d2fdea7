#include "common/journal_folder.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "ridgeline/limits.h"
#include "ridgeline/sealed_json.h"

namespace ridgeline::plugin {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kVersion = 1;

}  // namespace

void RemoveFile(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) ThrowErrno("cannot remove " + path.string());
}

JournalFolder::JournalFolder(fs::path dir, std::string remedy) : dir_(std::move(dir)), remedy_(std::move(remedy)) {
  MakeDirs(dir_);
}

std::vector<std::string> JournalFolder::Names() const {
  std::vector<std::string> names;
  std::error_code ec;
  fs::directory_iterator at(dir_, ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    if (at->path().extension() == ".json") names.push_back(at->path().stem().string());
  }
  if (ec) {
    throw Failure(Failure::Kind::kInfrastructure, "cannot read the folder " + dir_.string() + ": " + ec.message());
  }
  return names;
}

void JournalFolder::Write(const std::string& name, Json entry) const {
  entry["version"] = kVersion;
  WriteFileAtomic(FileOf(name), SealedText(entry));
}

void JournalFolder::Remove(const std::string& name) const { RemoveFile(FileOf(name)); }

std::optional<std::string> JournalFolder::Text(const std::string& name) const {
  ForeignFile file(FileOf(name));
  if (file.state() == ForeignFile::State::kMissing) return std::nullopt;
  std::optional<std::string> text = file.Read(kMaxRecordBytes);
  if (!text) RefuseDamaged(name, "it " + file.problem());
  return text;
}

Json JournalFolder::Checked(const std::string& name, Json document) const {
  if (const auto version = document.at("version").get<int64_t>(); version != kVersion) {
    throw Failure(Failure::Kind::kInfrastructure,
                  fmt::format("{} is of version {}, and this launcher knows version {}; it was left as it is",
                              FileOf(name).string(), version, kVersion),
                  "use the Ridgeline that wrote it, or: " + remedy_);
  }
  if (const auto problem = SealProblem(document); !problem.empty()) RefuseDamaged(name, fmt::format("it {}", problem));
  return document;
}

void JournalFolder::RefuseDamaged(const std::string& name, std::string_view why) const {
  constexpr size_t kShownBytes = 400;  // most shown bytes of the words, which quote the document
  throw Failure(Failure::Kind::kInfrastructure,
                fmt::format("{} cannot be read: {}", FileOf(name).string(), why.substr(0, kShownBytes)), remedy_);
}

}  // namespace ridgeline::plugin
