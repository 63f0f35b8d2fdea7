// Jobs of one point each, as the driver's loop has them: intents in a store and a table, and a launcher in this
// process. For tests of the loop's parts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/job_table.h"
#include "driver/live_job.h"
#include "driver/sweep_points.h"
#include "tests/driver/world.h"

namespace ridgeline::driver {

class JobsTest : public testing::Test {
 protected:
  explicit JobsTest(int points = 2) : world_(points) {
    store_.PutSweep({sweep_.name, "", "test.yaml", world_.yaml, 1}, points_.all());
    std::vector<store::JobRecord> intents;
    for (const Point& point : points_.all()) {
      Job job;
      job.key = "rl-" + point.id;
      job.sweep = sweep_.name;
      job.job_dir = world_.dir / job.key;
      job.points = {{point.id, point.spec, 0}};
      jobs_.Add(OpenJob(std::move(job), world_.launcher.name(), {}, {}, 1));
      intents.push_back((jobs_.end() - 1)->record);
      WriteJob(*(jobs_.end() - 1)->to_submit);
    }
    store_.RecordIntents(intents);
  }

  LiveJob& First() { return *jobs_.begin(); }
  std::string StateOf(const LiveJob& job) {
    return CellText(
        store_.Query("SELECT state FROM jobs WHERE key = :key", {{"key", job.record.key}}).rows.at(0).at(0));
  }

  World world_;
  store::Store store_ = world_.OpenStore();
  FakeClock clock_;
  DriverParts parts_{store_, world_.launcher, clock_, {}, world_.observer, [] { return 0; }};
  sweep::Sweep sweep_ = sweep::ParseSweep(world_.yaml, "test.yaml");
  SweepPoints points_{sweep_, world_.dir.path()};
  JobTable jobs_;
};

}  // namespace ridgeline::driver
