// Audits every page of `ridgeline report all` and of `ridgeline serve` for readers with low vision, with a phone or
// keyboard, or on paper: on a small, a usual and a large screen, light and dark, and printed. Uses axe-core from the
// developer tools of Debian's Chromium (axe_core.py), with all its default rules, and our own script (audit.js) for
// what axe-core does not check, such as cut words, paper and focus. Passing them does not replace a person's judgement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "regress/gate.h"
#include "regress/gate_forms.h"
#include "report/index.h"
#include "report/report.h"
#include "tests/report/sample.h"
#include "tests/serve/watched_sweep.h"
#include "tests/serve/web_driver.h"

namespace ridgeline::serve {
namespace {

using ::testing::Contains;
using testing::HasProgram;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::WebDriver;

// A store with something for every report.
void FillEverything(store::Store& store) {
  report_sample::FillSample(store);
  for (int night = 1; night <= 12; ++night) {
    report_sample::Runs runs(store);
    for (const int batch : {1, 2}) {
      RunResult& result = runs.Add({{"model", "llama-5m"}, {"batch_size", batch}});
      const double factor = (night > 7 ? 1.1 : 1.0) * (1 + 0.002 * ((night * 7) % 5));
      for (int64_t& ns : result.step_ns.all_ns) ns = static_cast<int64_t>(static_cast<double>(ns) * factor);
      result.step_ns.median_ns = static_cast<int64_t>(static_cast<double>(result.step_ns.median_ns) * factor);
      result.environment["git_commit"] = std::to_string(night) + "b5e3f9a0c";
      result.started_unix_ns = (1'700'000'000 + night * 86'400) * int64_t{1'000'000'000};
      result.ended_unix_ns = result.started_unix_ns + int64_t{60'000'000'000};
    }
    runs.Put("nights", "night-" + std::to_string(night));
  }
  report_sample::Runs others(store);
  RunResult& crashed = others.Add({{"model", "llama-10m"}, {"batch_size", 3}}, RunStatus::kCrashed);
  crashed.message = "killed by signal 11";
  crashed.evidence = {{"signal", "11"}, {"log_tail", "a first line\na second line of its log\nand how it ended\n"}};
  others.Add({{"model", "llama-10m"}, {"ranks", 2}, {"shard", "full"}});
  others.Add({{"model", "llama-10m"}, {"ranks", 4}, {"tensor_parallel", 2}, {"shard", "full"}, {"batch_size", 2}});
  RunResult& ranks = others.Add({{"model", "llama-10m"}, {"ranks", 4}, {"shard", "full"}});
  ranks.evidence["rank_step_ns"] = "[100000000,101000000,100000000,100000000]";
  ranks.evidence["rank_wait_ns"] = "[40000000,2000000,38000000,41000000]";
  for (const char* precision : {"fp32", "bf16", "fp8"}) {
    for (const int seed : {1, 2}) {
      RunResult& result = others.Add(
          {{"model", "llama-5m"}, {"precision", precision}, {"seed", seed}, {"steps", 120}, {"data", "/text"}});
      for (int step = 1; step <= 122; ++step) {
        result.loss.push_back(2 + 40.0 / (10 + step) + 0.01 * seed);
      }
      result.emulated = precision == std::string("fp8");
    }
  }
  for (const int length : {64, 256}) others.Add({{"model", "llama-10m"}, {"seq_length", length}});
  RunResult predicted = others.Add({{"model", "llama-10m"}, {"batch_size", 4}});
  others.Put("others");
  predicted.provenance = Provenance::kPredicted;
  predicted.evidence = {{"step_low_ns", "1"}, {"step_high_ns", "1000000000"}};
  store.AddResults(std::vector<store::NewResult>{{predicted, "", 0, {"predicted", R"({"predicted_on":"here"})"}}});
}

regress::Gate SampleGate() {
  regress::Gate gate;
  gate.head = "night-12";
  gate.baseline = "night-*";
  for (const regress::GateAnswer answer : {regress::GateAnswer::kRegressed, regress::GateAnswer::kMissing,
                                           regress::GateAnswer::kInconclusive, regress::GateAnswer::kPass}) {
    regress::GateFinding& finding = gate.findings.emplace_back();
    finding.metric =
        answer == regress::GateAnswer::kMissing ? regress::GateMetric::kResult : regress::GateMetric::kStepTime;
    finding.answer = answer;
    finding.point = "batch_size=" + std::to_string(gate.findings.size());
    finding.words = "as it was found";
    if (answer == regress::GateAnswer::kMissing) continue;
    finding.base = 1e8;
    finding.head = 1.03e8;
    finding.change = 0.03;
    finding.detectable = 0.02;
    if (answer != regress::GateAnswer::kRegressed) continue;
    finding.low = 0.02;
    finding.high = 0.04;
  }
  return gate;
}

class Audit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasProgram("chromedriver") || !HasProgram("chromium")) {
      GTEST_SKIP() << "chromium or chromedriver is not installed; packages.txt has them (chromium-driver)";
    }
#ifdef RIDGELINE_SANITIZED
    GTEST_SKIP() << "a browser looks at these pages in a build without sanitizers, which writes the same";
#endif
    browser_.emplace();
    const Captured literal = ridgeline::Run({SourceOf("tests/serve/axe_core.py"), "/usr/lib/chromium/resources.pak"});
    ASSERT_TRUE(literal.status.ok())
        << "no axe-core in Chromium's developer tools, or no python3-brotli (packages.txt): " << literal.stderr_text;
    axe_core_ = browser_->Script("return " + literal.stdout_text).get<std::string>();
  }
  static std::string SourceOf(const char* file) { return std::filesystem::path(RIDGELINE_SOURCE_DIR) / file; }

  // The faults of the page, with the looks in which they occur.
  std::vector<std::string> Wrong(const std::string& address) {
    struct Seen {
      const char* words;
      int width;
      const char* scheme;
      const char* media;
      bool axe;  // axe-core takes seconds on large pages, so it sees a usual screen and a small dark one
    };
    // A landscape A4 sheet without its margins, printed from a dark screen.
    static constexpr Seen kLooks[] = {
        {"1280 px", 1280, "light", "screen", true},  {"1280 px, dark", 1280, "dark", "screen", false},
        {"320 px", 320, "light", "screen", false},   {"320 px, dark", 320, "dark", "screen", true},
        {"3840 px", 3840, "light", "screen", false}, {"paper", 1032, "dark", "print", false}};
    static const std::string kScript = ReadFile(SourceOf("tests/serve/audit.js"));
    browser_->Look(1280, "light");
    browser_->Go(address);
    browser_->Script(axe_core_);
    std::map<std::string, std::string> looks;  // the looks with this fault
    for (const Seen& look : kLooks) {
      browser_->Look(look.width, look.scheme, look.media);
      Json faults = browser_->Script(kScript, {look.media, &look == kLooks});
      if (look.axe) {
        for (Json& fault : browser_->ScriptThatAnswers(kAxe)) faults.push_back(std::move(fault));
      }
      for (const Json& fault : faults) {
        std::string& words = looks[fault.get<std::string>()];
        words += (words.empty() ? "" : "; ") + std::string(look.words);
      }
    }
    std::vector<std::string> wrong;
    for (const auto& [fault, words] : looks) wrong.push_back(fault + " (" + words + ")");
    return wrong;
  }

  // axe-core's findings, one per line.
  static constexpr const char* kAxe = R"(const answer = arguments[arguments.length - 1];
    axe.run({resultTypes: ['violations']}).then(
      (found) => answer(found.violations.flatMap((rule) => rule.nodes.map(
          (node) => `axe-core's ${rule.id}: ${rule.help}: ${node.target.join(' ')}`))),
      (error) => answer([`axe-core: ${error}`]));)";

  TempDir dir_;
  std::optional<WebDriver> browser_;
  std::string axe_core_;  // axe-core's source
};

// Audits every second report, or the others.
class AuditOfReports : public Audit, public ::testing::WithParamInterface<size_t> {};

TEST_P(AuditOfReports, FindsNothing) {
  store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  FillEverything(store);
  std::vector<report::IndexEntry> entries;
  for (const std::filesystem::path& folder :
       report::FindReports({std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports"})) {
    const report::Report report = report::LoadReportFolder(folder);
    report::RenderOptions options{"", report::ReportFormat::kHtml};
    options.all_measurements = report.name == "compare";
    options.input = regress::GateJson(SampleGate());
    const report::RenderedReport page = report::Render(report, store, options);
    EXPECT_GT(page.runs, 0) << report.name << " has nothing to look at";
    const std::string file = report.name + ".html";
    WriteFile(dir_ / file, page.bytes);
    entries.push_back({file, report.title, report.description, page.counts, page.answers});
  }
  WriteFile(dir_ / "index.html", report::RenderIndex("Reports", entries));
  entries.push_back({"index.html", "", "", "", {}});
  for (size_t i = GetParam(); i < entries.size(); i += 2) {
    EXPECT_THAT(Wrong("file://" + (dir_ / entries[i].file).string()), IsEmpty()) << entries[i].file;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, AuditOfReports, ::testing::Values(0, 1));

TEST_F(Audit, FindsNothingInAnyPageThatIsServed) {
  const ReservedPort port;
  {
    store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
    FillEverything(store);
  }
  SpawnOptions options;
  options.work_dir = dir_.path();
  options.stdout_file = options.stderr_file = dir_ / "serve";
  options.die_with_parent = true;
  const std::string at = "127.0.0.1:" + std::to_string(port.number());
  Child server =
      Child::Spawn({std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline", "serve", "--listen", at}, options);
  httplib::Client client("127.0.0.1", static_cast<int>(port.number()));
  ASSERT_TRUE(testing::Eventually([&] { return client.Get("/metrics"); })) << ReadFile(dir_ / "serve");
  std::string crashed;
  std::string point;
  {
    store::Store store = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadOnly);
    crashed = CellText(store.Query("SELECT result FROM measurements WHERE status = 'crashed'").rows.at(0).at(0));
    point = CellText(store.Query("SELECT point_id FROM measurements WHERE campaign = 'night-2'").rows.at(0).at(0));
  }
  for (const std::string& page :
       {std::string("/"), std::string("/runs"), std::string("/runs/1"), "/runs/" + crashed,
        std::string("/sweeps/nights"), std::string("/nights"), std::string("/history"), "/history/" + point,
        std::string("/compare"), std::string("/compare?run=1&run=2"), std::string("/reports"),
        std::string("/reports/history"), std::string("/no-such-page")}) {
    EXPECT_THAT(Wrong("http://" + at + page), IsEmpty()) << page;
  }
  server.Signal(SIGTERM);
  server.Wait();
}

// A page of faults. An audit that misses these would find nothing anywhere.
TEST_F(Audit, FindsWhatIsWrong) {
  const std::string page = R"(<!DOCTYPE html><html><head><meta charset="utf-8"><title></title>
<style>
.pale { color: #999; background: #fff; } .wide { width: 2000px; } .cut { width: 50px; overflow: hidden; white-space: nowrap; }
.bare:focus { outline: none; } .box { width: 60px; height: 20px; overflow: auto; white-space: nowrap; }
.tiny { display: inline-block; width: 9px; height: 9px; padding: 0; border: 0; }
@media print { .gone { display: none; } .long { height: 10px; overflow: hidden; } }
</style></head><body>
<div>beside every landmark</div>
<main><h1>One</h1><h3>Three</h3><p class="pale">pale words</p><p id="a">twice</p><p id="a">twice</p>
<a href="#nowhere">leads on</a><button></button><button class="bare">no ring</button><input type="text">
<button class="tiny" aria-label="x"></button><button class="tiny" aria-label="y"></button>
<svg role="img" width="90" height="20"><text x="0" y="12" fill="#ccc">in a chart</text><rect width="9" height="9" fill="#eee"/></svg>
<p class="wide">wide</p><p class="cut">words that are longer than their box is</p>
<div class="box">words that are longer than their box is, and it scrolls</div>
<div class="long">line<br>line<br>line</div><details><summary>more</summary><p>folded</p></details>
<table><tr><th>a</th><td class="gone">b</td></tr></table><ul><p>no item</p></ul><p aria-labelledby="none">x</p>
</main></body></html>)";
  WriteFile(dir_ / "page.html", page);
  const std::vector<std::string> wrong = Wrong("file://" + (dir_ / "page.html").string());
  for (const char* fault : {"the document has no title",
                            "the document's language",
                            "viewport is",
                            "is in no landmark",
                            "comes after a heading of level 1",
                            "the id \"a\" is there twice",
                            "leads nowhere",
                            "<button> \"\" has no name",
                            "<input> \"\" has no name",
                            "<svg> \"in a chart\" has no name",
                            "has no scope",
                            "lies in a list and is no item",
                            "names \"none\", which is not there",
                            "does not show that it has the focus",
                            "\"pale words\" has a contrast of 2.8",
                            "\"in a chart\" has a contrast of 1.6",
                            "a rect of",
                            "px wide in a window of 320",
                            "is cut (1280 px",
                            "scrolls, and no key does it",
                            "px, and <button> \"\" is close to it",
                            "is not opened on paper",
                            "\"b\" is not on paper",
                            "<div> \"linelineline\" is cut (paper)"}) {
    EXPECT_THAT(wrong, Contains(HasSubstr(fault)));
  }
  for (const char* rule :
       {"document-title", "html-has-lang", "button-name", "color-contrast", "heading-order", "label"}) {
    EXPECT_THAT(wrong, Contains(HasSubstr("axe-core's " + std::string(rule) + ": ")));
  }
}

}  // namespace
}  // namespace ridgeline::serve
