// The page as a whole: well-formed, self-contained, and usable in a browser with and without its style and script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/files.h"
#include "base/process.h"
#include "report/assets.h"
#include "report/escape.h"
#include "report/svg.h"
#include "tests/base/policy_hash.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

bool OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (std::filesystem::exists(std::filesystem::path(rest.substr(0, colon)) / program)) return true;
    rest.erase(0, colon + 1);
  }
  return false;
}

// Why no browser loads a page; empty if one does. A sanitized build writes the same pages, and the browser would take
// most of the tests' time.
std::string NoBrowser() {
#ifdef RIDGELINE_SANITIZED
  return "a browser sees these pages in a build without sanitizers";
#else
  return OnPath("chromium") ? "" : "chromium is not installed; packages.txt has it";
#endif
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "no " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

class PageTest : public testing::Test {
 protected:
  void SetUp() override {
    store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
    report_sample::FillSample(store);
    html_ = Render(report_sample::ShippedReport(), store, {"sample", ReportFormat::kHtml}).bytes;
  }

  // The page's elements after a browser has loaded it; its complaints go to `complaints`.
  std::string Loaded(const std::string& html, std::string* complaints = nullptr) {
    const Captured run = Browse(html, {"--dump-dom"});
    if (complaints != nullptr) *complaints = run.stderr_text;
    return run.stdout_text;
  }

  // The text of each page of its print.
  std::vector<std::string> Printed(const std::string& html) {
    const std::string pdf = dir_ / "page.pdf";
    Browse(html, {"--no-pdf-header-footer", "--print-to-pdf=" + pdf});
    std::istringstream text(ridgeline::Run({"pdftotext", "-layout", pdf, "-"}).stdout_text);
    std::vector<std::string> pages;
    for (std::string page; std::getline(text, page, '\f');) pages.push_back(page);
    return pages;
  }

  Captured Browse(const std::string& html, const std::vector<std::string>& arguments) {
    WriteFileAtomic(dir_ / "page.html", html);
    std::vector<std::string> argv = {"chromium",
                                     "--headless",
                                     "--no-sandbox",
                                     "--disable-gpu",
                                     "--disable-quic",
                                     "--no-first-run",
                                     "--disable-background-networking",
                                     "--disable-component-update",
                                     "--disable-sync",
                                     "--disable-dev-shm-usage",
                                     "--enable-logging=stderr",
                                     "--user-data-dir=" + (dir_ / "profile").string()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    argv.push_back("file://" + (dir_ / "page.html").string());
    const Captured run = ridgeline::Run(argv, int64_t{120} * 1'000'000'000);
    EXPECT_TRUE(run.status.ok()) << Describe(run.status) << run.stderr_text;
    return run;
  }

  TempDir dir_;
  std::string html_;
};

TEST_F(PageTest, IsWellFormedWithUniqueIdsThatAllRefer) {
  const Elements elements = ParseXml(html_);
  const std::set<std::string> ids(elements.ids.begin(), elements.ids.end());
  EXPECT_EQ(ids.size(), elements.ids.size());
  for (const std::string& reference : elements.references) EXPECT_THAT(ids, Contains(reference));
  // A chart is drawn for a phone, a small screen, and a large one where it has all of its width. Two panels have four
  // charts, the middle two side by side; the third has three, the last two side by side.
  EXPECT_EQ(elements.Count("svg"), 2U * (3 + 2 + 2 + 3) + (3 + 2 + 2));
}

TEST_F(PageTest, IsWellFormedToXmllintToo) {
  if (!OnPath("xmllint")) GTEST_SKIP() << "xmllint is not installed; packages.txt has it (libxml2-utils)";
  WriteFileAtomic(dir_ / "page.html", html_);
  const Captured run = ridgeline::Run({"xmllint", "--noout", "--nonet", (dir_ / "page.html").string()});
  EXPECT_TRUE(run.status.ok()) << run.stderr_text;
}

TEST_F(PageTest, FetchesNothing) {
  const Elements elements = ParseXml(html_);
  for (const char* name : {"link", "img", "image", "iframe", "object", "use", "base", "form"}) {
    EXPECT_EQ(elements.Count(name), 0U) << name;
  }
  for (const char* name : {"src", "style", "srcset", "action"}) {
    EXPECT_THAT(elements.attributes, Not(Contains(name)));
  }
  EXPECT_THAT(Replaced(html_, "http://www.w3.org/1999/xhtml", ""), Not(HasSubstr("https:")));
  EXPECT_THAT(std::string(kPageStyle), Not(HasSubstr("url(")));
  EXPECT_THAT(std::string(kPageStyle), Not(HasSubstr("@import")));
}

// After an edit of assets.cc, the failure shows the hashes that it must have.
TEST_F(PageTest, AllowsItsOwnStyleAndScriptByHashAndNothingElse) {
  EXPECT_EQ(kPageStyleHash, PolicyHash(kPageStyle));
  EXPECT_EQ(kPageScriptHash, PolicyHash(kPageScript));
  EXPECT_THAT(html_, HasSubstr("content=\"default-src 'none'; style-src 'sha256-" + std::string(kPageStyleHash) +
                               "'; script-src 'sha256-" + std::string(kPageScriptHash) +
                               "'; base-uri 'none'; form-action 'none'\""));
  EXPECT_THAT(std::string(kPageStyle), HasSubstr(fmt::format("text[fill=\"{}\"]", svg::kFailureColour)))
      << "a failure's words are as easy to read in the dark";
  EXPECT_EQ(std::string(kPageStyle).find_first_of("<&"), std::string::npos);
  EXPECT_EQ(std::string(kPageScript).find_first_of("<&"), std::string::npos);
}

// On a large screen and on a phone, the page looks as it did when a person last checked it.
TEST_F(PageTest, LooksAsItDid) {
  if (const std::string why = NoBrowser(); !why.empty()) GTEST_SKIP() << why;
  const std::string program = RIDGELINE_SOURCE_DIR "/tests/report/pictures.py";
  for (const auto& [name, size] : {std::pair{"wide", "1400,1800"}, {"phone", "390,1800"}}) {
    const std::string seen = dir_ / (name + std::string(".png"));
    const std::string kept = fmt::format(RIDGELINE_SOURCE_DIR "/tests/golden/report/sample-{}.png", name);
    const std::vector<std::string> options = {"--hide-scrollbars", "--force-device-scale-factor=1",
                                              fmt::format("--window-size={}", size), "--screenshot=" + seen};
    Browse(html_, options);
    if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) ridgeline::Run({program, "keep", seen, kept});
    const Captured compared = ridgeline::Run({program, "compare", seen, kept});
    EXPECT_TRUE(compared.status.ok()) << compared.stdout_text << compared.stderr_text
                                      << "RIDGELINE_UPDATE_GOLDENS=1 keeps it as it is now: look at it";
    // A page without its style looks different.
    Browse(Replaced(html_, "<style>", "<style media=\"speech\">"), options);
    EXPECT_FALSE(ridgeline::Run({program, "compare", seen, kept}).status.ok());
  }
}

TEST_F(PageTest, LivesInABrowserUnderItsOwnPolicy) {
  if (const std::string why = NoBrowser(); !why.empty()) GTEST_SKIP() << why;
  std::string complaints;
  const std::string page = Loaded(html_, &complaints);
  EXPECT_THAT(complaints, Not(HasSubstr("Refused to")));
  EXPECT_EQ(CountOf(page, "<tr class=\"failed\">"), 4U);
  EXPECT_GT(CountOf(page, "<button"), 30U) << "the script did not run";
  // A click on "steady" in the first table sorts the smallest first, and rows without a value last.
  const std::string click =
      "<script>for (const b of document.querySelectorAll('table[data-sort] button')) "
      "if (b.textContent === 'steady') b.click();</script></body>";
  const std::string policy = html_.substr(html_.find("<meta http-equiv"),
                                          html_.find("<meta name=\"viewport\"") - html_.find("<meta http-equiv"));
  const std::string sorted = Loaded(Replaced(Replaced(html_, policy, ""), "</body>", click));
  const size_t table = sorted.find("llama-25m, bf16, sequence 512</h2>");
  ASSERT_NE(table, std::string::npos);
  const std::string rows =
      sorted.substr(sorted.find("<tbody>", table), sorted.find("</tbody>", table) - sorted.find("<tbody>", table));
  std::vector<size_t> places;
  for (const char* value : {"819.2", "963.7", "1024", "1456.3", "1542.0"}) {
    places.push_back(rows.find("data-v=\"" + std::string(value)));
    EXPECT_NE(places.back(), std::string::npos) << value;
  }
  places.push_back(rows.find("class=\"failed\""));
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << rows;
}

TEST_F(PageTest, LosesOnlyLooksUnderTheStrictestPolicy) {
  if (const std::string why = NoBrowser(); !why.empty()) GTEST_SKIP() << why;
  const std::string strict = Replaced(html_, "<head>",
                                      "<head><meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                                      "'none'\"/>");
  const std::string page = Loaded(strict);
  EXPECT_EQ(CountOf(page, "<button"), 0U) << "the script ran";
  EXPECT_EQ(CountOf(page, "<tr"), CountOf(html_, "<tr"));
  EXPECT_EQ(CountOf(page, "<rect"), CountOf(html_, "<rect"));
}

TEST_F(PageTest, ATableThatGoesOnOnAnotherSheetHasItsHeadingsThere) {
  if (const std::string why = NoBrowser(); !why.empty()) GTEST_SKIP() << why;
  if (!OnPath("pdftotext")) GTEST_SKIP() << "pdftotext is not installed; packages.txt has it (poppler-utils)";
  store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  report_sample::Runs runs(store);
  for (int batch = 1; batch <= 60; ++batch) runs.Add({{"model", "llama-10m"}, {"batch_size", batch}});
  runs.Put("long");
  const auto html = Render(report_sample::ShippedReport(), store, {"long", ReportFormat::kHtml}).bytes;
  size_t sheets = 0;
  for (const std::string& page : Printed(html)) {
    if (page.find("\nnone ") == std::string::npos) continue;
    ++sheets;
    EXPECT_THAT(page, AllOf(HasSubstr("Policy"), HasSubstr("steady"), HasSubstr("planned")));
  }
  EXPECT_GT(sheets, 1U);
}

// In frames as wide as a page and as a phone.
TEST_F(PageTest, TablesAreNoWiderThanTheirPage) {
  if (const std::string why = NoBrowser(); !why.empty()) GTEST_SKIP() << why;
  store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  report_sample::Runs runs(store);
  for (const int ranks : {1, 2, 4}) {
    runs.Add({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", ranks == 4 ? "full" : "none"}}).device =
        "Example CPU of a long name (" + std::to_string(64 / ranks) + " cores)";
  }
  runs.Put("ranks");
  std::string page = "<!DOCTYPE html><meta charset=\"utf-8\"><body>";
  for (const char* report : {"activation-checkpointing", "precision", "scaling"}) {
    const std::string html = Render(report_sample::ShippedReport(report), store, {"", ReportFormat::kHtml}).bytes;
    for (const int width : {1400, 390}) {
      page += fmt::format(
          "<iframe title=\"{0} at {1}\" width=\"{1}\" height=\"800\" scrolling=\"no\" srcdoc=\"{2}\"></iframe>", report,
          width, EscapeHtml(html));
    }
  }
  page +=
      "<script>onload = () => { const said = []; for (const frame of document.querySelectorAll('iframe')) "
      "for (const box of frame.contentDocument.querySelectorAll('.scroll')) said.push("
      "frame.title + (box.scrollWidth > box.clientWidth ? ' is too wide' : ' fits')); "
      "document.body.textContent = said.join('; '); };</script>";
  const std::string said = Loaded(page);
  EXPECT_THAT(said, Not(HasSubstr("too wide")));
  for (const char* fits : {"activation-checkpointing at 390 fits", "precision at 1400 fits", "scaling at 390 fits"}) {
    EXPECT_THAT(said, HasSubstr(fits));
  }
}

}  // namespace
}  // namespace ridgeline::report
