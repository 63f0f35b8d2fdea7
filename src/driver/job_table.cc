#include "driver/job_table.h"

#include <algorithm>

namespace ridgeline::driver {

void JobTable::Forget(const std::vector<LiveJob*>& jobs) {
  std::set<std::string> keys;
  for (const LiveJob* job : jobs) keys.insert(job->record.key);
  std::erase_if(jobs_, [&](const LiveJob& job) { return keys.contains(job.record.key); });
}

std::vector<LiveJob*> JobTable::ToSubmit(int64_t now_ns, size_t most) {
  std::vector<LiveJob*> due;
  for (LiveJob& job : jobs_) {
    if (!job.to_submit || job.next_submit_ns > now_ns) continue;
    due.push_back(&job);
    if (due.size() == most) break;
  }
  return due;
}

std::vector<LiveJob*> JobTable::Submitted() {
  std::vector<LiveJob*> submitted;
  for (LiveJob& job : jobs_) {
    if (!job.to_submit) submitted.push_back(&job);
  }
  return submitted;
}

bool JobTable::AllSubmitted() const {
  return std::none_of(jobs_.begin(), jobs_.end(), [](const LiveJob& job) { return job.to_submit.has_value(); });
}

std::set<std::string> JobTable::PointIds() const {
  std::set<std::string> ids;
  for (const LiveJob& job : jobs_) {
    for (const store::JobRecord::Point& point : job.record.points) ids.insert(point.id);
  }
  return ids;
}

std::vector<store::JobRecord> JobTable::Records() const {
  std::vector<store::JobRecord> records;
  for (const LiveJob& job : jobs_) records.push_back(job.record);
  return records;
}

}  // namespace ridgeline::driver
