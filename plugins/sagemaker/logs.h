// The log of all jobs of a sweep. One question reads what all of them have said since the last.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "sagemaker/aws.h"

namespace ridgeline::sagemaker {

class SweepLog {
 public:
  // Takes a line of a job, by the job's name. Lines of one stream come in order.
  using Take = std::function<void(const std::string& job, const std::string& line)>;

  // `prefix`: of the jobs' names. `since_unix_s`: nothing of interest was said before.
  SweepLog(std::string prefix, int64_t since_unix_s);

  // Hands over the lines of exec that have come. Why the log could not be read is problem(). Throws Failure(kNotNow) if
  // the service does not answer.
  void Read(Aws& aws, const Take& take);
  // Why it could not be read the last time; empty if it was.
  const std::string& problem() const { return problem_; }
  // The last lines of a job, whoever printed them. Empty if they cannot be read.
  static std::string Tail(Aws& aws, const std::string& job, int64_t since_unix_s);

 private:
  std::string prefix_;
  int64_t since_ms_;
  std::map<std::string, int64_t> seen_;  // time of each event that may come again, by its id
  std::string problem_;
};

}  // namespace ridgeline::sagemaker
