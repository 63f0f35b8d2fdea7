#include "engine/device/cuda/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/fakes/fake_nvml.h"

namespace ridgeline::engine {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kSoon{1};

class GpuWatched : public ::testing::Test {
 protected:
  GpuWatched() { ThisCard() = &card_; }
  ~GpuWatched() override { EXPECT_EQ(card_.sessions, 0) << "every session ends"; }

  template <typename Change>
  void Now(const Change& change) {
    const std::lock_guard lock(card_.mutex);
    change();
  }
  // Waits until the card has been queried `count` more times.
  void WaitForLooks(int count) {
    const auto looks = [&] {
      const std::lock_guard lock(card_.mutex);
      return card_.looks;
    };
    for (const int enough = looks() + count; looks() < enough;) std::this_thread::sleep_for(kSoon);
  }
  GpuFigures Measured(const Nvml& (*load)() = FakeNvml, milliseconds energy_tells = std::chrono::hours(1)) {
    GpuWatch watch(card_.bus_id, load, kSoon, energy_tells);
    EXPECT_EQ(watch.problem(), "");
    watch.Begin();
    if (load == FakeNvml && !card_.says.contains("limits")) WaitForLooks(3);
    watch.End();
    return watch.Figures();
  }

  FakeCard card_;
};

TEST_F(GpuWatched, SaysHowItFared) {
  const GpuFigures gpu = Measured();
  EXPECT_EQ(gpu.power_w, 500);
  EXPECT_EQ(gpu.power_max_w, 500);
  EXPECT_EQ(gpu.power_limit_w, 700);
  EXPECT_EQ(gpu.energy_j, 25) << "between the first look and the last";
  EXPECT_EQ(gpu.sm_clock_mhz, 1800);
  EXPECT_EQ(gpu.sm_clock_min_mhz, 1800);
  EXPECT_EQ(gpu.memory_clock_mhz, 2600);
  EXPECT_EQ(gpu.temperature_c, 60);
  EXPECT_EQ(gpu.throttled_share, 0);
  EXPECT_TRUE(gpu.clock_limits.empty());
  EXPECT_EQ(gpu.ecc_corrected, 0) << "the seven errors are older";
  EXPECT_EQ(gpu.ecc_uncorrected, 0);
  EXPECT_EQ(gpu.others, 0);
  EXPECT_EQ(gpu.others_bytes, 0);
}

// nvmlDeviceGetPowerUsage reports a mean over the last second, of which a short run is only a part.
TEST_F(GpuWatched, PowerIsEnergyOverTimeWhereThatTells) {
  card_.millijoules_a_look = 3'600'000'000;
  const GpuFigures gpu = Measured(FakeNvml, milliseconds(0));
  EXPECT_EQ(gpu.energy_j, 3'600'000);
  EXPECT_GT(gpu.power_w, 1000.0);
  card_.says = {{"energy", kNvmlNotSupported}};
  EXPECT_EQ(Measured(FakeNvml, milliseconds(0)).power_w, 500) << "of its moments";
}

TEST_F(GpuWatched, TellsThisProcessFromOthers) {
  const auto process = [](unsigned pid, unsigned long long bytes) {
    NvmlProcess one;
    one.pid = pid;
    one.used_bytes = bytes;
    return one;
  };
  const auto own = static_cast<unsigned>(::getpid());
  card_.others = 1;
  card_.processes = {process(own + 1, 5000)};
  GpuWatch watch(card_.bus_id, FakeNvml, kSoon);
  EXPECT_EQ(watch.OwnBytes(), std::nullopt) << "it may be anybody";
  card_.processes = {process(own + 1, 5000), process(own, 700)};
  EXPECT_EQ(watch.OwnBytes(), 700);
  card_.processes[1].used_bytes = 300;
  EXPECT_EQ(watch.OwnBytes(), 300);
  EXPECT_EQ(watch.MostOwnBytes(), 700);
  card_.processes[1].used_bytes = kNvmlValueNotAvailable;
  EXPECT_EQ(watch.OwnBytes(), std::nullopt);
  // In a container its number differs, and it is the only process that is new.
  card_.others = 0;
  card_.processes.clear();
  GpuWatch alone(card_.bus_id, FakeNvml, kSoon);
  card_.processes = {process(own + 7, 900)};
  EXPECT_EQ(alone.OwnBytes(), 900);
  alone.Begin();
  WaitForLooks(2);
  Now([&] { card_.processes[0].used_bytes = 1200; });
  WaitForLooks(2);
  Now([&] { card_.processes[0].used_bytes = 100; });
  WaitForLooks(2);
  alone.End();
  EXPECT_EQ(alone.MostOwnBytes(), 1200);
  EXPECT_EQ(alone.driver(), "580.65.06");
  EXPECT_EQ(alone.mig(), "off");
}

TEST_F(GpuWatched, SaysWhatHeldItBackAndHowLong) {
  GpuWatch watch(card_.bus_id, FakeNvml, kSoon);
  Now([&] { card_.limits = 0x1; });  // idle
  watch.Begin();
  WaitForLooks(4);
  Now([&] {
    card_.limits = 0x4 | 0x40;  // its power limit and its heat
    card_.sm_mhz = 900;
    card_.celsius = 90;
  });
  WaitForLooks(4);
  Now([&] { card_.limits = 0, card_.celsius = 70; });
  watch.End();
  const GpuFigures gpu = watch.Figures();
  EXPECT_GT(gpu.throttled_share, 0.0);
  EXPECT_LT(gpu.throttled_share, 1.0);
  EXPECT_GE(gpu.clock_limits.at("gpu_idle"), 4);
  EXPECT_GE(gpu.clock_limits.at("sw_power_cap"), 4);
  EXPECT_EQ(gpu.clock_limits.at("hw_thermal_slowdown"), gpu.clock_limits.at("sw_power_cap"));
  EXPECT_EQ(gpu.sm_clock_min_mhz, 900);
  EXPECT_LT(gpu.sm_clock_mhz, 1800.0);
  EXPECT_EQ(gpu.temperature_c, 90) << "the highest";
}

TEST_F(GpuWatched, CountsErrorsOfTheRunAlone) {
  GpuWatch watch(card_.bus_id, FakeNvml, kSoon);
  card_.corrected = 9;
  card_.uncorrected = 1;
  EXPECT_EQ(watch.Figures().ecc_corrected, 2);
  EXPECT_EQ(watch.Figures().ecc_uncorrected, 1);
  card_.corrected = 0;  // someone reset the counter
  EXPECT_EQ(watch.Figures().ecc_corrected, 0);
}

TEST_F(GpuWatched, SaysWhoWasThereBefore) {
  card_.others = 2;
  card_.others_bytes = 5ULL << 30;
  GpuWatch watch(card_.bus_id, FakeNvml, kSoon);
  card_.others = 3;  // this process has a context now
  card_.others_bytes = 70ULL << 30;
  EXPECT_EQ(watch.Figures().others, 2);
  EXPECT_EQ(watch.Figures().others_bytes, 5LL << 30);
}

TEST_F(GpuWatched, FiguresThatADriverLacksAreNotRead) {
  const GpuFigures gpu = Measured(OldNvml);
  EXPECT_EQ(gpu.power_w, std::nullopt);
  EXPECT_EQ(gpu.energy_j, std::nullopt);
  EXPECT_EQ(gpu.sm_clock_mhz, std::nullopt);
  EXPECT_EQ(gpu.sm_clock_min_mhz, std::nullopt);
  EXPECT_EQ(gpu.memory_clock_mhz, std::nullopt);
  EXPECT_EQ(gpu.temperature_c, std::nullopt);
  EXPECT_EQ(gpu.throttled_share, std::nullopt);
  EXPECT_EQ(gpu.ecc_corrected, std::nullopt);
  EXPECT_EQ(gpu.ecc_uncorrected, std::nullopt);
  EXPECT_EQ(gpu.others, std::nullopt);
  EXPECT_EQ(gpu.others_bytes, std::nullopt);
}

TEST_F(GpuWatched, FiguresThatACardRefusesAreLeftOutAndTheRestIsRead) {
  card_.says = {{"energy", kNvmlNotSupported}, {"ecc", kNvmlNotSupported}, {"processes", kNvmlNoPermission}};
  GpuFigures gpu = Measured();
  EXPECT_EQ(gpu.power_w, 500);
  EXPECT_EQ(gpu.energy_j, std::nullopt);
  EXPECT_EQ(gpu.ecc_corrected, std::nullopt);
  EXPECT_EQ(gpu.others, std::nullopt);
  EXPECT_EQ(gpu.others_bytes, 0);
  card_.says = {{"limits", kNvmlGpuIsLost}, {"power", kNvmlGpuIsLost}, {"memory", kNvmlGpuIsLost}};
  gpu = Measured();
  EXPECT_EQ(gpu.throttled_share, std::nullopt);
  EXPECT_EQ(gpu.power_w, std::nullopt);
  EXPECT_EQ(gpu.others_bytes, std::nullopt);
  EXPECT_EQ(gpu.sm_clock_mhz, 1800);
}

TEST_F(GpuWatched, OnAMigInstanceSharedFiguresAreNotRead) {
  card_.mig = true;
  card_.others = 6;
  const GpuFigures gpu = Measured();
  EXPECT_EQ(gpu.power_w, std::nullopt);
  EXPECT_EQ(gpu.energy_j, std::nullopt);
  EXPECT_EQ(gpu.others, std::nullopt);
  EXPECT_EQ(gpu.others_bytes, std::nullopt);
  EXPECT_EQ(gpu.sm_clock_mhz, 1800) << "the instances have one clock";
  EXPECT_EQ(gpu.throttled_share, 0);
}

TEST_F(GpuWatched, WithoutMeasuredStepsThereIsWhatWasThereBefore) {
  card_.others = 1;
  const GpuFigures gpu = GpuWatch(card_.bus_id, FakeNvml).Figures();
  EXPECT_EQ(gpu.others, 1);
  EXPECT_EQ(gpu.power_w, std::nullopt);
  EXPECT_EQ(gpu.throttled_share, std::nullopt);
}

// A failing run does not reach the end of its measured steps.
TEST_F(GpuWatched, SaysWhatItHasSeenWhileItLooks) {
  GpuWatch watch(card_.bus_id, FakeNvml, kSoon);
  watch.Begin();
  WaitForLooks(3);
  EXPECT_EQ(watch.Figures().power_w, 500) << "its energy is taken at the end";
  EXPECT_EQ(watch.Figures().throttled_share, 0);
}

TEST_F(GpuWatched, StopsWhenItGoesWithoutWaitingForItsNextLook) {
  const auto begin = std::chrono::steady_clock::now();
  {
    GpuWatch watch(card_.bus_id, FakeNvml, std::chrono::hours(1));
    watch.Begin();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(10));
}

TEST_F(GpuWatched, AShortRunIsSeenAtItsEndsAtLeast) {
  GpuWatch watch(card_.bus_id, FakeNvml, std::chrono::hours(1));
  watch.Begin();
  watch.End();
  EXPECT_GE(card_.looks, 1);
  EXPECT_EQ(watch.Figures().throttled_share, 0);
}

TEST_F(GpuWatched, ReportsAMissingNvmlAndReadsNothing) {
  const auto problem = [&](const std::string& bus_id, const Nvml& (*load)()) {
    GpuWatch watch(bus_id, load, kSoon);
    watch.Begin();
    watch.End();
    EXPECT_EQ(watch.Figures().power_w, std::nullopt);
    EXPECT_EQ(watch.Figures().others, std::nullopt);
    return watch.problem();
  };
  EXPECT_EQ(problem(card_.bus_id, NoNvml), "NVML cannot be loaded: libnvidia-ml.so.1: no such file; install it");
  EXPECT_THAT(problem("0000:FF:00.0", FakeNvml), HasSubstr("the GPU at 0000:FF:00.0: "));
  card_.begins = kNvmlDriverNotLoaded;
  EXPECT_THAT(problem(card_.bus_id, FakeNvml), HasSubstr("no NVIDIA driver is loaded"));
  card_.begins = kNvmlVersionMismatch;
  EXPECT_THAT(problem(card_.bus_id, FakeNvml), HasSubstr("the driver was updated"));
  card_.begins = kNvmlNoPermission;
  EXPECT_THAT(problem(card_.bus_id, FakeNvml), HasSubstr("/dev/nvidia*"));
}

// Most machines that build this have no driver. If there is one, it must have these functions.
TEST(LoadedNvml, LoadsOrSaysWhatToInstall) {
  try {
    EXPECT_NE(LoadNvml().nvmlInit_v2, nullptr);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr("libnvidia-ml.so.1"));
    EXPECT_THAT(e.hint(), HasSubstr("NVIDIA's driver"));
  }
}

}  // namespace
}  // namespace ridgeline::engine
