#include "base/user_folders.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace ridgeline {
namespace {

// Restores the environment after each test.
class UserFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
  }
  void TearDown() override {
    SetUp();
    ::setenv("HOME", home_.c_str(), 1);
  }

  const std::string home_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
};

TEST_F(UserFolders, LieWhereTheEnvironmentSays) {
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(ConfigFolder(), "/home/ada/.config/ridgeline");
  EXPECT_EQ(CacheFolder(), "/home/ada/.cache/ridgeline");
  ::setenv("XDG_CONFIG_HOME", "/etc/ada", 1);
  ::setenv("XDG_CACHE_HOME", "/var/ada", 1);
  EXPECT_EQ(ConfigFolder(), "/etc/ada/ridgeline");
  EXPECT_EQ(CacheFolder(), "/var/ada/ridgeline");
}

TEST_F(UserFolders, AreUnknownIfNoVariableHasAnAbsolutePath) {
  ::setenv("XDG_CACHE_HOME", "cache", 1);
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(CacheFolder(), "/home/ada/.cache/ridgeline");
  ::setenv("HOME", "ada", 1);
  EXPECT_EQ(CacheFolder(), std::nullopt);
  ::unsetenv("HOME");
  EXPECT_EQ(CacheFolder(), std::nullopt);
  EXPECT_EQ(ConfigFolder(), std::nullopt);
}

}  // namespace
}  // namespace ridgeline
