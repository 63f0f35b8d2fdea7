// A store with as many jobs as a scheduler accepts.
#include <gtest/gtest.h>

#include <ctime>
#include <vector>

#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

// `status`, `cancel` and the beginning of a run ask for the live jobs.
TEST(StoreOfManyJobs, LiveJobsOfASweepTakeTimeByTheirNumberAlone) {
  const auto cpu_s = [](size_t jobs) {
    const TempDir dir;
    Store store = Store::Open(dir / "ridgeline.db", Store::Mode::kReadWrite);
    const std::vector<Point> points = samples::Points(jobs);
    store.PutSweep(samples::Sweep("s"), points);
    std::vector<JobRecord> intents;
    for (const Point& point : points) intents.push_back(samples::Job("rl-" + point.id, "s", {point}));
    store.RecordIntents(intents);
    const std::clock_t begin = std::clock();
    EXPECT_EQ(store.LiveJobs("s").size(), jobs);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double few = cpu_s(500);
  EXPECT_LT(cpu_s(4000), 24 * few + 0.01) << "eight times as many: eight times as long, and not 64 times";
}

}  // namespace
}  // namespace ridgeline::store
