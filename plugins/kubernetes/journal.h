// The Jobs that this launcher has created, or was about to create: one file each. Whoever is killed at any moment, the
// next launcher knows them.
//
// state_dir/jobs/KEY.json is on the disk before the cluster hears of the Job. It gets the Job's uid once there is one,
// because a name protects nothing after the Job is gone. It gets the Job's end before the Job is deleted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job_records.h"

namespace ridgeline::kubernetes {

struct Record {
  std::string key;  // also the Job's name
  std::string hash;
  std::string kind;  // of the object that the job became
  std::string uid;   // empty: it is not known whether the cluster has the Job
  std::string job_dir;
  std::vector<std::string> points;
  int64_t created_unix_s = 0;  // in the server's time
  std::optional<int64_t> ttl_s =
      std::nullopt;  // ttlSecondsAfterFinished in the cluster, including its policies; nothing: not known
  bool cancelled = false;
  bool ended = false;
  std::map<std::string, std::string> evidence;  // evidence of the end
  int64_t started_unix_s = 0;
};

plugin::Json Encode(const Record& record);
Record Decode(const plugin::Json& document);

class Journal : public plugin::JobRecords<Record, Encode, Decode> {
 public:
  // Throws Failure.
  explicit Journal(const std::filesystem::path& state_dir);

  // Marks the Jobs of this state folder. Another folder has other Jobs.
  const std::string& store() const { return store_; }

 private:
  std::string store_;
};

}  // namespace ridgeline::kubernetes
