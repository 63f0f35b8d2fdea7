// The price of a sweep before it runs, from measurements and from the step model, with figures that can be computed by
// hand.
#include "plan/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "plan/forecast.h"
#include "plan/largest.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "tests/plan/texts.h"

namespace ridgeline::plan {
namespace {
namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using enum PointPrice::Basis;

predict::Device DeviceOfCatalogue(const std::string& name) {
  return predict::FindDevice(name, {fs::path(RIDGELINE_SOURCE_DIR) / "devices"});
}

struct Priced {
  sweep::Sweep sweep;
  std::vector<Point> points;
  Plan plan;
  PriceParts parts;
  std::vector<PointPrice> prices;

  std::string Summary() const { return PriceSummary(sweep, prices, parts); }
};

Priced Price(const std::string& text, PriceParts parts = {}, int64_t slab_bytes = 0) {
  Priced priced{ParseText(text), {}, {}, std::move(parts), {}};
  priced.points = sweep::Expand(priced.sweep);
  PlanOptions options;
  options.jobs_dir = "/jobs";
  if (slab_bytes > 0) options.node = NodeWith(slab_bytes);
  const auto forecast = [](const RunSpec& spec) { return predict::MemoryForecast{spec.batch_size * kMegabyte, {}}; };
  priced.plan = MakePlan(priced.sweep, priced.points, options, forecast);
  size_t told = 0;
  priced.prices = PricePoints(priced.sweep, priced.points, priced.plan, priced.parts,
                              [&](size_t done, size_t) { EXPECT_EQ(done, ++told); });
  EXPECT_EQ(told, priced.points.size());
  return priced;
}

// Twenty points with batch size 1 that took ten seconds each.
PriceParts Measured(const std::string& more = {}) {
  const RunSpec spec = sweep::Expand(ParseText("defaults: {model: llama-10m, batch_size: 1" + more + "}"))[0].spec;
  PriceParts parts;
  for (int i = 0; i < 20; ++i) parts.times.Took(spec, 10);
  return parts;
}

constexpr const char* kTwo = "defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 4]}\n";

TEST(PricePoints, UnmeasuredPointsHaveNoPrice) {
  const Priced priced = Price(kTwo);
  EXPECT_EQ(priced.prices[0].basis, kUnknown);
  EXPECT_THAT(priced.Summary(), IsEmpty());
  Table table = PlanTable(priced.sweep, priced.points, priced.plan, Audience::kPrograms);
  const size_t columns = table.columns.size();
  AddPrices(priced.prices, Audience::kPrograms, table);
  EXPECT_EQ(table.columns.size(), columns) << "no column has a value";
}

TEST(PricePoints, MeasurementsScaleWithTheCost) {
  const Priced priced = Price(
      std::string(kTwo) + "measure: {repeats: 3}\nprice: {node: 36 USD/h, date: 2026-03, power: 720 W}\n", Measured());
  EXPECT_EQ(priced.prices[0].basis, kMeasurements);
  EXPECT_DOUBLE_EQ(priced.prices[0].seconds, 30) << "three repeats";
  EXPECT_DOUBLE_EQ(priced.prices[1].seconds, 120) << "of four times the tokens";
  EXPECT_DOUBLE_EQ(priced.prices[1].interval->low_s, 120) << "all of twenty took the same";
  EXPECT_EQ(priced.Summary(),
            "to run 2 points takes 2 min 30 s (2 min 30 s … 2 min 30 s) one after another, 0.0417 node-hours, at most "
            "0.03 kWh, 1.50 USD (1.50 … 1.50) at 36.00 USD an hour and node (2026-03, as the sweep says); from "
            "measurements");
}

TEST(PricePoints, FewMeasurementsGiveAWideInterval) {
  PriceParts parts;
  parts.times.Took(sweep::Expand(ParseText("defaults: {model: llama-10m}"))[0].spec, 10);
  const Priced priced = Price("defaults: {model: llama-10m}", parts);
  EXPECT_DOUBLE_EQ(priced.prices[0].interval->low_s, 5);
  EXPECT_DOUBLE_EQ(priced.prices[0].interval->high_s, 20);
}

TEST(PricePoints, TimesOnAProcessorSayNothingAboutAGpu) {
  EXPECT_EQ(Price("defaults: {model: llama-10m, device: cuda, gpu: h100}", Measured()).prices[0].basis, kUnknown);
  const Priced on_gpu =
      Price("defaults: {model: llama-10m, device: cuda, gpu: h100}", Measured(", device: cuda, gpu: h100"));
  EXPECT_EQ(on_gpu.prices[0].basis, kMeasurements);
}

TEST(PricePoints, ATimeLimitIsTheMostThatAPointTakes) {
  const Priced priced = Price(std::string(kTwo) + "launch: {time_limit: 25s}", Measured());
  EXPECT_DOUBLE_EQ(priced.prices[0].seconds, 10);
  EXPECT_DOUBLE_EQ(priced.prices[1].seconds, 25);
}

TEST(PricePoints, SumsLeaveOutFinishedPointsAndThoseThatCannotFit) {
  PriceParts parts = Measured();
  const Priced all = Price(kTwo, parts, 2 * kMegabyte);
  EXPECT_TRUE(all.prices[0].runs);
  EXPECT_FALSE(all.prices[1].runs) << "4 MB";
  EXPECT_THAT(all.Summary(), HasSubstr("to run 1 point takes 10 s"));
  parts.finished.insert(all.points[0].id);
  EXPECT_THAT(Price(kTwo, parts, 2 * kMegabyte).Summary(), IsEmpty()) << "nothing is left to run";
}

TEST(PricePoints, OnADeviceTheClockSaysIt) {
  PriceParts parts = Measured();
  parts.device = DeviceOfCatalogue("p5");
  const Priced priced = Price("defaults: {model: llama-1b, ranks: 16, shard: full}\nmeasure: {repeats: 2}\n", parts);
  const PointPrice& price = priced.prices[0];
  EXPECT_EQ(price.basis, kExtrapolated) << "what a processor took counts for nothing there";
  EXPECT_EQ(price.nodes, 2) << "machines of eight";
  EXPECT_DOUBLE_EQ(price.usd_per_hour, 2 * 55.04);
  EXPECT_DOUBLE_EQ(price.watts, 16 * 700.0);
  const PointForecast forecast = ForecastPoints(priced.sweep, priced.points, *parts.device, predict::Frameworks())[0];
  const RunCost cost = CostOfRuns(priced.points[0].spec, forecast.step.step_ns, forecast.step.cold_ns(), *parts.device);
  EXPECT_NEAR(price.seconds, cost.seconds, 1e-9) << "as `ridgeline predict` has it";
  EXPECT_NEAR(price.seconds * price.usd_per_hour / 3600, cost.dollars, 1e-9);
  ASSERT_TRUE(price.interval);
  EXPECT_LT(price.interval->low_s, price.seconds - 2 * 2.1)
      << "nobody knows what starting and the first iteration take";
  EXPECT_GT(price.interval->high_s, price.seconds + 2 * 2.1);
  EXPECT_THAT(priced.Summary(),
              AllOf(HasSubstr("USD an hour and node (p5, 20"), HasSubstr("; predicted, extrapolated")));
}

TEST(PricePoints, OnADeviceItsOwnMeasurementsCountBeforeTheClock) {
  PriceParts parts = Measured(", device: cuda, gpu: h100");
  parts.device = DeviceOfCatalogue("p5");
  EXPECT_EQ(Price("defaults: {model: llama-10m, device: cuda, gpu: h100}", parts).prices[0].basis, kMeasurements);
  EXPECT_EQ(Price("defaults: {model: llama-10m}", parts).prices[0].basis, kExtrapolated);
}

TEST(PricePoints, NodesThatTheLaunchAsksForAreCounted) {
  PriceParts parts;
  parts.device = DeviceOfCatalogue("p5");
  const Priced priced =
      Price("defaults: {model: llama-10m, ranks: 16}\nlaunch: {launcher: slurm, ranks_per_node: 4}", parts);
  EXPECT_EQ(priced.prices[0].nodes, 4);
}

TEST(AddPrices, EachRowHasItsPrice) {
  const Priced priced = Price(std::string(kTwo) + "price: {node: 36 USD/h, date: 2026-03}\n", Measured());
  Table table = PlanTable(priced.sweep, priced.points, priced.plan, Audience::kPrograms);
  AddPrices(priced.prices, Audience::kPrograms, table);
  EXPECT_THAT(table.columns, AllOf(Contains("run_low_s"), Contains("usd"), Contains("price_basis")));
  EXPECT_THAT(table.columns, Not(Contains("kilowatt_hours"))) << "no power is known";
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  const Json rows = ParseJson(ToJson(table), "table");
  EXPECT_EQ(rows.at(1).at("price_basis"), "from measurements");
  EXPECT_NEAR(rows.at(1).at("usd").get<double>(), 0.4, 1e-9);
}

// A sum without one of its intervals has none.
TEST(PricePoints, AnIntervalThatNobodyKnowsIsSaidToBeUnknown) {
  PriceParts parts;
  parts.device = DeviceOfCatalogue("p6-b200");
  const Priced priced = Price("defaults: {model: llama-1b, ranks: 8}\nmatrix: {precision: [bf16, nvfp4]}\n", parts);
  EXPECT_TRUE(priced.prices[0].interval);
  EXPECT_FALSE(priced.prices[1].interval);
  EXPECT_THAT(priced.Summary(), AllOf(HasSubstr("(interval unknown)"), HasSubstr(predict::kNoInterval)));
  Table table = PlanTable(priced.sweep, priced.points, priced.plan, Audience::kPrograms);
  AddPrices(priced.prices, Audience::kPrograms, table);
  const Json rows = ParseJson(ToJson(table), "table");
  EXPECT_TRUE(rows.at(0).at("usd_low").is_number());
  for (const char* column : {"run_low_s", "run_high_s", "usd_low", "usd_high"}) {
    EXPECT_TRUE(rows.at(1).at(column).is_null()) << column;
  }
  table = PlanTable(priced.sweep, priced.points, priced.plan, Audience::kPeople);
  AddPrices(priced.prices, Audience::kPeople, table);
  EXPECT_EQ(ParseJson(ToJson(table), "table").at(1).at("90%_interval"), "unknown");
}

TEST(AssumedTimes, CountUntilOnePointIsMeasured) {
  const sweep::Sweep sweep = ParseText("defaults: {model: llama-1b}\nmatrix: {batch_size: [1, 2]}\n");
  const std::vector<Point> points = sweep::Expand(sweep);
  predict::TimeModel times = AssumedTimes(sweep, points, DeviceOfCatalogue("h100"));
  EXPECT_GT(times.Seconds(predict::RelativeCost(points[0].spec)), 0);
  EXPECT_FALSE(times.measured());
  times.Took(predict::RelativeCost(points[0].spec), 1234);
  EXPECT_DOUBLE_EQ(times.Seconds(predict::RelativeCost(points[0].spec)), 1234);
}

TEST(AutoTimeLimit, FollowsFromWhatPointsTake) {
  predict::TimeModel times;
  EXPECT_EQ(AutoTimeLimitS(times, 1), 0) << "nothing is known";
  for (int i = 0; i < 20; ++i) times.Took(1, 100);
  EXPECT_EQ(AutoTimeLimitS(times, 1), 600) << "never less";
  EXPECT_EQ(AutoTimeLimitS(times, 10), 2100) << "twice 1000 s, in steps of 300";
}

TEST(AutoTimeLimit, IsEachPointsOwnInAPlan) {
  const sweep::Sweep sweep = ParseText(std::string(kTwo) + "launch: {time_limit: auto}");
  const std::vector<Point> points = sweep::Expand(sweep);
  PlanOptions options;
  options.jobs_dir = "/jobs";
  const auto forecast = [](const RunSpec&) { return predict::MemoryForecast{kMegabyte, {}}; };
  for (int i = 0; i < 20; ++i) options.times.Took(predict::RelativeCost(points[0].spec), 400);
  const Plan plan = MakePlan(sweep, points, options, forecast);
  EXPECT_EQ(plan.jobs.at(0).points.at(0).time_limit_s, 900);
  EXPECT_EQ(plan.jobs.at(1).points.at(0).time_limit_s, 3300) << "four times as long, in steps of 300";
  options.times = {};
  try {
    MakePlan(sweep, points, options, forecast);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(), HasSubstr("s.yaml:4:9: time_limit is auto, but the time of a point is not known"));
  }
}

TEST(Predictions, AreResultsOfTheDevicesGpu) {
  const sweep::Sweep sweep = ParseText(R"(
defaults: {model: llama-1b, shard: full, ranks: 16}
matrix: {batch_size: [1, 512]}
published:
  - {source: "a page", when: {batch_size: 1}, cold_tokens_per_s: 1000, peak_memory: 20GB}
)");
  const std::vector<Point> points = sweep::Expand(sweep);
  const predict::Device device = DeviceOfCatalogue("p5");
  const predict::Frameworks frameworks;
  const auto forecasts = ForecastPoints(sweep, points, device, frameworks);
  const Predictions predictions = PredictionsOf(points, forecasts, device, 7).at(0);
  ASSERT_EQ(predictions.results.size(), 2U);
  EXPECT_EQ(predictions.points[0].spec.gpu, "h100");
  EXPECT_EQ(predictions.points[0].spec.communicator, "nccl");
  EXPECT_EQ(predictions.results[0].point_id, predictions.points[0].id);
  EXPECT_NE(predictions.points[0].id, points[0].id);
  EXPECT_EQ(predictions.results[0].provenance, Provenance::kPredicted);
  EXPECT_EQ(predictions.results[0].step_ns.median_ns, std::llround(forecasts[0].step.step_ns));
  EXPECT_EQ(predictions.results[0].evidence.at("exposed_ns"),
            std::to_string(std::llround(forecasts[0].step.exposed_ns)));
  double ops_ns = 0;
  const Json ops = ParseJson(predictions.results[0].evidence.at("op_ns"), "op_ns");
  for (const auto& [op, ns] : ops.items()) ops_ns += ns.get<double>();
  EXPECT_NEAR(ops_ns, forecasts[0].step.step_ns, 0.01 * forecasts[0].step.step_ns) << "a step is its ops";
  EXPECT_EQ(predictions.results[1].status, RunStatus::kSkippedPredictedOom) << "batch 512";
  EXPECT_THAT(predictions.predicted_as.setup, HasSubstr(R"("predicted_on":"p5")"));
  const Predictions published = PublishedOf(sweep, points, device, "ridgeline", 7);
  ASSERT_EQ(published.results.size(), 1U);
  EXPECT_EQ(published.points[0].id, predictions.points[0].id);
  EXPECT_EQ(published.results[0].provenance, Provenance::kPublished);
  EXPECT_EQ(published.results[0].memory.device_peak_bytes, 20'000'000'000);
  EXPECT_EQ(published.results[0].throughput.steady_tokens_per_s, 0);
  EXPECT_NE(published.predicted_as.setup, predictions.predicted_as.setup) << "each is shown";
}

// Two cores, with two gigabytes for everything that runs on them.
predict::Device Processors() {
  return predict::ParseDevice(R"(name: here
about: two cores
gpu: none
sources: {me: measured}
peaks: {fp32: {value: 100 GFLOP/s, source: me}, bf16: {value: 200 GFLOP/s, source: me}}
memory: {size: {value: 2 GB, source: me}, bandwidth: {value: 20 GB/s, source: me}}
chip: {multiprocessors: {value: 2, source: me}, launch: {value: 1 us, source: me}}
link: {bandwidth: {value: 4 GB/s, source: me}, latency: {value: 20 us, source: me}, gpus: {value: 4, source: me}}
)",
                              "here.yaml", {});
}

TEST(Predictions, OnProcessorsAreOfThePointsThemselves) {
  const sweep::Sweep sweep =
      ParseText("defaults: {model: llama-10m}\nmatrix: {ranks: [1, 4], batch_size: [1, 4096]}\n");
  const std::vector<Point> points = sweep::Expand(sweep);
  const predict::Device device = Processors();
  const predict::Frameworks frameworks;
  const auto forecasts = ForecastPoints(sweep, points, device, frameworks);
  const Predictions predictions = PredictionsOf(points, forecasts, device, 7).at(0);
  ASSERT_EQ(predictions.results.size(), 4U);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(predictions.points[i].id, points[i].id) << "so that what was measured of it stands beside it";
    EXPECT_EQ(predictions.points[i].spec.device, "cpu");
  }
  EXPECT_EQ(predictions.results[0].status, RunStatus::kOk);
  EXPECT_EQ(predictions.results[3].status, RunStatus::kSkippedPredictedOom);
  EXPECT_EQ(predictions.results[3].evidence.at("available_bytes"),
            std::to_string(500'000'000 - predict::kProcessBaseBytes))
      << "four ranks share it, and each is a process";
}

TEST(Processors, AreOneMachineWhoseMemoryTheRanksShare) {
  const predict::Device device = Processors();
  const predict::Frameworks frameworks;
  const BatchesThatFit largest({.device = std::make_shared<const predict::Device>(device)},
                               ForecasterOn(device, *frameworks.Of("ridgeline")));
  const sweep::Sweep sweep = ParseText("defaults: {model: llama-10m}\nmatrix: {ranks: [1, 4]}\n");
  std::vector<int64_t> batches;
  for (const Point& point : sweep::Expand(sweep)) {
    EXPECT_EQ(NodesOf(point.spec, sweep::LaunchOf(sweep, point), &device), 1);
    batches.push_back(largest.Of(sweep, point, {}).at(0));
    const std::string fields =
        fmt::format("defaults: {{model: llama-10m, ranks: {}}}\nmatrix: {{batch_size: [{}, {}]}}\n", point.spec.ranks,
                    batches.back(), batches.back() + 1);
    const sweep::Sweep around = ParseText(fields);
    const auto forecasts = ForecastPoints(around, sweep::Expand(around), device, frameworks);
    EXPECT_EQ(forecasts.at(0).verdict, Verdict::kFits) << point.spec.ranks;
    EXPECT_EQ(forecasts.at(1).verdict, Verdict::kOutOfMemory) << point.spec.ranks;
  }
  EXPECT_LT(batches.at(1), batches.at(0));
}

}  // namespace
}  // namespace ridgeline::plan
