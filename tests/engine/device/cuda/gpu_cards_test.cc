#include "engine/device/cuda/gpu_cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/fakes/fake_nvml.h"

namespace ridgeline::engine {
namespace {

using ::testing::HasSubstr;

class GpusFound : public ::testing::Test {
 protected:
  GpusFound() { ThisCard() = &card_; }
  FakeCard card_;
};

TEST_F(GpusFound, AreListedWithTheSignsOfTheirHealth) {
  GpuCards found = FindGpuCards(FakeNvml);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.driver, "580.65.06");
  ASSERT_EQ(found.cards.size(), 1U);
  EXPECT_EQ(found.cards[0].name, "An Example GPU");
  EXPECT_EQ(found.cards[0].pci_bus_id, card_.bus_id);
  EXPECT_EQ(found.cards[0].memory_bytes, 80LL << 30);
  EXPECT_EQ(found.cards[0].ecc_corrected, 7);
  EXPECT_EQ(found.cards[0].ecc_uncorrected, 0);
  EXPECT_FALSE(found.cards[0].mig || found.cards[0].repair_pending || found.cards[0].repair_failed);
  card_.mig = true;
  card_.repair_pending = 1;
  card_.says = {{"ecc", kNvmlNotSupported}, {"rows", kNvmlNotSupported}};
  found = FindGpuCards(FakeNvml);
  EXPECT_TRUE(found.cards.at(0).mig && found.cards.at(0).repair_pending);
  EXPECT_EQ(found.cards.at(0).ecc_corrected, std::nullopt);
  EXPECT_EQ(card_.sessions, 0);
}

TEST_F(GpusFound, OrWhatIsMissing) {
  GpuCards found = FindGpuCards(NoNvml);
  EXPECT_THAT(found.problem, HasSubstr("NVML cannot be loaded"));
  EXPECT_EQ(found.hint, "install it");
  card_.says = {{"index", kNvmlNoPermission}};
  EXPECT_EQ(FindGpuCards(FakeNvml).problem, "1 of 1 GPUs cannot be asked");
  EXPECT_EQ(FindGpuCards(OldNvml).problem, "the driver sees no GPU");
  card_.begins = kNvmlVersionMismatch;
  found = FindGpuCards(FakeNvml);
  EXPECT_TRUE(found.cards.empty());
  EXPECT_THAT(found.hint, HasSubstr("the driver was updated"));
}

}  // namespace
}  // namespace ridgeline::engine
