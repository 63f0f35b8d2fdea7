// What the launchers' options share: a table of values that each launcher reads.
#include "common/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/config.h"
#include "local/config.h"
#include "sagemaker/config.h"
#include "slurm/config.h"
#include "yaml/units.h"

namespace ridgeline {
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::Option;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class Kind { kCount, kTime, kSize, kQuantity };

// A launcher's option that is a number.
struct Numeric {
  std::string launcher;
  std::string name;  // as in messages
  Kind kind = Kind::kCount;
  std::function<Json(const Json& value)> config;  // `launch:` with this value
  bool zero_is_taken = false;
};

std::vector<Numeric> Numerics() {
  std::vector<Numeric> options;
  for (const char* launcher : {"local", "slurm", "kubernetes", "sagemaker"}) {
    options.push_back({launcher, "max_parallel", Kind::kCount,
                       [](const Json& value) {
                         return Json{{"max_parallel", value}};
                       },
                       true});
  }
  options.push_back({"local", "cpus", Kind::kCount, [](const Json& value) { return Json{{"cpus", value}}; }, true});
  const auto add = [&](const std::string& launcher, const std::string& name, Kind kind, bool zero_is_taken = false) {
    const auto config = [=](const Json& value) { return Json{{launcher, {{name, value}}}}; };
    options.push_back({launcher, launcher + ": " + name, kind, config, zero_is_taken});
  };
  for (const char* name : {"nodes", "ntasks", "cpus", "gpus", "max_queued"}) add("slurm", name, Kind::kCount);
  add("slurm", "memory", Kind::kSize, true);  // all that a node has
  for (const char* name : {"time", "poll_interval"}) add("slurm", name, Kind::kTime);
  add("kubernetes", "nodes", Kind::kCount);
  for (const char* name : {"gpus", "efa", "user"}) add("kubernetes", name, Kind::kCount, true);
  for (const char* name : {"cpu", "memory", "shared_memory", "ephemeral_storage"})
    add("kubernetes", name, Kind::kQuantity);
  options.push_back({"kubernetes", "kubernetes: hugepages: 2Mi", Kind::kQuantity, [](const Json& value) {
                       return Json{{"kubernetes", {{"hugepages", {{"2Mi", value}}}}}};
                     }});
  for (const char* name : {"ttl", "start_limit", "idle_limit"}) add("kubernetes", name, Kind::kTime);
  for (const char* name : {"nodes", "volume_size"}) add("sagemaker", name, Kind::kCount);
  for (const char* name : {"max_run", "keep_alive", "poll_pause"}) add("sagemaker", name, Kind::kTime);
  return options;
}

void Read(const std::string& launcher, const Json& config) {
  if (launcher == "local") local::SlotCores(config, {0});
  if (launcher == "slurm") slurm::ReadOptions(config);
  if (launcher == "kubernetes") kubernetes::ReadOptions(config);
  if (launcher == "sagemaker") sagemaker::ReadOptions(config);
}

void ExpectRefused(const Numeric& option, const Json& value) {
  try {
    Read(option.launcher, option.config(value));
    ADD_FAILURE() << option.launcher << ": " << option.name << ": " << value << " was taken";
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), Failure::Kind::kInvalidInput);
    EXPECT_THAT(e.what(), StartsWith("launch: " + option.name + " is " + value.dump() + ", and must be "));
  }
}

TEST(LauncherOptions, RefuseWhatIsNoNumberAlike) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Json wrong[] = {"nan",
                        "NaN",
                        "-nan",
                        "inf",
                        "-inf",
                        "infinity",
                        "1e400",
                        "-1",
                        "+1",
                        "-0",
                        "",
                        " ",
                        "many",
                        "0x10",
                        "1,5",
                        "1.2.3",
                        "--1",
                        "1_000",
                        "1 2",
                        "nan s",
                        "inf h",
                        "-1s",
                        "-1GB",
                        "-1Gi",
                        "-1:00:00",
                        "1-",
                        "10:",
                        "1:-5",
                        "nanGi",
                        "infGi",
                        "-5m",
                        "30mins",
                        "8 bananas",
                        "1e400Gi",
                        "1e400GB",
                        "1e308d",
                        "1\n",
                        "64gb",
                        true,
                        false,
                        nullptr,
                        -1,
                        -0.5,
                        infinity,
                        -infinity,
                        std::numeric_limits<double>::quiet_NaN(),
                        Json::array(),
                        Json::array({1}),
                        Json::object()};
  for (const Numeric& option : Numerics()) {
    for (const Json& value : wrong) ExpectRefused(option, value);
  }
}

TEST(LauncherOptions, RefuseWhatIsTooLargeAlike) {
  const Json wrong[] = {int64_t{9223372036854775807},
                        uint64_t{9223372036854775808U},
                        uint64_t{18446744073709551615U},
                        "9223372036854775807",
                        "9223372036854775808",
                        "18446744073709551617",
                        1e300,
                        "1e300",
                        "9223372036854775808d",
                        "9223372036854775808TB",
                        "9223372036854775808Ti",
                        "9999999999-00:00:00"};
  for (const Numeric& option : Numerics()) {
    for (const Json& value : wrong) ExpectRefused(option, value);
  }
}

TEST(LauncherOptions, RefuseZeroWhereSomethingMustBe) {
  for (const Numeric& option : Numerics()) {
    if (option.zero_is_taken) {
      EXPECT_NO_THROW(Read(option.launcher, option.config(0))) << option.name;
      continue;
    }
    for (const Json& value : {Json(0), Json(0.0), Json("0"), Json("0s"), Json("0GB"), Json("0Gi"), Json("00:00")}) {
      ExpectRefused(option, value);
    }
  }
}

TEST(LauncherOptions, CountsAreWholeNumbers) {
  for (const Numeric& option : Numerics()) {
    if (option.kind != Kind::kCount) continue;
    EXPECT_NO_THROW(Read(option.launcher, option.config(1))) << option.name;
    EXPECT_NO_THROW(Read(option.launcher, option.config(uint64_t{1}))) << option.name;
    for (const Json& value : {Json(1.0), Json(0.5), Json("1"), Json("1m"), Json("1GB")}) ExpectRefused(option, value);
  }
}

TEST(LauncherOptions, TimesAreReadAlike) {
  const std::pair<Json, int64_t> right[] = {
      {3600, 3600},     {"3600", 3600},     {"7200s", 7200},  {"90m", 5400},      {"90min", 5400},
      {"90 min", 5400}, {"1.5h", 5400},     {"2 h", 7200},    {".5d", 43200},     {"7d", 604800},
      {"1e4s", 10000},  {"1e1h", 36000},    {"120:00", 7200}, {"01:30:00", 5400}, {"1-12:00:00", 129600},
      {"1-12", 129600}, {"1-12:30", 131400}};
  for (const auto& [value, seconds] : right) {
    EXPECT_EQ(slurm::ReadOptions({{"slurm", {{"time", value}}}}).time_minutes, (seconds + 59) / 60) << value;
    EXPECT_EQ(kubernetes::ReadOptions({{"kubernetes", {{"ttl", value}}}}).ttl_s, seconds) << value;
    EXPECT_EQ(sagemaker::ReadOptions({{"sagemaker", {{"max_run", value}}}}).max_run_s, seconds) << value;
  }
}

// Values that a sweep accepts as a limit of a point are accepted by a launcher for a job.
TEST(LauncherOptions, ReadTimesAndSizesAsSweepsDo) {
  const auto node = [](const Json& value) {
    yaml::YamlNode scalar;
    scalar.kind = yaml::YamlNode::Kind::kScalar;
    scalar.scalar = value;
    return scalar;
  };
  for (const Json& time : {Json(90), Json("90s"), Json("10m"), Json("30min"), Json("1.5h"), Json("2 d"), Json(".5h"),
                           Json("5.m"), Json("1.4s"), Json("2h ")}) {
    ASSERT_TRUE(yaml::ReadSeconds(node(time))) << time;
    EXPECT_EQ(Option("time", time).Seconds("1s", "1000d"), *yaml::ReadSeconds(node(time))) << time;
  }
  for (const Json& size : {Json(1 << 20), Json("64GB"), Json("512 MiB"), Json("1.5GiB"), Json("2000000B"),
                           Json("2000kB"), Json("2000KB"), Json("2TB"), Json("1024KiB"), Json("1TiB"), Json("5MB")}) {
    ASSERT_TRUE(yaml::ReadBytes(node(size))) << size;
    EXPECT_EQ(Option("memory", size).Bytes("1B", "1000TB"), *yaml::ReadBytes(node(size))) << size;
  }
}

// Kubernetes gets the amount as it was written.
TEST(LauncherOptions, KubernetesAmountsStayAsTheyAre) {
  const auto memory = [](const Json& value) {
    return kubernetes::ReadOptions({{"kubernetes", {{"memory", value}}}}).memory;
  };
  for (const char* text : {"64Gi", "1.5Ti", "64G", "1536Mi", "68719476736", "64e9"}) EXPECT_EQ(memory(text), text);
  EXPECT_EQ(memory(68719476736), "68719476736");
  const auto cpu = [](const Json& value) { return kubernetes::ReadOptions({{"kubernetes", {{"cpu", value}}}}).cpu; };
  EXPECT_EQ(cpu(96), "96");
  EXPECT_EQ(cpu(1.5), "1.5");
  EXPECT_EQ(cpu("500m"), "500m");
}

TEST(LauncherOptions, SayWhatWasWrongAndWhatToWrite) {
  const auto refused = [](const std::function<void(const Option&)>& read, const Json& value) -> std::string {
    try {
      read(Option("slurm: x", value));
      return "taken";
    } catch (const Failure& e) {
      return std::string(e.what()) + " / " + e.hint();
    }
  };
  const auto seconds = [](const Option& option) { option.Seconds("1m", "1d"); };
  EXPECT_EQ(refused(seconds, "soon"),
            "launch: slurm: x is \"soon\", and must be a time such as 90s, "
            "30m, 2h or 1-12:00:00 / write a number and s, "
            "m (or min), h or d; a number alone is seconds");
  EXPECT_THAT(refused(seconds, "59s"), StartsWith("launch: slurm: x is \"59s\", and must be at least 1m / "));
  EXPECT_THAT(refused(seconds, "25h"), StartsWith("launch: slurm: x is \"25h\", and must be at most 1d / "));
  EXPECT_EQ(refused(seconds, "60s"), "taken");
  EXPECT_EQ(refused(seconds, "24h"), "taken");
  EXPECT_THAT(refused([](const Option& option) { option.Bytes("1MiB", "1TiB"); }, "64gb"),
              AllOf(HasSubstr("a size such as 64GB or 512MiB"), HasSubstr("a number alone is bytes")));
  EXPECT_THAT(refused([](const Option& option) { option.Count(1, 8); }, 9),
              StartsWith("launch: slurm: x is 9, and must be a whole number from 1 to 8"));
  EXPECT_THAT(refused([](const Option& option) { option.Count(1, 8); }, "4"), HasSubstr("without quotes"));
  EXPECT_THAT(refused([](const Option& option) { option.Flag(); }, "yes"), HasSubstr("must be true or false"));
  EXPECT_THAT(refused([](const Option& option) { option.Text(); }, "a\nb"), HasSubstr("must be one line of text"));
  EXPECT_EQ(Option("x", 1234).Text(), "1234");
}

TEST(LauncherOptions, SayAllThatIsWrongAtOnce) {
  const Json settings = {{"nodes", "many"}, {"signal", "USR9"}, {"time", "1h"}, {"zone", "a"}};
  try {
    slurm::ReadOptions({{"slurm", settings}});
    FAIL() << "taken";
  } catch (const Failure& e) {
    EXPECT_THAT(e.message(), StartsWith("launch: slurm: nodes is \"many\", and must be a whole number"));
    EXPECT_THAT(e.message(), HasSubstr("\nlaunch: slurm: signal is \"USR9\", and must be"));
    EXPECT_THAT(e.message(), HasSubstr("\nlaunch: slurm: there is no setting 'zone' (settings: "));
    EXPECT_EQ(std::ranges::count(e.message(), '\n'), 2);
    EXPECT_EQ(e.hint(), "");
  }
}

}  // namespace
}  // namespace ridgeline
