#include "base/file_system.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(NetworkFileSystem, IsKnownByItsNumber) {
  EXPECT_EQ(NetworkFileSystemName(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystemName(0x0BD00BD0), "Lustre");
  EXPECT_EQ(NetworkFileSystemName(0xFF534D42), "CIFS");
  for (const uint32_t local : {0xEF53U, 0x58465342U, 0x9123683EU, 0x01021994U, 0x794C7630U, 0x2FC12FC1U}) {
    EXPECT_EQ(NetworkFileSystemName(local), "") << local;  // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS
  }
}

TEST(NetworkFileSystem, AMissingPathHasTheFileSystemOfItsFolder) {
  EXPECT_EQ(NetworkFileSystemOf("/proc/none/of/these"), "");
  EXPECT_EQ(NetworkFileSystemOf("none-here"), NetworkFileSystemOf("."));
}

}  // namespace
}  // namespace ridgeline
