// The training jobs that this launcher has created, or was about to create: one file each. Whoever is killed at any
// moment, the next launcher knows them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/job_records.h"

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

plugin::Json Encode(const Record& record);
Record Decode(const plugin::Json& document);

class Journal : public plugin::JobRecords<Record, Encode, Decode> {
 public:
  // Throws Failure.
  explicit Journal(const std::filesystem::path& state_dir);
};

}  // namespace ridgeline::sagemaker
