// Watches a sweep in a browser from its start to its end, then filters, opens and compares its runs: with scripts, and
// without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serve/watched_sweep.h"
#include "tests/serve/web_driver.h"

namespace ridgeline::serve {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using testing::HasProgram;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WatchedSweep;
using testing::WebDriver;

TEST(Browser, WatchesASweepFromStartToEndFiltersOpensAndCompares) {
  if (!HasProgram("chromedriver") || !HasProgram("chromium")) {
    GTEST_SKIP() << "chromium or chromedriver is not installed; packages.txt has them (chromium-driver)";
  }
  WatchedSweep watched(3);
  watched.StartServer();
  WebDriver browser;
  browser.Go(watched.Address() + "/");
  EXPECT_THAT(browser.Text("#live").value_or(""), HasSubstr("there is no database"));

  // From here on the page is not reloaded: it receives changes.
  browser.Script("window.stays = true");
  watched.StartRun();
  const auto shows = [&](const std::string& words) { return Eventually([&] { return browser.Shows(words); }); };
  ASSERT_TRUE(shows("0 of 3 points are done")) << browser.Text("body").value_or("");
  ASSERT_TRUE(shows("0/6"));
  watched.Tell(1, 3);
  ASSERT_TRUE(shows("3/6"));
  EXPECT_TRUE(browser.Shows("seed=1")) << "what tells the point from its neighbours";
  EXPECT_TRUE(browser.Shows("1.00K"));
  EXPECT_TRUE(browser.Shows("2.5"));
  EXPECT_TRUE(browser.Shows("is at work"));
  watched.Tell(1, 6);
  ASSERT_TRUE(shows("1 of 3 points are done"));
  watched.Tell(2, 6);
  watched.Tell(3, 6);
  ASSERT_TRUE(shows("Nothing runs now."));
  ASSERT_TRUE(watched.RunEnds());
  EXPECT_EQ(browser.Script("return window.stays === true"), true);

  browser.FollowLink("watched");
  EXPECT_THAT(browser.Text("h1").value_or(""), "watched");
  browser.FollowLink("All its runs");
  EXPECT_THAT(browser.Address(), HasSubstr("/runs?sweep=watched"));
  browser.Click("select[name=status] option[value=crashed]");
  browser.Follow("form.filters button");
  EXPECT_THAT(browser.Address(), AllOf(HasSubstr("sweep=watched"), HasSubstr("status=crashed")));
  EXPECT_TRUE(browser.Shows("No runs."));
  browser.Back();
  ASSERT_TRUE(shows("3 runs, the newest first: sweep watched"));

  browser.Click("tbody tr:nth-child(1) input[name=run]");
  browser.Click("tbody tr:nth-child(3) input[name=run]");
  browser.Follow("form[action='/compare'] button.do");
  ASSERT_TRUE(shows("2 runs; changes are against the first"));
  EXPECT_THAT(browser.Text("table").value_or(""), AllOf(HasSubstr("median step"), HasSubstr("seed")));
  EXPECT_EQ(browser.Script("return document.querySelectorAll('figure').length > 0"), true);

  browser.Go(watched.Address() + "/runs");
  browser.Follow("tbody tr:nth-child(1) a");
  EXPECT_THAT(browser.Title(), HasSubstr("Run "));
  ASSERT_TRUE(shows("steady_tokens_per_s"));
  browser.FollowLink("History of this configuration");
  EXPECT_THAT(browser.Address(), HasSubstr("/history/"));
  browser.FollowLink("Reports");
  browser.Follow("tbody tr:nth-child(1) a");
  EXPECT_THAT(browser.Address(), HasSubstr("/reports/"));
  EXPECT_THAT(browser.Console(), Not(HasSubstr("Content Security Policy"))) << "a page needs what its policy forbids";
}

// No page is wider than a phone's screen, whatever its tables contain.
TEST(Browser, PagesFitAPhone) {
  if (!HasProgram("chromedriver") || !HasProgram("chromium")) {
    GTEST_SKIP() << "chromium or chromedriver is not installed; packages.txt has them (chromium-driver)";
  }
  WatchedSweep watched(2);
  watched.Tell(1, 6);
  watched.Tell(2, 6);
  watched.StartRun();
  ASSERT_TRUE(watched.RunEnds());
  watched.StartServer();
  WebDriver browser;
  browser.Resize(390, 844);
  browser.Go(watched.Address() + "/history");
  browser.Follow("tbody tr:nth-child(1) a");
  const std::string history = browser.Address();
  for (const std::string& address :
       {watched.Address() + "/", watched.Address() + "/runs", watched.Address() + "/runs/1",
        watched.Address() + "/sweeps/watched", watched.Address() + "/history", history,
        watched.Address() + "/compare?run=1&run=2", watched.Address() + "/reports"}) {
    browser.Go(address);
    EXPECT_EQ(browser.Script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        << address;
  }
}

TEST(Browser, PagesSayTheSameWithoutScripts) {
  WatchedSweep watched(1);
  watched.Tell(1, 6);
  watched.StartRun();
  ASSERT_TRUE(watched.RunEnds());
  watched.StartServer();
  const std::string page = watched.Get("/").value_or("");
  EXPECT_THAT(page, AllOf(HasSubstr("<noscript><meta http-equiv=\"refresh\""), HasSubstr("/sweeps/watched")))
      << "what scripts would replace is there, and comes anew";
  EXPECT_THAT(watched.Get("/runs").value_or(""), Not(HasSubstr("http-equiv=\"refresh\"")));
}

}  // namespace
}  // namespace ridgeline::serve
