#include "node/finished.h"

#include "base/error.h"
#include "base/json.h"
#include "run/result.h"

namespace ridgeline::node {

void Finished::Look(const std::function<void(const RunResult&)>& found) {
  results_.ReadNew([&](const JobLine& line) {
    if (has_looked_) over_.insert_or_assign(line.point_id, RunStatus::kCrashed);
    try {
      const RunResult result = DecodeResult(ParseJson(line.payload, "a result"), "a result");
      if (has_looked_) over_.insert_or_assign(line.point_id, result.status);
      if (Stands(result, line.point_id) && ends_.emplace(line.point_id, result.status).second) found(result);
    } catch (const Error&) {
      // From another version, so the point is run again.
    }
    return true;
  });
  has_looked_ = true;
}

std::optional<RunStatus> Finished::End(const std::string& point_id) const {
  const auto it = ends_.find(point_id);
  return it == ends_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<RunStatus> Finished::LastEnd(const std::string& point_id) const {
  const auto it = over_.find(point_id);
  return it == over_.end() ? End(point_id) : std::optional(it->second);
}

bool Finished::Stands(const RunResult& result, const std::string& point_id) {
  return result.point_id == point_id && result.status != RunStatus::kCancelled &&
         result.status != RunStatus::kInfrastructure;
}

}  // namespace ridgeline::node
