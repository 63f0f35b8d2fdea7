// Descriptions of devices: those shipped, those accepted, and those refused with their line.
#include "predict/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/error.h"
#include "base/user_folders.h"
#include "engine/device/speed.h"
#include "run/gpus.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::predict {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kShipped = fs::path(RIDGELINE_SOURCE_DIR) / "devices";

constexpr const char* kWhole = R"(name: mine
about: one line
gpu: l40s
sources: {sheet: the data sheet, guess: a guess}
peaks:
  fp32: {value: 91.6 TFLOP/s, source: sheet}
  bf16: {value: 362 TFLOP/s, source: sheet}
  fp16: {value: 0.362 PFLOP/s, source: sheet}
  fp8: {value: 733 TFLOP/s, source: sheet, note: dense}
memory:
  size: {value: 48 GB, source: sheet}
  bandwidth: {value: 864 GB/s, source: sheet}
chip:
  multiprocessors: {value: 142, source: sheet}
  launch: {value: 2 us, source: guess}
  power: {value: 350 W, source: sheet}
)";

Device Taken(const std::string& text) { return ParseDevice(text, "some/mine.yaml", {kShipped}); }

std::string RefusalOfDevice(const std::string& text) {
  try {
    Taken(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.hint(), "docs/prediction.md describes devices");
    return e.message();
  }
  ADD_FAILURE() << "was taken:\n" << text;
  return {};
}

// kWhole with `from` replaced by `to`.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = kWhole;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(DeviceFile, IsReadWhole) {
  const Device device = Taken(kWhole);
  EXPECT_EQ(device.name, "mine");
  EXPECT_EQ(device.gpu, "l40s");
  EXPECT_DOUBLE_EQ(device.At("peaks.bf16"), 362e12);
  EXPECT_DOUBLE_EQ(device.At("peaks.fp16"), 362e12) << "another unit, the same figure";
  EXPECT_DOUBLE_EQ(device.At("memory.bandwidth"), 864e9);
  EXPECT_DOUBLE_EQ(device.At("chip.launch"), 2e-6);
  EXPECT_EQ(device.figures.at("peaks.fp8").source, "the data sheet");
  EXPECT_EQ(device.figures.at("peaks.fp8").note, "dense");
  EXPECT_EQ(device.gpus(), 1);
  EXPECT_THROW(device.At("network.bandwidth"), Error);
}

TEST(DeviceFile, MayAddToAnother) {
  const Device device =
      Taken("name: mine\nabout: a\ndevice: h100\nsources: {me: myself}\nmemory:\n  size: {value: 70 GB, source: me}\n");
  EXPECT_EQ(device.gpu, "h100");
  EXPECT_DOUBLE_EQ(device.At("memory.size"), 70e9);
  EXPECT_EQ(device.figures.at("memory.size").source, "myself");
  EXPECT_DOUBLE_EQ(device.At("peaks.fp8"), 1979e12);
  EXPECT_THAT(device.figures.at("peaks.fp8").source, HasSubstr("Bekman"));
  EXPECT_THAT(RefusalOfDevice("name: mine\nabout: a\ndevice: h10\n"),
              HasSubstr("some/mine.yaml:3:9: there is no device 'h10', did you mean 'h100'?"));
}

TEST(DeviceFile, FilesThatNameEachOtherEnd) {
  const TempDir dir;
  std::ofstream(dir / "a.yaml") << "name: a\nabout: a\ndevice: b\n";
  std::ofstream(dir / "b.yaml") << "name: b\nabout: b\ndevice: a\n";
  try {
    FindDevice("a", {dir.path()});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("name each other"));
  }
}

TEST(DeviceFile, EveryFaultIsSaidAtItsLine) {
  const std::string faults = RefusalOfDevice(
      "name: mine\nabout: a\ngpu: h10\nsources: {s: x}\npeaks:\n  fp7: {value: 1 TFLOP/s, source: s}\n"
      "  bf16: {value: -1 TFLOP/s, source: s}\nmemory:\n  bandwidth: {value: -3 TB/s, source: s}\n"
      "  size: {value: 80, source: t}\n");
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:3:6: unknown gpu 'h10', did you mean 'h100'?"));
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:6:3: unknown format 'fp7', did you mean"));
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:7:17: peaks.bf16 must not be negative"));
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:9:22: memory.bandwidth must not be negative"));
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:10:17: memory.size is a number of"));
  EXPECT_THAT(faults, HasSubstr("some/mine.yaml:10:29: no source 't' stands under sources"));
}

TEST(DeviceFile, HasAPeakForEachFormatThatItsGpuMultiplies) {
  EXPECT_THAT(RefusalOfDevice(Changed("  fp8: {value: 733 TFLOP/s, source: sheet, note: dense}\n", "")),
              HasSubstr("some/mine.yaml:6:3: peaks.fp8 is missing: L40S multiplies that"));
  EXPECT_THAT(RefusalOfDevice(Changed("  bf16: {value: 362 TFLOP/s, source: sheet}\n", "")),
              HasSubstr("peaks.bf16 is missing"));
  EXPECT_THAT(RefusalOfDevice(Changed("l40s", "b200")), HasSubstr("peaks.mxfp8 is missing: B200 multiplies that"));
  EXPECT_NO_THROW(Taken(Changed("l40s", "a100"))) << "it may say more than its GPU can";
}

TEST(DeviceFile, FiguresThatNeedEachOtherCome) {
  const std::string whole = kWhole;
  EXPECT_THAT(RefusalOfDevice(whole + "network:\n  bandwidth: {value: 400 Gbit/s, source: sheet}\n"),
              HasSubstr("network.latency is missing: there is network.bandwidth"));
  EXPECT_THAT(RefusalOfDevice(whole + "price:\n  on_demand: {value: 2 USD/h, source: sheet}\n"),
              HasSubstr("price.on_demand has no 'date'"));
  EXPECT_THAT(RefusalOfDevice(whole + "efficiency:\n  memory: {value: 1.2, source: sheet}\n"),
              HasSubstr("efficiency.memory is more than 0 and at most 1"));
  EXPECT_THAT(RefusalOfDevice(whole + "fan: {}\n"), HasSubstr("unknown key 'fan'"));
}

TEST(DeviceFile, RefusesImpossibleFigures) {
  EXPECT_THAT(RefusalOfDevice(Changed("power: {value: 350 W", "power: {value: 1 W")),
              HasSubstr("chip.power is 1 W, which no device has: it is from 10 W to 10000 W"));
  EXPECT_THAT(
      RefusalOfDevice(Changed("size: {value: 48 GB", "size: {value: 48 GB, source: sheet}\n  total: {value: 40 GB")),
      HasSubstr("memory.size is 48 GB, above memory.total, which is 40 GB"));
  const std::string whole = kWhole;
  EXPECT_THAT(RefusalOfDevice(whole + "ceilings:\n  bf16: {value: 400 TFLOP/s, source: sheet}\n"),
              HasSubstr("ceilings.bf16 is 400 TFLOP/s, above peaks.bf16, which is 362 TFLOP/s"));
  const auto priced = [&](const std::string& date) {
    return whole +
           "machine: {gpus: {value: 1, source: sheet}}\nprice:\n  on_demand: {value: 2 USD/h, source: sheet, date: \"" +
           date + "\"}\n";
  };
  EXPECT_NO_THROW(Taken(priced("2026-08-26")));
  EXPECT_NO_THROW(Taken(priced("2026-08")));
  for (const char* date : {"2099-13-77", "2026-02-30", "26-08-26", "2026-8", "August 2026"}) {
    EXPECT_THAT(RefusalOfDevice(priced(date)), HasSubstr("is not a date from 2000 to 2099")) << date;
  }
}

TEST(DeviceFile, SuggestsTheNearestName) {
  try {
    FindDevice("p6-b20", {kShipped});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_EQ(e.message(), "there is no device 'p6-b20', did you mean 'p6-b200'?");
  }
}

TEST(ShippedDevices, AreFoundByTheDriversVeryName) {
  EXPECT_EQ(FindDevice("NVIDIA H100 80GB HBM3", {kShipped}).name, "h100");
  EXPECT_EQ(FindDevice("NVIDIA H100 PCIe", {kShipped}).name, "h100-pcie");
  EXPECT_EQ(FindDevice("NVIDIA B300 SXM6 AC", {kShipped}).name, "b300");
  try {
    FindDevice("NVIDIA H100 80GB HBM3 MIG 1g.10gb", {kShipped});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("is a slice (MIG) of a GPU"));
  }
}

TEST(ShippedDevices, AreRightAndAllThere) {
  std::set<std::string> names;
  for (const fs::path& file : NamedFiles({kShipped})) {
    const Device device = LoadDevice(file, {kShipped});
    names.insert(device.name);
    EXPECT_GE(device.figures.size(), 12U) << file;
    // A machine's network joins GPUs that are linked, so it needs a link too.
    EXPECT_TRUE(!device.Has("network.bandwidth") || device.Has("link.bandwidth")) << file;
    EXPECT_LT(device.Or("ceilings.bf16", 0), device.At("peaks.bf16")) << file;
    EXPECT_FALSE(device.Has("efficiency.products")) << file << ": nothing that ships was calibrated";
  }
  for (const char* name :
       {"a100-40gb", "a100-pcie", "h100-pcie", "h100-nvl", "h200-nvl", "a100",     "h100",      "h200",     "b200",
        "b300",      "gb200",     "gb300",     "p4de",     "p5",       "p5e",      "p5en",      "p6-b200",  "p6-b300",
        "p6e-gb200", "dgx-a100",  "dgx-h100",  "dgx-h200", "dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// A GPU's memory is also in the code, for a spec that names a GPU and no device.
TEST(ShippedDevices, HaveTheMemoryOfTheirGpu) {
  int compared = 0;
  for (const fs::path& file : NamedFiles({kShipped})) {
    const Device device = LoadDevice(file, {kShipped});
    if (device.name == "h100-hbm2e") continue;  // the driver's name of this part is not known
    ++compared;
    const Gpu& gpu = *FindGpu(device.gpu);
    EXPECT_NEAR(static_cast<double>(gpu.total_bytes), device.At("memory.total"), 1) << file;
    EXPECT_NEAR(static_cast<double>(gpu.usable_bytes), device.At("memory.size"), 1) << file;
  }
  EXPECT_GT(compared, 25);
}

// The trainer has no YAML, so its code has the figures that its --budget uses. They are the same.
TEST(ShippedDevices, SayWhatTheTrainersBudgetSays) {
  int compared = 0;
  for (const Gpu& gpu : Gpus()) {
    const auto speed = engine::SpeedOf(gpu.name);
    if (!speed) continue;
    ++compared;
    const Device device = FindDevice(std::string(gpu.name), {kShipped});
    const auto near = [&](double budget, double catalogue) {
      EXPECT_NEAR(budget / catalogue, 1, 0.002) << gpu.name;  // data sheets are rounded
    };
    near(speed->flops / speed->product_share, device.At("peaks.bf16"));
    near(speed->fp32_flops, device.At("peaks.fp32"));
    near(speed->tf32_flops / speed->product_share, device.At("peaks.tf32"));
    near(speed->bytes / (4.3 / 4.8), device.At("memory.bandwidth"));
    if (device.Has("peaks.fp8")) near(speed->fp8_flops / speed->product_share, device.At("peaks.fp8"));
    if (device.Has("peaks.mxfp8")) near(speed->mxfp8_flops / speed->product_share, device.At("peaks.mxfp8"));
    if (device.Has("peaks.fp4")) near(speed->fp4_flops / speed->product_share, device.At("peaks.fp4"));
  }
  EXPECT_EQ(compared, 7);
}

}  // namespace
}  // namespace ridgeline::predict
