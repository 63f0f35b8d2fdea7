#include "node/process_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/process.h"
#include "tests/base/eventually.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
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

}  // namespace
}  // namespace ridgeline
