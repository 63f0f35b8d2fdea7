// `ridgeline devices`: shipped descriptions, the user's own folders, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(DevicesCommand, ListsWhatShips) {
  Cli cli;
  const auto list = cli.Run({"devices", "-o", "json"});
  ASSERT_TRUE(list.status.ok()) << list.err;
  const Json rows = ParseJson(list.out, "ridgeline devices");
  EXPECT_GE(rows.size(), 26U);
  for (const Json& row : rows) EXPECT_FALSE(row.at("bf16").is_null()) << row;
}

TEST(DevicesCommand, ShowsEachFigureWithItsSource) {
  Cli cli;
  const auto shown = cli.Run({"devices", "p6-b200", "-o", "json"});
  ASSERT_TRUE(shown.status.ok()) << shown.err;
  bool price = false;
  for (const Json& row : ParseJson(shown.out, "ridgeline devices")) {
    EXPECT_NE(row.at("source"), "") << row;
    if (row.at("figure") != "price.on_demand") continue;
    price = true;
    EXPECT_EQ(row.at("value"), 113.9328);
    EXPECT_EQ(row.at("unit"), "USD/h");
    EXPECT_EQ(row.at("date"), "2025-11-30");
  }
  EXPECT_TRUE(price);
}

TEST(DevicesCommand, FindsAGpuByTheDriversName) {
  Cli cli;
  EXPECT_THAT(cli.Run({"devices", "NVIDIA H100 80GB HBM3"}).out,
              HasSubstr("h100: NVIDIA H100 SXM5, 80 GB, 700 W (gpu: h100)"));
  EXPECT_THAT(cli.Run({"devices", "p5"}).out, HasSubstr("The driver calls its GPU 'NVIDIA H100 80GB HBM3'"));
  EXPECT_EQ(cli.Run({"devices", "h100-hbm2e"}).out.find("The driver calls"), std::string::npos);
  const auto slice = cli.Run({"devices", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"});
  EXPECT_EQ(slice.status.exit_code, 2);
  EXPECT_THAT(slice.err, HasSubstr("is a slice (MIG) of a GPU"));
}

TEST(DevicesCommand, FindsOnesOwnFirst) {
  Cli cli;
  fs::create_directories(cli.dir / "mine");
  std::ofstream(cli.dir / "mine/p5.yaml") << "name: p5\nabout: \"ours\\e[31m\"\ndevice: h100\n";
  const auto shown = cli.Run({"devices", "--devices", "mine", "p5"});
  EXPECT_TRUE(shown.status.ok()) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("p5: ours\\x1b[31m (gpu: h100)")) << "no terminal obeys it";
  EXPECT_THAT(cli.Run({"devices", "p5"}).out, HasSubstr("AWS p5.48xlarge"));
}

// Other files beside devices are not listed, and do not hide a device of their name.
TEST(DevicesCommand, ListsNothingOfAnotherKind) {
  Cli cli;
  fs::create_directories(cli.dir / "devices");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(cli.dir / "devices" / (name + ".yaml")) << "name: " << name << "\n" << text;
  };
  write("p5", "price: {device: p5}\nmatrix: {model: [llama-10m]}\n");
  write("a-sweep", "price: {device: p5}\ndefaults: {model: llama-10m}\n");
  write("a-trainer", "about: x\nversion: v1\ntested: log\ncommand: [x]\n");
  write("a-framework", "about: x\nsources: {s: x}\nmemory: {}\nefficiency: {}\nevidence: {}\n");
  write("mine", "about: mine\ndevice: h100\n");
  const auto list = cli.Run({"devices", "-o", "json"});
  ASSERT_TRUE(list.status.ok()) << list.err;
  std::vector<std::string> names;
  for (const Json& row : ParseJson(list.out, "ridgeline devices")) {
    names.push_back(row.at("device"));
    EXPECT_FALSE(row.at("bf16").is_null()) << row;
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"mine", "p5", "p5e"}));
  for (const char* other : {"a-sweep", "a-trainer", "a-framework"}) {
    EXPECT_THAT(names, ::testing::Not(::testing::Contains(other)));
    const std::string refused = cli.Run({"devices", other}).err;
    EXPECT_THAT(refused, HasSubstr("there is no device"));
    EXPECT_THAT(refused, ::testing::Not(HasSubstr("a-sweep,"))) << "the list is of devices alone";
  }
  EXPECT_THAT(cli.Run({"devices", "p5"}).out, HasSubstr("AWS p5.48xlarge"));
}

TEST(DevicesCommand, RefusesWhatIsWrongAndWhatIsNotThere) {
  Cli cli;
  fs::create_directories(cli.dir / "devices");
  std::ofstream(cli.dir / "devices/wrong.yaml")
      << "name: wrong\nabout: a\ndevice: h100\nsources: {s: x}\nmemory: {bandwidth: {value: -1 TB/s, source: s}}\n";
  const auto wrong = cli.Run({"devices", "wrong"});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("devices/wrong.yaml:5:29: memory.bandwidth must not be negative"));
  EXPECT_THAT(cli.Run({"devices"}).out, HasSubstr("cannot be read: `ridgeline devices NAME` says why"));
  const auto none = cli.Run({"devices", "h1000"});
  EXPECT_EQ(none.status.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no device 'h1000', did you mean 'h100'?"));
}

}  // namespace
}  // namespace ridgeline::cli
