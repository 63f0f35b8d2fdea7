#include "node/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include <thread>
#include <utility>

#include "base/process.h"
#include "tests/base/eventually.h"
#include "tests/base/no_files_left.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::node {
namespace {

using testing::Eventually;

TEST(ProcessTree, CountsTheProcessorTimeOfWhatDescendsAndNotOurOwn) {
  constexpr int64_t kTenthNs = 100'000'000;
  const TempDir dir;
  const std::filesystem::path shell = dir / "a) 1 (2";  // a name may look like the figures that follow it
  std::filesystem::create_symlink("/bin/sh", shell);
  ProcessTree tree;
  tree.End();  // ends processes that earlier tests left to this process
  EXPECT_EQ(tree.UsedNs(), 0);
  Child::Spawn({"sleep", "600"});
  EXPECT_LT(tree.UsedNs(), kTenthNs);
  Child::Spawn({shell, "-c", "while :; do :; done"});
  EXPECT_TRUE(Eventually([&] { return tree.UsedNs() >= 3 * kTenthNs; }));
  EXPECT_LT(tree.UsedNs(), 6'000 * kTenthNs) << "no other figure of its line";
  tree.End();
  EXPECT_EQ(tree.UsedNs(), 0);
}

TEST(ProcessTree, CountsWhatIsWritten) {
  ProcessTree tree;
  tree.End();
  Child::Spawn({"/bin/sh", "-c", "printf '%2000000s' x >/dev/null; kill -STOP $$"});
  EXPECT_TRUE(Eventually([&] { return tree.WrittenBytes() >= 2'000'000; }));
  tree.End();
  EXPECT_EQ(tree.WrittenBytes(), 0);
}

TEST(ProcessTree, DoesNotLookEmptyWhenNothingCanBeOpened) {
  ProcessTree tree("no process has this mark");
  ASSERT_TRUE(tree.End());
  Child::Spawn({"sleep", "600"});
  ASSERT_TRUE(Eventually([&] { return tree.HeldBytes() > 0; }));
  {
    const NoFilesLeft none;
    EXPECT_EQ(tree.All(), std::nullopt);
    EXPECT_EQ(tree.Marked(), std::nullopt);
    EXPECT_EQ(tree.HeldBytes(), std::nullopt);
    EXPECT_EQ(tree.ProportionalBytes(), std::nullopt);
    EXPECT_EQ(tree.WrittenBytes(), std::nullopt);
    EXPECT_EQ(tree.UsedNs(), std::nullopt);
    EXPECT_EQ(ResidentOf(::getpid()).has_value(), false);
  }
  EXPECT_EQ(tree.All()->size(), 1U);
  EXPECT_EQ(tree.Marked()->size(), 0U);
  EXPECT_TRUE(tree.End());
  EXPECT_EQ(tree.All()->size(), 0U);
}

TEST(ProcessTree, EndWaitsUntilItCanLook) {
  ProcessTree tree;
  ASSERT_TRUE(tree.End());
  const Child child = Child::Spawn({"sleep", "600"});
  std::optional<NoFilesLeft> none(std::in_place);
  std::jthread later([&] {
    ::usleep(200'000);
    none.reset();
  });
  EXPECT_TRUE(tree.End());
  EXPECT_NE(::kill(child.pid(), 0), 0);
}

TEST(ProcessTree, EndSaysThatItCouldNotLook) {
  ProcessTree tree;
  ASSERT_TRUE(tree.End());
  {
    const NoFilesLeft none;
    EXPECT_TRUE(tree.End()) << "the kernel says that no child is left";
  }
  Child::Spawn({"sleep", "600"});
  {
    const NoFilesLeft none;
    EXPECT_FALSE(tree.End());
  }
  EXPECT_TRUE(tree.End());
}

}  // namespace
}  // namespace ridgeline::node
