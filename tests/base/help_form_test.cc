#include "base/help_form.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline {
namespace {

TEST(WrapHelp, BreaksLongLinesBetweenWords) {
  const std::string forty = "0123456789 123456789 123456789 123456789";
  EXPECT_EQ(WrapHelp(forty), forty);
  EXPECT_EQ(WrapHelp(forty + " " + forty), forty + " 0123456789 123456789 123456789\n123456789");
}

TEST(WrapHelp, KeepsParagraphsAndExamples) {
  const std::string example = "  ridgeline run " + std::string(90, 'x') + " y";
  EXPECT_EQ(WrapHelp("One.\n\nTwo:\n" + example), "One.\n\nTwo:\n" + example);
}

TEST(WrapHelp, IndentsWhatFollowsAName) {
  const std::string word(30, 'w');
  EXPECT_EQ(WrapHelp(word + " " + word, 26, 26), word + "\n" + std::string(26, ' ') + word);
}

TEST(WrapHelp, LeavesAWordThatIsTooLong) {
  const std::string word(200, 'w');
  EXPECT_EQ(WrapHelp("a " + word + " b"), "a\n" + word + "\nb");
}

}  // namespace
}  // namespace ridgeline
