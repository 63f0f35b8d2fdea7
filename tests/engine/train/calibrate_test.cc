// The trainer's report on the device that it runs on. No time is checked except that there is one.
#include "engine/train/calibrate.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/step/program.h"
#include "engine/train/calibration_programs.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

RunSpec CalibratedBase(const Json& more) {
  Json values = {{"model", "llama-5m"}};
  values.update(more);
  std::vector<Problem> problems;
  return BuildSpec(values, problems);
}

TEST(CalibrationPrograms, AreOfAllFamiliesAndPrecisions) {
  for (const Json& base : {Json{{"device", "cpu"}}, Json{{"device", "cuda"}, {"gpu", "h100"}}}) {
    std::set<std::string> families;
    std::set<std::string> precisions;
    std::set<std::string> points;
    for (const RunSpec& spec : CalibrationSteps(CalibratedBase(base))) {
      families.emplace(NameOf(spec.family));
      precisions.insert(fmt::format("{} {}", spec.family, spec.precision));
      points.insert(PointId(spec));
      EXPECT_GT(TraceStep(spec).trace.calls().size(), 20U);
    }
    EXPECT_EQ(families.size(), 3U);
    EXPECT_EQ(precisions.size(), 21U) << "each family in each precision";
    EXPECT_GE(points.size(), 70U) << "none twice";
  }
  std::set<std::string> shards;
  for (const RunSpec& spec : CalibrationRankSteps(CalibratedBase({{"ranks", 2}}))) {
    EXPECT_EQ(spec.ranks, 2);
    shards.emplace(NameOf(spec.shard));
  }
  EXPECT_EQ(shards.size(), 3U);
}

TEST(Calibrate, SaysWhatCallsAndStepsTook) {
  DeviceCalibrationOptions options;
  options.budget_s = 0.01;
  options.rounds = 2;
  int64_t turns = 0;
  options.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++turns);
    EXPECT_EQ(total % options.rounds, 0);
  };
  const Json seen = CalibrateDevice(CalibratedBase(Json::object()), options);
  EXPECT_EQ(seen["version"], kCalibrationVersion);
  EXPECT_EQ(seen["kind"], "cpu");
  EXPECT_EQ(seen["ranks"], 1);
  EXPECT_GT(seen["left_out"].get<int64_t>(), 0) << "some programs must be left out for lack of time";
  std::set<std::string> kinds;
  for (const Json& program : seen["programs"]) {
    const auto kind = program["kind"].get<std::string>();
    kinds.insert(kind);
    EXPECT_GT(program["step_ns"].get<int64_t>(), 0);
    EXPECT_GE(program["steps"].get<int64_t>(), 3);
    if (kind == "step") {
      EXPECT_NO_THROW(DecodeSpec(program["spec"], "seen"));
    }
    std::set<std::string> classes;
    for (const Json& call : program["calls"]) {
      EXPECT_GE(call["ns"].get<double>(), 1);
      EXPECT_TRUE(classes.insert(call["class"].get<std::string>() + call["dims"].dump()).second) << "each once";
    }
  }
  EXPECT_TRUE(kinds.contains("copy") && kinds.contains("launch") && kinds.contains("step"));
}

}  // namespace
}  // namespace ridgeline::engine
