// Measured calls of a device: what is derived from them, their form in a file, and steps priced by them.
#include "predict/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/step/budget.h"
#include "engine/step/call_shape.h"
#include "engine/step/program.h"
#include "predict/calibration.h"
#include "predict/device.h"
#include "predict/step_model.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::predict {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

RunSpec PointOf(const std::string& fields) {
  return sweep::Expand(sweep::ParseSweep("name: test\ndefaults: {" + fields + "}", "s.yaml"))[0].spec;
}

// The time of a call on a made-up machine: a start-up time, and a rate that is lower for short sums and narrow rows.
double LawNs(bool product, const CallDims& dims) {
  const auto [a, b, c] =
      std::array{static_cast<double>(dims[0]), static_cast<double>(dims[1]), static_cast<double>(dims[2])};
  if (product) return 3000 + a * b * c / 40 * (1 + 64 / c) * (1 + 16 / a);
  return 800 + a / 12 * (b > 0 ? 1 + 20 / b : 1);
}

TEST(CallModel, GoesBetweenWhatWasMeasured) {
  std::vector<MeasuredCall> calls;
  for (const int64_t m : {64, 256, 512}) {
    for (const int64_t n : {64, 192, 1024}) {
      for (const int64_t k : {64, 256, 768}) calls.push_back({{m, n, k}, LawNs(true, {m, n, k})});
    }
  }
  const CallModel model("gemm nn fp32", calls);
  EXPECT_EQ(model.dims(), 3U);
  for (const MeasuredCall& call : calls) {
    EXPECT_NEAR(model.At(call.dims).ns / call.ns, 1, 0.1) << "a part of it counts as noise";
    EXPECT_EQ(model.At(call.dims).beyond, 0);
  }
  for (const CallDims& between : {CallDims{128, 128, 128}, CallDims{96, 700, 500}, CallDims{400, 80, 300}}) {
    EXPECT_NEAR(model.At(between).ns / LawNs(true, between), 1, 0.08);
    EXPECT_EQ(model.At(between).beyond, 0);
  }
  const CallModel::Time far = model.At({512, 1024, 768 * 8});
  EXPECT_NEAR(far.beyond, std::log(8), 1e-9) << "it says how far it is from what it knows";
  EXPECT_NEAR(far.ns / LawNs(true, {512, 1024, 768 * 8}), 1, 0.3);
}

TEST(CallModel, KnowsTheRateOfASingleCall) {
  const CallModel model("gelu fp32 fp32", {{{1 << 20, 512, 0}, 100'000}});
  EXPECT_NEAR(model.At({1 << 20, 512, 0}).ns, 100'000, 1000);
  EXPECT_GT(model.At({1 << 22, 512, 0}).ns, 250'000);
}

constexpr const char* kProcessors = R"(name: here
about: two cores
gpu: none
sources: {me: measured}
peaks:
  fp32: {value: 100 GFLOP/s, source: me}
  bf16: {value: 200 GFLOP/s, source: me}
memory:
  size: {value: 16 GB, source: me}
  bandwidth: {value: 20 GB/s, source: me}
chip:
  multiprocessors: {value: 2, source: me}
  launch: {value: 1 us, source: me}
)";

std::string RefusalOf(const std::string& measured) {
  try {
    ParseDevice(kProcessors + measured, "here.yaml", {});
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "it was taken";
}

TEST(MeasuredSection, EveryFaultIsSaidAtItsLine) {
  const std::string faults = RefusalOf(
      "measured:\n  - ranks: 0\n    source: you\n    error: -0.1\n    calls:\n      \"gelu fp32 fp32\": [[64, 64, "
      "-5]]\n"
      "      \"swiglu\": [[1, 2, 3], [1, 2]]\n      \"rope\": 7\n  - {ranks: 2, speed: 3}\n");
  EXPECT_THAT(faults, HasSubstr("here.yaml:15:12: measured.ranks is a number from 1 to 1048576, not 0"));
  EXPECT_THAT(faults, HasSubstr("here.yaml:16:13: no source 'you' stands under sources"));
  EXPECT_THAT(faults, HasSubstr("here.yaml:17:12: measured.error is a number from"));
  EXPECT_THAT(faults, HasSubstr("here.yaml:19:35: nanoseconds of a call is a number from 1"));
  EXPECT_THAT(faults, HasSubstr("the calls of 'swiglu' have different numbers of dimensions"));
  EXPECT_THAT(faults, HasSubstr("'rope' has a list of 1 to 256 calls, not"));
  EXPECT_THAT(faults, HasSubstr("unknown key of measured 'speed'"));
  EXPECT_THAT(faults, HasSubstr("measured has no 'calls'"));
  const std::string one = "{ranks: 1, source: me, error: 0.1, calls: {rope: [[64, 64, 500]]}}";
  EXPECT_THAT(RefusalOf(fmt::format("measured: [{0}, {0}]\n", one)), HasSubstr("measured has 1 ranks twice"));
  EXPECT_EQ(RefusalOf("measured: " + one + "\n"), "it was taken");
}

TEST(Processors, AreDescribedWithWhatTheyHave) {
  const Device device = ParseDevice(kProcessors, "here.yaml", {});
  EXPECT_TRUE(device.is_cpu());
  const StepForecast step = PredictStep(PointOf("model: llama-5m, precision: fp32"), device);
  EXPECT_GT(step.step_ns, 0);
  EXPECT_FALSE(step.calibrated);
  EXPECT_THROW(PredictStep(PointOf("model: llama-5m, precision: fp8"), device), Error) << "no peak, and no measurement";
}

// The report that the trainer would have made on that machine.
Json ProgramByLaw(const RunSpec& spec, double step_factor) {
  const engine::StepProgram program = engine::TraceStep(spec);
  std::map<std::pair<std::string, CallDims>, Json> calls;
  double step_ns = 0;
  for (const engine::OpCall& call : program.trace.calls()) {
    const engine::CallShape shape = engine::CallShapeOf(call);
    const double ns = LawNs(engine::DimsOf(shape.of) == 3, shape.dims);
    step_ns += ns;
    Json dims = Json::array();
    for (size_t i = 0; i < engine::DimsOf(shape.of); ++i) dims.push_back(shape.dims[i]);
    calls[{engine::ClassName(shape.of), shape.dims}] = {{"class", engine::ClassName(shape.of)},
                                                        {"dims", dims},
                                                        {"format", engine::MathFormatName(call.cost.format)},
                                                        {"flops", call.cost.flops},
                                                        {"bytes", call.bytes()},
                                                        {"calls", 1},
                                                        {"ns", ns}};
  }
  Json list = Json::array();
  for (auto& [key, call] : calls) list.push_back(call);
  return {{"kind", "step"},
          {"spec", Json::parse(EncodeSpec(spec))},
          {"first_ns", 2 * step_ns},
          {"step_ns", step_factor * step_ns},
          {"steps", 9},
          {"calls", list}};
}

std::string StepByLaw(int64_t hidden, int64_t ffn, int64_t vocab, int64_t batch, int64_t seq, const char* precision) {
  return fmt::format(
      "family: llama, layers: 2, hidden: {}, heads: 4, ffn: {}, vocab: {}, batch_size: {}, seq_length: {}, precision: "
      "{}",
      hidden, ffn, vocab, batch, seq, precision);
}

Json CalibrationByLaw() {
  Json programs = Json::array();
  int turn = 0;
  for (const char* precision : {"fp32", "bf16"}) {
    for (const auto& [hidden, ffn, vocab, batch, seq] : {std::tuple{64, 192, 256, 1, 64},
                                                         {128, 512, 1024, 2, 128},
                                                         {256, 640, 512, 4, 64},
                                                         {512, 1408, 256, 1, 256},
                                                         {96, 256, 4096, 1, 512},
                                                         {384, 1024, 512, 2, 32}}) {
      const std::string fields =
          StepByLaw(hidden, ffn, vocab, batch, seq, precision) + (turn % 3 == 0 ? ", grad_accumulation: 3" : "");
      programs.push_back(ProgramByLaw(PointOf(fields), turn++ % 2 == 0 ? 1.02 : 1.08));
    }
  }
  const Json copy = {{"class", "dropout_add kept"},
                     {"dims", {200'000'000, 4096}},
                     {"format", "fp32"},
                     {"flops", 0},
                     {"bytes", 200'000'000},
                     {"calls", 1},
                     {"ns", 1e7}};
  programs.push_back({{"kind", "copy"}, {"first_ns", 1}, {"step_ns", 1e7}, {"calls", {copy}}});
  Json launch = copy;
  launch["ns"] = 500;
  programs.push_back({{"kind", "launch"}, {"first_ns", 1}, {"step_ns", 1e5}, {"calls", {launch}}});
  return {{"version", 1},    {"device", "a \"processor\": 2 cores"},
          {"kind", "cpu"},   {"gpu", "none"},
          {"ranks", 1},      {"threads", 2},
          {"seconds", 3},    {"memory_bytes", int64_t{16} << 30},
          {"left_out", 0},   {"trainer", "0.1.0"},
          {"commit", "abc"}, {"programs", programs}};
}

TEST(Calibration, MakesAnEntryThatPredictsOtherSteps) {
  const CalibrationRun run = DecodeCalibration(CalibrationByLaw(), "test");
  const CalibratedDevice made = MakeDevice({.name = "here", .about = run.device, .date = "2026-11-26"}, {run}, {});
  EXPECT_THAT(made.text, HasSubstr("measured on 2026-11-26 (0.1.0, commit abc)"));
  ASSERT_EQ(made.checks.size(), 1U);
  EXPECT_GE(made.checks[0].programs, 6);
  EXPECT_LT(made.checks[0].mean_error, 0.15) << "from few others";
  const Device device = ParseDevice(made.text, "here.yaml", {});
  EXPECT_EQ(device.about, "a \"processor\": 2 cores");
  EXPECT_DOUBLE_EQ(device.At("memory.bandwidth"), 20e9);
  EXPECT_DOUBLE_EQ(device.At("chip.launch"), 0.5e-6);
  EXPECT_GT(device.At("peaks.fp32"), 10e9);
  ASSERT_EQ(device.measured.size(), 1U);
  EXPECT_NEAR(device.measured[0]->bias, 1.05, 0.03) << "what steps take beside their calls";
  for (const char* precision : {"fp32", "bf16"}) {
    for (const char* more : {"", ", checkpointing: full", ", grad_accumulation: 5"}) {
      const RunSpec spec = PointOf(StepByLaw(192, 448, 700, 2, 96, precision) + more);
      const double by_law = 1.05 * ProgramByLaw(spec, 1)["step_ns"].get<double>();
      const StepForecast step = PredictStep(spec, device);
      EXPECT_NEAR(step.step_ns / by_law, 1, 0.08) << precision << more;
      EXPECT_NEAR((step.compute_ns + step.memory_ns + step.exposed_ns + step.launch_ns) / step.step_ns, 1, 1e-9);
      EXPECT_TRUE(step.calibrated);
      ASSERT_TRUE(step.interval());
      EXPECT_LT(step.interval()->low_ns, by_law);
      EXPECT_GT(step.interval()->high_ns, by_law);
    }
  }
  const StepForecast large = PredictStep(PointOf("model: llama-1b, precision: bf16"), device);
  EXPECT_FALSE(large.calibrated) << "far beyond what was measured";
  EXPECT_GT(large.extrapolated, 0.5);
  ASSERT_TRUE(large.spread);
  EXPECT_GT(*large.spread * *large.spread, 2);
  const StepForecast other = PredictStep(PointOf(StepByLaw(192, 448, 700, 2, 96, "bf16") + ", dropout: 0.1"), device);
  EXPECT_GT(other.extrapolated, 0) << "dropout was not measured";
}

TEST(Calibration, TakesLongerForRanksThatShareCores) {
  const CalibrationRun run = DecodeCalibration(CalibrationByLaw(), "test");
  const CalibratedDevice made = MakeDevice({.name = "here", .about = "a", .date = "d"}, {run}, {});
  const std::string link =
      "link:\n  bandwidth: {value: 1 GB/s, source: measured}\n  latency: {value: 1 us, source: "
      "measured}\n  gpus: {value: 2, source: measured}\n";
  const Device device = ParseDevice(made.text + link, "here.yaml", {});
  const std::string fields = StepByLaw(192, 448, 700, 2, 96, "bf16");
  const StepForecast alone = PredictStep(PointOf(fields), device);
  const StepForecast shared = PredictStep(PointOf(fields + ", ranks: 2"), device);
  EXPECT_GT(shared.step_ns, 2 * alone.step_ns) << "each has half of the cores, and they speak";
  EXPECT_FALSE(shared.calibrated) << "two ranks were not measured";
}

TEST(Calibration, RefusesAMachineThatWasBusy) {
  Json document = CalibrationByLaw();
  for (Json& program : document["programs"]) program["step_ns"] = 20 * program["step_ns"].get<double>();
  try {
    MakeDevice({.name = "here", .about = "a", .date = "d"}, {DecodeCalibration(document, "test")}, {});
    ADD_FAILURE() << "it was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr("times as long as their calls, which only a busy machine explains"));
  }
}

TEST(Calibration, RefusesADocumentThatIsNoCalibration) {
  const auto refusal = [](const Json& document) {
    try {
      MakeDevice({.name = "here", .about = "a", .date = "d"}, {DecodeCalibration(document, "seen.json")}, {});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    return std::string("it was taken");
  };
  Json document = CalibrationByLaw();
  EXPECT_EQ(refusal(document), "it was taken");
  EXPECT_THAT(refusal(Json::array()), HasSubstr("seen.json: no calibration"));
  document["programs"][0]["calls"][0]["class"] = "gemm\": [[1, 1]]\nname: other";
  EXPECT_THAT(refusal(document), HasSubstr("a name that it cannot have"));
  document = CalibrationByLaw();
  document["programs"][0]["calls"][0]["ns"] = -1;
  EXPECT_THAT(refusal(document), HasSubstr("takes no time"));
  document = CalibrationByLaw();
  document["programs"].erase(document["programs"].begin() + 3, document["programs"].begin() + 12);
  EXPECT_THAT(refusal(document), HasSubstr("3 steps of 1 rank were measured, and an entry takes 6"));
  document["version"] = 2;
  EXPECT_THAT(refusal(document), HasSubstr("has a version that is not known here"));
}

}  // namespace
}  // namespace ridgeline::predict
