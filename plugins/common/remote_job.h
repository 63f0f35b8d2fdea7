// Jobs that share no folder with the machine that submits them: a pod, a container in a cloud. A launcher of such jobs
// uses this in five steps:
//
// 1. JobFileFor makes the job file for the other machine. TextParts cuts it if one object may hold only so much.
// 2. ExecThere makes the command. `ridgeline exec` writes into a folder there, and prints what happens as lines among
//    the trainer's output (ridgeline/job_line.h). It also keeps the results' headlines in a file of 4096 bytes, for
//    when the log is lost.
// 3. NewSecret makes the secret by which the ranks of several nodes know each other. It travels as a file
//    ($RIDGELINE_SECRET_FILE names it) or by whatever channel the other side has for secrets; never in a variable, an
//    argument or the job file. See also $RIDGELINE_NNODES, $RIDGELINE_NODE_RANK, $MASTER_ADDR and $MASTER_PORT.
// 4. JobOutput takes the lines of all the job's logs, in any order and any number of times, and writes them into the
//    job's folder here, as if exec had run here. The collector does the rest.
// 5. The end may be known before the last lines have come: LastOutput says how long to wait for them. Then
//    JobOutput::CompleteEnd says what is missing. A job whose machine was lost ends as `infrastructure` with the reason
//    `lost` (AddInfrastructure), and the driver starts its points again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/evidence.h"
#include "common/failure.h"
#include "ridgeline/job_line.h"

namespace ridgeline::plugin {

// Returns the job file for another machine, without what concerns only the machine that submits it. The job's folder
// becomes `job_dir`, and checkpoint files beside the job's folder here go below `work` there. The `launch:` mapping is
// removed, because no node needs it.
std::string JobFileFor(std::string_view text, const std::filesystem::path& job_dir, const std::filesystem::path& work);

// The ids of the points of a job file.
std::vector<std::string> PointsOf(std::string_view job_file_text);

// Cuts text into parts of at most `most_bytes`, between characters.
std::vector<std::string> TextParts(std::string_view text, size_t most_bytes);

// Returns 32 random bytes in hexadecimal. Throws Failure.
std::string NewSecret();

// Where things are on the other machine.
struct Elsewhere {
  std::vector<std::string> program;  // the words that start `ridgeline` there
  std::string job_file;              // or the folder of its parts
  std::string job_dir;
  std::string summary;                       // the file for the headlines; empty: none
  std::vector<std::string> lines_dirs = {};  // folders for copies of the lines that exec prints
};

// Returns whether the command of a job, as in a launcher request, reads the job file.
bool ReadsJobFile(const Json& job);

// Returns that command for the other machine.
std::vector<std::string> ExecThere(const Json& job, const Elsewhere& there);

// Writes what a job reports about its points into the job's folder.
class JobOutput {
 public:
  JobOutput(std::filesystem::path job_dir, const std::vector<std::string>& points);

  // Takes one line of a log, without its end. Skips lines about points of other jobs, and keeps the end of all other
  // lines.
  void TakeLine(const std::string& line);
  // Must be called before a log is read again from its beginning.
  void Rewind();
  // Takes the content of a summary file: headlines, for points that have nothing better.
  void TakeLastWords(const std::string& words);
  // Also copies results from the same folder on a volume that this machine sees.
  void CopyMissing(const std::filesystem::path& job_dir);

  bool HasAll() const { return have_.size() == points_.size(); }
  const std::string& log_tail() const { return log_tail_; }

  // Adds to the evidence of the job's end what its output says about it. `log_problem`: why a log could not be read to
  // its end; empty: it was. `hint`: what a person can do if results are missing.
  void CompleteEnd(const std::string& log_problem, const std::string& hint, Evidence& evidence);

  // If a log was lost, it is not known which points without a result began. All of them may have. Their folders tell
  // the collector so.
  void TakeOthersAsBegun();
  // Returns whether a trainer was started, as far as is known.
  bool AnyBegan() const;
  // The number of results that are only headlines.
  int64_t headlines() const { return headlines_; }

 private:
  void Take(const JobLine& told);
  void Keep(const std::string& point_id, const std::string& result);
  void KeepPart(const std::string& point_id, const std::string& part);

  std::filesystem::path job_dir_;
  std::set<std::string> points_;
  std::map<std::string, std::string> have_;  // hash of each point's last result
  std::set<std::string> parts_;              // hashes of the parts that nodes reported
  JobLineJoiner joiner_;
  int64_t headlines_ = 0;
  std::string log_tail_;  // the end of the other output
};

// How long to wait for the last output of a job that has ended.
class LastOutput {
 public:
  explicit LastOutput(const Clock& clock) : clock_(&clock) {}
  // Returns whether to wait. `has_come`: everything has been read. The time begins with the first call.
  bool MayCome(bool has_come);

 private:
  const Clock* clock_;
  std::optional<Clock::Time> since_;
};

}  // namespace ridgeline::plugin
