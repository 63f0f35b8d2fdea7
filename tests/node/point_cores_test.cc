#include "node/point_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const AllowedCores kWholeMachine{{0, 1, 2, 3}, 0, false};
const AllowedCores kPart{{4, 5, 6}, 0, true};

TEST(PointCores, CoresOfAWholeMachineAreCountedAndNotPinned) {
  const PointCores two = CoresFor(2, kWholeMachine, "");
  EXPECT_EQ(two.ids.size(), 2U);
  EXPECT_FALSE(two.own) << "another pod of the node would be pinned to the same two";
  EXPECT_THAT(two.among, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(two.share(), 0.5);
  const PointCores all = CoresFor(0, kWholeMachine, "");
  EXPECT_EQ(all.ids.size(), 4U);
  EXPECT_FALSE(all.own);
  EXPECT_EQ(all.share(), 1);
}

TEST(PointCores, CoresFromALauncherAreOurs) {
  const PointCores two = CoresFor(2, kWholeMachine, "0,1,2,3");
  EXPECT_TRUE(two.own);
  EXPECT_THAT(two.ids, ElementsAre(0, 1));
  EXPECT_THAT(two.among, ElementsAre(0, 1));
  EXPECT_EQ(two.share(), 1);
  EXPECT_FALSE(CoresFor(2, kWholeMachine, "0,1").own) << "said to somebody else, of other cores";
}

TEST(PointCores, CutOutAsTheyWereAskedForAreOurs) {
  EXPECT_TRUE(CoresFor(3, kPart, "").own);
  EXPECT_TRUE(CoresFor(0, kPart, "").own);
  EXPECT_TRUE(CoresFor(8, kPart, "").own);
  EXPECT_FALSE(CoresFor(2, kPart, "").own) << "what many share may be a part of the machine, too";
}

TEST(PointCores, AreNeverMoreThanTheQuota) {
  AllowedCores cores = kPart;
  cores.quota = 2;
  EXPECT_THAT(CoresFor(0, cores, "").ids, ElementsAre(4, 5));
  EXPECT_FALSE(CoresFor(0, cores, "").own) << "a quota is how others get their part of these";
  EXPECT_EQ(CoresFor(1, cores, "").ids.size(), 1U);
  cores.quota = 0.25;
  EXPECT_EQ(CoresFor(2, cores, "").ids.size(), 1U);
}

TEST(PointCores, AreUnknownIfNothingTellsThem) {
  const PointCores none = CoresFor(2, {}, "");
  EXPECT_THAT(none.ids, IsEmpty());
  EXPECT_FALSE(none.own);
  EXPECT_EQ(none.share(), 1);
}

}  // namespace
}  // namespace ridgeline::node
