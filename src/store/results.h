// Writes a RunResult as a row of `results`.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ridgeline/run.h"
#include "run/measurement.h"
#include "store/sqlite.h"

namespace ridgeline::store {

// Returns {"name": "text"} as one line of JSON.
std::string DumpTexts(const std::map<std::string, std::string>& texts);

// Writes rows within the caller's transaction.
class ResultWriter {
 public:
  explicit ResultWriter(Database& database);

  // Returns false if (point, attempt) exists already. An empty `job_key` means no job. `run_again`: the result does not
  // stand, because more repeats are to come.
  bool Write(const RunResult& result, const std::string& job_key, int64_t attempt, const MeasurementKey& measured_as,
             bool run_again = false);

 private:
  const std::string& EnvironmentId(const std::map<std::string, std::string>& environment);

  Database& database_;
  Statement insert_;
  Statement insert_environment_;
  std::map<std::string, std::string> last_environment_;  // without the command
  std::string last_environment_id_;
};

}  // namespace ridgeline::store
