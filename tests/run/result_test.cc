#include "run/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

RunResult Full() {
  RunResult r;
  r.point_id = "0123456789abcdef0123456789abcdef";
  r.status = RunStatus::kOomHost;
  r.message = "needs more";
  r.hint = "use less";
  r.evidence = {{"wanted_bytes", "12"}};
  r.provenance = Provenance::kPredicted;
  r.emulated = true;
  r.device = "a <cpu>";
  r.communicator = "virtual";
  r.parameters = 1235814400;
  r.tokens_per_step = 4096;
  r.throughput = {123.5, 99.25};
  r.step_ns = {{9, 5, 6}, 5, 6, 0.125};
  r.loss = {10.5, 9.25};
  r.grad_norm = {1.5};
  r.skipped_steps = 2;
  r.memory = {100, {{"parameters", 60}, {"logits", 40}}, 120};
  r.ranks = {{"node1", 100, 110}, {"node2", 100, 120}};
  r.flops = {1e12, 2e12, 3e12};
  r.gpu.power_w = 512.5;
  r.gpu.throttled_share = 0;
  r.gpu.clock_limits = {{"sw_power_cap", 0}};
  r.gpu.others = 0;
  r.started_unix_ns = 1;
  r.ended_unix_ns = 2;
  r.environment = {{"cpu", "x"}};
  return r;
}

std::string RefusalOfResult(const Json& document) {
  try {
    DecodeResult(document, "result.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(Result, DecodesWhatItEncodes) {
  const RunResult r = Full();
  const Json document = EncodeResult(r);
  const RunResult back = DecodeResult(ParseJson(DumpJson(document), "x"), "x");
  EXPECT_EQ(EncodeResult(back), document);
  EXPECT_EQ(back.status, RunStatus::kOomHost);
  EXPECT_EQ(back.provenance, Provenance::kPredicted);
  EXPECT_TRUE(back.emulated);
  EXPECT_EQ(back.step_ns.all_ns, r.step_ns.all_ns);
  EXPECT_EQ(back.memory.by_category, r.memory.by_category);
  EXPECT_EQ(back.throughput.cold_tokens_per_s, 99.25);
  ASSERT_EQ(back.ranks.size(), 2U);
  EXPECT_EQ(back.ranks[1].host, "node2");
  EXPECT_EQ(back.ranks[1].planned_peak_bytes, 100);
  EXPECT_EQ(back.ranks[1].rss_peak_bytes, 120);
}

TEST(Result, TheNamesOfTheContractAreThere) {
  const Json d = EncodeResult(Full());
  EXPECT_EQ(d.at("version"), 1);
  EXPECT_EQ(d.at("status"), "oom_host");
  EXPECT_EQ(d.at("throughput").at("steady_tokens_per_s"), 123.5);
  EXPECT_EQ(d.at("throughput").at("cold_tokens_per_s"), 99.25);
  EXPECT_EQ(d.at("memory").at("planned_peak_bytes"), 100);
  EXPECT_EQ(d.at("memory").at("by_category").at("logits"), 40);
  EXPECT_EQ(d.at("memory").at("rss_peak_bytes"), 120);
  EXPECT_EQ(d.at("step_ns").at("median"), 5);
  EXPECT_EQ(d.at("ranks").at(0).at("host"), "node1");
  EXPECT_EQ(d.at("provenance"), "predicted");
  EXPECT_EQ(d.at("emulated"), true);
}

// For a GPU, 0 is a measurement.
TEST(Result, HasOfAGpuOnlyWhatWasTaken) {
  const Json gpu = EncodeResult(Full()).at("gpu");
  EXPECT_EQ(
      gpu,
      (Json{{"power_w", 512.5}, {"throttled_share", 0.0}, {"clock_limits", {{"sw_power_cap", 0}}}, {"others", 0}}));
  const RunResult back = DecodeResult(EncodeResult(Full()), "x");
  EXPECT_EQ(back.gpu.throttled_share, 0.0);
  EXPECT_EQ(back.gpu.others, 0);
  EXPECT_EQ(back.gpu.ecc_uncorrected, std::nullopt);
  EXPECT_FALSE(EncodeResult(RunResult()).contains("gpu"));
}

TEST(Result, HasWhatItsTrainerNamesAndPrints) {
  RunResult result;
  result.status = RunStatus::kOk;
  result.metrics = {{"data_time", {0.25, "s"}}, {"bus_bandwidth", {310, ""}}};
  result.printed.mfu = 0.41;
  const RunResult read = DecodeResult(EncodeResult(result), "result");
  EXPECT_EQ(read.metrics.at("data_time").value, 0.25);
  EXPECT_EQ(read.metrics.at("data_time").unit, "s");
  EXPECT_EQ(read.metrics.at("bus_bandwidth").unit, "");
  EXPECT_EQ(*read.printed.mfu, 0.41);
  EXPECT_FALSE(read.printed.tflops_per_gpu.has_value());
}

TEST(Result, RefusesFiguresOfItsOwnThatAreNone) {
  const auto refusal = [](const Json& metrics) {
    try {
      DecodeResult({{"version", 1}, {"status", "ok"}, {"metrics", metrics}}, "result");
      return std::string("accepted");
    } catch (const Error& e) {
      return e.message();
    }
  };
  const Json good = {{"value", 1}, {"unit", "s"}};
  EXPECT_EQ(refusal({{"a", good}, {"b", {{"value", 2.5}}}}), "accepted");
  EXPECT_THAT(refusal({{"Data time", good}}), HasSubstr("has the name 'Data time'"));
  EXPECT_THAT(refusal({{std::string(65, 'a'), good}}), HasSubstr("at most 64"));
  EXPECT_THAT(refusal({{"a", 5}}), HasSubstr("metrics.a is not an object with a value"));
  EXPECT_THAT(refusal({{"a", {{"value", "5"}}}}), HasSubstr("metrics.a is \"5\", which is not a number"));
  EXPECT_THAT(refusal({{"a", {{"value", 1}, {"unit", "s\n"}}}}), HasSubstr("has a unit that is not printable text"));
  EXPECT_THAT(refusal({{"a", {{"value", 1}, {"unit", std::string(33, 's')}}}}), HasSubstr("at most 32 bytes"));
  Json many = Json::object();
  for (int i = 0; i < 65; ++i) many[fmt::format("m{}", i)] = good;
  EXPECT_THAT(refusal(many), HasSubstr("has 65 figures, and may have 64"));
}

TEST(Result, ALossThatIsNotFiniteTravelsAsNull) {
  RunResult r = Full();
  r.loss = {1.0, NAN, INFINITY};
  const RunResult back = DecodeResult(ParseJson(DumpJson(EncodeResult(r)), "x"), "x");
  ASSERT_EQ(back.loss.size(), 3U);
  EXPECT_EQ(back.loss[0], 1.0);
  EXPECT_TRUE(std::isnan(back.loss[1]));
  EXPECT_TRUE(std::isnan(back.loss[2]));
}

TEST(Result, AnotherTrainerMayLeaveFieldsOut) {
  const RunResult r = DecodeResult({{"version", 1}, {"status", "ok"}}, "x");
  EXPECT_EQ(r.status, RunStatus::kOk);
  EXPECT_EQ(r.memory.rss_peak_bytes, 0);
}

TEST(Result, RefusesWhatIsNoResult) {
  EXPECT_THAT(RefusalOfResult(Json::array()), HasSubstr("result.json: a RunResult is a JSON object"));
  EXPECT_THAT(RefusalOfResult(Json::object()), HasSubstr("version null"));
  EXPECT_THAT(RefusalOfResult({{"version", 9}, {"status", "ok"}}), HasSubstr("RunResult version 9"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}}), HasSubstr("status"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "great"}}), HasSubstr("unknown status 'great'"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", 3}}), HasSubstr("result.json"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"provenance", "guessed"}}), HasSubstr("guessed"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"parameters", "many"}}),
              HasSubstr("not a RunResult"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"loss", {1, "x"}}}), HasSubstr("not a RunResult"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"loss", 5}}), HasSubstr("result.json"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"evidence", {{"a", 1}}}}),
              HasSubstr("not a RunResult"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"ranks", 2}}), HasSubstr("ranks is not a list"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"ranks", {1}}}), HasSubstr("not a RunResult"));
  EXPECT_THAT(RefusalOfResult({{"version", 1}, {"status", "ok"}, {"memory", "lots"}}), HasSubstr("not a RunResult"));
}

TEST(Result, RanksHaveFiguresToo) {
  const auto ranks = [](const char* bytes) {
    return ParseJson(
        R"({"version": 1, "status": "ok", "ranks": [{"host": "a", "planned_peak_bytes": 1, "rss_peak_bytes": )" +
            std::string(bytes) + "}]}",
        "x");
  };
  EXPECT_EQ(RefusalOfResult(ranks("5")), "accepted");
  for (const char* wrong : {"-1", "1.5", "1e3", "true", "\"1\"", "null", "9223372036854775808"}) {
    EXPECT_THAT(RefusalOfResult(ranks(wrong)), HasSubstr("ranks.rss_peak_bytes is ")) << wrong;
  }
}

// 64 KiB for a text, 256 bytes for a name: anything longer is no sentence.
TEST(Result, TextsHaveALength) {
  const auto with = [](const std::string& key, const Json& value) {
    return RefusalOfResult({{"version", 1}, {"status", "crashed"}, {key, value}});
  };
  const std::string most(65536, 'x');
  for (const char* key : {"message", "hint", "point_id", "device", "communicator"}) {
    EXPECT_EQ(with(key, most), "accepted") << key;
    EXPECT_THAT(with(key, most + "x"), HasSubstr(std::string(key) + " has 65537 bytes, and may have 65536"));
  }
  for (const char* key : {"evidence", "environment"}) {
    EXPECT_EQ(with(key, {{"a", most}}), "accepted") << key;
    EXPECT_THAT(with(key, {{"a", most + "x"}}), HasSubstr("the text of a has 65537 bytes"));
    EXPECT_THAT(with(key, {{std::string(257, 'n'), "x"}}), HasSubstr("a name in " + std::string(key) + " has 257"));
  }
  EXPECT_THAT(with("memory", {{"by_category", {{std::string(257, 'n'), 1}}}}), HasSubstr("has 257 bytes"));
  Json amounts = Json::object();
  for (int i = 0; i < 257; ++i) amounts[std::to_string(i)] = i;
  EXPECT_THAT(with("memory", {{"by_category", amounts}}), HasSubstr("has 257 amounts, and may have 256"));
  // Messages do not quote refused text at length.
  EXPECT_LT(RefusalOfResult({{"version", 1}, {"status", std::string(100'000, 's')}}).size(), 300U);
  EXPECT_LT(RefusalOfResult({{"version", std::string(100'000, 'v')}}).size(), 300U);
  EXPECT_LT(with("provenance", std::string(60'000, 'p')).size(), 300U);
}

TEST(Result, EveryStatusHasANameAndComesBack) {
  EXPECT_EQ(StatusNames().size(), 10U);
  for (const std::string& name : StatusNames()) EXPECT_EQ(StatusName(StatusFromName(name)), name);
  EXPECT_EQ(StatusName(RunStatus::kSkippedPredictedOom), "skipped_predicted_oom");
  EXPECT_THROW(StatusFromName("OK"), Error);
}

TEST(Result, EveryReasonHasANameAndComesBack) {
  EXPECT_EQ(ReasonNames().size(), 8U);
  for (const std::string& name : ReasonNames()) {
    EXPECT_EQ(ReasonName(ReasonFromName(name).value()), name);
    EXPECT_EQ(EndFromNames("infrastructure", name), RunEnd(ReasonFromName(name).value()));
    EXPECT_EQ(EndName(EndFromNames("infrastructure", name)), "infrastructure (" + name + ")");
  }
  EXPECT_EQ(ReasonFromName(""), std::nullopt);
  EXPECT_EQ(ReasonFromName("bad luck"), std::nullopt);
}

TEST(Result, OnlyInfrastructureHasAReasonAndAlwaysOne) {
  for (const auto& [status, reason] :
       std::initializer_list<std::pair<const char*, const char*>>{{"infrastructure", ""},
                                                                  {"infrastructure", "bad luck"},
                                                                  {"ok", "node"},
                                                                  {"crashed", "bad luck"},
                                                                  {"preempted", "node"}}) {
    EXPECT_THROW(EndFromNames(status, reason), Error) << status << ' ' << reason;
  }
}

TEST(Result, ATrainerMayCallAPreemptionAStatus) {
  EXPECT_EQ(EndFromNames("preempted", ""), InfrastructureReason::kPreempted);
  const RunResult told = DecodeResult({{"version", 1}, {"status", "preempted"}}, "theirs.json");
  EXPECT_EQ(EndOf(told), InfrastructureReason::kPreempted);
  EXPECT_EQ(EndOf(DecodeResult(EncodeResult(told), "ours.json")), InfrastructureReason::kPreempted);
}

TEST(Result, ExitCodesAndEndsAgree) {
  for (const RunEnd end :
       std::initializer_list<RunEnd>{RunStatus::kOk, RunStatus::kInvalid, RunStatus::kOomDevice, RunStatus::kOomHost,
                                     RunStatus::kDiverged, InfrastructureReason::kPreempted, RunStatus::kCrashed}) {
    EXPECT_EQ(EndOfExitCode(static_cast<int>(ExitCodeOf(end))), end);
  }
  for (const int unknown : {1, 4, 99, 127, 255, -1}) EXPECT_EQ(EndOfExitCode(unknown), RunStatus::kCrashed);
  EXPECT_EQ(ExitCodeOf(RunStatus::kTimeout), TrainerExit::kCrashed);
}

}  // namespace
}  // namespace ridgeline
