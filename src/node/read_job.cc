#include "node/read_job.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/json.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/limits.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

// Ids become file names.
void CheckId(const std::string& id, const fs::path& job_file) {
  const bool safe = !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  if (!safe) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: '{}' cannot be a point's id (letters, digits, - and _)", job_file.string(), id));
  }
}

// The transport of a job file may limit the size of one file. Names that begin with a dot are not parts: Kubernetes
// keeps what it mounts there.
std::string ReadParts(const fs::path& path) {
  std::vector<fs::path> parts;
  if (fs::is_directory(path)) {
    ForEachEntry(path, [&](const fs::directory_entry& entry) {
      if (!entry.path().filename().string().starts_with('.')) parts.push_back(entry.path());
    });
  } else {
    parts.push_back(path);
  }
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const fs::path& part : parts) {
    ForeignFile file(part, ForeignFile::Links::kFollowed);  // because Kubernetes mounts parts as links
    const std::optional<std::string> bytes = file.Read(kMaxJobFileBytes - text.size());
    if (!bytes) ThrowUnread(file);
    text += *bytes;
  }
  return text;
}

}  // namespace

Job ReadJob(const fs::path& job_file, const fs::path& job_dir) {
  Job job = DecodeJob(ParseJson(ReadParts(job_file), job_file.string()), job_file.string());
  if (job.trainer.empty() && job.definition.empty()) job.trainer = {(ProgramDir() / "ridgeline-train").string()};
  if (!job_dir.empty()) MoveJob(job, job_dir);
  for (const JobPoint& point : job.points) CheckId(point.id, job_file);
  return job;
}

}  // namespace ridgeline::node
