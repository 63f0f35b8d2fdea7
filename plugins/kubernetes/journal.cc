#include "kubernetes/journal.h"

#include <random>
#include <string_view>

#include <fmt/format.h>

#include "base/files.h"
#include "kubernetes/kinds.h"
#include "ridgeline/checksum.h"

namespace ridgeline::kubernetes {
namespace {

// Returns whether the text is sixteen hexadecimal digits.
bool IsStoreName(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

plugin::Json Encode(const Record& record) {
  plugin::Json document = {{"key", record.key},
                           {"hash", record.hash},
                           {"kind", record.kind},
                           {"uid", record.uid},
                           {"job_dir", record.job_dir},
                           {"points", record.points},
                           {"created_unix_s", record.created_unix_s},
                           {"cancelled", record.cancelled},
                           {"ended", record.ended},
                           {"evidence", record.evidence},
                           {"started_unix_s", record.started_unix_s}};
  if (record.ttl_s) document["ttl_s"] = *record.ttl_s;
  return document;
}

Record Decode(const plugin::Json& document) {
  Record record;
  document.at("key").get_to(record.key);
  document.at("hash").get_to(record.hash);
  document.at("kind").get_to(record.kind);
  document.at("uid").get_to(record.uid);
  document.at("job_dir").get_to(record.job_dir);
  document.at("points").get_to(record.points);
  document.at("created_unix_s").get_to(record.created_unix_s);
  document.at("cancelled").get_to(record.cancelled);
  document.at("ended").get_to(record.ended);
  document.at("evidence").get_to(record.evidence);
  document.at("started_unix_s").get_to(record.started_unix_s);
  if (document.contains("ttl_s")) record.ttl_s = document.at("ttl_s").get<int64_t>();
  return record;
}

Journal::Journal(const std::filesystem::path& state_dir)
    : JobRecords(state_dir / "jobs", "it is of a Job in the cluster: delete that by hand, then remove the file") {
  const std::filesystem::path file = state_dir / "store";
  if (const std::string text = ReadForeignFile(file, kMaxRecordBytes).value_or(""); !text.empty()) {
    store_ = Unsealed(text).value_or("");
    if (IsStoreName(store_)) return;
    throw plugin::Failure(plugin::Failure::Kind::kInfrastructure,
                          fmt::format("{} was changed since it was written", file.string()),
                          "it marks the Jobs of this folder: their label ridgeline.dev/store has what it held");
  }
  std::random_device random;
  store_ = fmt::format("{:08x}{:08x}", random(), random());
  WriteFileAtomic(file, SealedLine(store_));
}

}  // namespace ridgeline::kubernetes
