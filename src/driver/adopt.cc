#include "driver/adopt.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::driver {

std::vector<LiveJob> AdoptJobs(const sweep::Sweep& sweep, const DriverParts& parts, const SweepPoints& points,
                               const Planner& planner, Tally& tally, JobTable& live) {
  std::vector<LiveJob> never_submitted;
  for (store::JobRecord& record : parts.store.LiveJobs(sweep.name)) {
    if (record.launcher != parts.launcher.name()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("job {} of an earlier run is still on the launcher {}", record.key, record.launcher),
                  fmt::format("go on with --launcher {0}, or end it with `ridgeline cancel`", record.launcher));
    }
    const std::string setup = record.measured_as.setup;
    LiveJob job = AdoptJob(std::move(record), [&](const std::string& id) -> std::optional<Job> {
      const Point* point = points.Find(id);
      // This run cannot make a job again that another setup made.
      if (point == nullptr || points.KeyOf(*point).setup != setup) return std::nullopt;
      return plan::JobFor(sweep, *point, planner.options());
    });
    for (const store::JobRecord::Point& point : job.record.points) {
      const Point* known = points.Find(point.id);
      if (known != nullptr && !point.has_result && job.record.measured_as == points.KeyOf(*known)) {
        tally.ToDo(known->spec, planner.RunsLeft(*known));
      }
    }
    const bool lost = job.record.state == store::JobRecord::State::kIntent && !job.to_submit;
    lost ? never_submitted.push_back(std::move(job)) : live.Add(std::move(job));
  }
  return never_submitted;
}

}  // namespace ridgeline::driver
