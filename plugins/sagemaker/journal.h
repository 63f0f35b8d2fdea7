// The training jobs that this launcher has created, or was about to create: one file each. Whoever is killed at any
// moment, the next launcher knows them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/journal_folder.h"

namespace ridgeline::sagemaker {

struct Record {
  std::string key;
  std::string name, prefix, hash;
  std::string lines_uri, output_uri;  // as in TrainingJob
  std::string arn;                    // empty: it is not known whether SageMaker has the job
  std::string job_dir;
  std::vector<std::string> points;
  int64_t time_limit_s = 0;
  int64_t created_unix_s = 0;  // in the service's time
  bool cancelled = false;
  bool ended = false;
  std::map<std::string, std::string> evidence;  // evidence of the end
  int64_t started_unix_s = 0;
};

class Journal {
 public:
  // Throws Failure, as all functions do.
  explicit Journal(const std::filesystem::path& state_dir);

  // Returns nullptr if there is none. A found record stays at its address.
  Record* Find(const std::string& key);
  // The record is on the disk when it returns.
  Record& Write(Record record);

 private:
  plugin::JournalFolder folder_;
  std::map<std::string, Record> records_;
};

}  // namespace ridgeline::sagemaker
