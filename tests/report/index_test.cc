// The page that lists pages.
#include "report/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportIndex, ListsPagesWithTheirAnswersAndWhatHasNone) {
  const std::string page = RenderIndex("Reports", {{"a.html", "A", "What it is.", "3 runs.", {"p: it is <fast>"}},
                                                   {"", "b", "", "It has no page: <b>", {}}});
  const Elements elements = ParseXml(page);
  EXPECT_EQ(elements.Count("section"), 2);
  EXPECT_EQ(elements.Count("a"), 1);
  EXPECT_THAT(page, HasSubstr("<a href=\"a.html\">A</a>"));
  EXPECT_THAT(page, HasSubstr("it is &lt;fast&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

}  // namespace
}  // namespace ridgeline::report
