// Finds the points of a job that already have a result.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ridgeline/run.h"
#include "run/results_file.h"

namespace ridgeline::node {

// The points of a job that need not be run again: they have a complete result that is not from an interrupted run.
class Finished {
 public:
  explicit Finished(const std::filesystem::path& job_dir) : results_(job_dir) {}

  // Passes on the results that are new since the last call.
  void Look(const std::function<void(const RunResult&)>& found);
  // How the point ended; nothing if it is still to be run.
  std::optional<RunStatus> End(const std::string& point_id) const;
  // Whether the point has ended, in any way, since the first call of Look: for a node whose first node runs it, too.
  bool IsOver(const std::string& point_id) const { return over_.contains(point_id); }
  // How it finally ended, for such a node; nothing if it has not.
  std::optional<RunStatus> LastEnd(const std::string& point_id) const;

 private:
  static bool Stands(const RunResult& result, const std::string& point_id);

  ResultsReader results_;
  std::map<std::string, RunStatus> ends_;
  bool has_looked_ = false;
  std::map<std::string, RunStatus> over_;
};

}  // namespace ridgeline::node
