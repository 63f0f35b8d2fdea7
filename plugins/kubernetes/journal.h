// The Jobs this launcher has created, or was about to: a file each, so that whoever is killed when, the next one knows.
//
// state_dir/jobs/KEY.json is written, and on the disk, before the cluster hears of the Job; it gets the Job's uid once
// there is one (a name protects nothing after the Job is gone), and its end before the Job is deleted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/journal_folder.h"

namespace ridgeline::kubernetes {

struct Record {
  std::string key;  // and the Job's name
  std::string hash;
  std::string uid;  // empty: nobody knows whether the cluster has it
  std::string job_dir;
  std::vector<std::string> points;
  int64_t created_unix_s = 0;  // as the server has it
  std::optional<int64_t> ttl_s =
      std::nullopt;  // ttlSecondsAfterFinished as the cluster has it, policies included; nothing: unknown
  bool cancelled = false;
  bool ended = false;
  std::map<std::string, std::string> evidence;  // of the end
  int64_t started_unix_s = 0;
};

class Journal {
 public:
  // Throws Failure; so do the others.
  explicit Journal(const std::filesystem::path& state_dir);

  // Marks the Jobs of this state folder: whoever has another folder has other Jobs.
  const std::string& store() const { return store_; }

  // nullptr where there is none. What is found stays where it is.
  Record* Find(const std::string& key);
  // On the disk when it returns.
  Record& Write(Record record);
  // It is read again when it is asked for.
  void Forget(const std::string& key) { records_.erase(key); }

 private:
  plugin::JournalFolder folder_;
  std::string store_;
  std::map<std::string, Record> records_;
};

}  // namespace ridgeline::kubernetes
