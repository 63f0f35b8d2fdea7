// The pages themselves: well-formed, escaped, and correct for a store with known figures.
#include "serve/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "base/files.h"
#include "regress/nights.h"
#include "report/assets.h"
#include "ridgeline/job_dir.h"
#include "serve/gzip.h"
#include "serve/markup.h"
#include "serve/page_cache.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/base/eventually.h"
#include "tests/base/policy_hash.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"
#include "tests/report/xml.h"
#include "tests/store/samples.h"

namespace ridgeline::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SiteTest : public ::testing::Test {
 protected:
  std::filesystem::path Db() const { return dir_ / "ridgeline.db"; }
  store::Store Open() { return store::Store::Open(Db(), store::Store::Mode::kReadWrite); }
  void FillSample() {
    store::Store store = Open();
    report_sample::FillSample(store);
  }

  PageAnswer Get(const std::string& path, const QueryValues& query = {}, const std::string& accept = {}) {
    return site_.Answer({path, query, accept});
  }
  // An existing page, which must be well-formed.
  std::string Page(const std::string& path, const QueryValues& query = {}) {
    PageAnswer answer = Get(path, query);
    if (answer.status == 302) answer = Get(answer.location);
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    const report::Elements elements = report::ParseXml(answer.body);
    const std::set<std::string> ids(elements.ids.begin(), elements.ids.end());
    EXPECT_EQ(ids.size(), elements.ids.size()) << path << " has an id twice";
    EXPECT_EQ(answer.policy, PagePolicy());
    return answer.body;
  }
  int64_t NumberOf(const std::string& sql) {
    store::Store store = Open();
    return std::get<int64_t>(store.Query(sql).rows.at(0).at(0));
  }

  TempDir dir_;
  FakeClock clock_;
  Site site_{Db(), {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports"}, clock_};
};

TEST_F(SiteTest, SaysThatThereIsNothingYet) {
  EXPECT_THAT(Page("/"), HasSubstr("there is no database"));
  EXPECT_EQ(Get("/runs").status, 404);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("ridgeline_build_info"));
  Open();
  clock_.SleepNs(2'000'000'000);
  EXPECT_THAT(Page("/"), AllOf(HasSubstr("Nothing runs now."), HasSubstr("No sweeps yet")));
  for (const char* path : {"/runs", "/history", "/nights", "/compare", "/reports"}) Page(path);
}

TEST_F(SiteTest, ShowsNightsAndWhatWasAcceptedOfThem) {
  Open();
  EXPECT_THAT(Page("/nights"), HasSubstr("There are no nights beside this database"));
  regress::Night night;
  night.name = "night-2026-02-01";
  night.started_unix_s = 1'770'000'000;
  night.ended_unix_s = 1'770'000'100;
  night.exit_code = 1;
  night.was_gated = true;
  night.words = "REGRESSED: 1 <regressed>";
  regress::WorseCell worse{.cell = {"0123", "{}"}, .point = "batch_size=<2>"};
  worse.metrics[regress::GateMetric::kStepTime] = {0.053};
  night.worse = {worse};
  night.accepted = {{worse.cell, "checks for <NaN>", "ada & co", 1'770'000'200}};
  regress::WriteNight(night, dir_ / "nights");
  const std::string page = Page("/nights");
  for (const char* words : {"night-2026-02-01", "REGRESSED", "1 &lt;regressed&gt;", "batch_size=&lt;2&gt;",
                            "step time +5.3 %", "checks for &lt;NaN&gt;", "ada &amp; co", "/history/0123"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  MakeDirs(dir_ / "nights/night-2026-02-02");
  WriteFileAtomic(dir_ / "nights/night-2026-02-02/night.json", "{");
  EXPECT_THAT(Page("/nights"), AllOf(HasSubstr("night-2026-02-02"), HasSubstr("checks for &lt;NaN&gt;")));
}

TEST_F(SiteTest, ShowsEverySweepAndWhatRuns) {
  FillSample();
  const std::vector<Point> points = samples::Points(3);
  {
    store::Store store = Open();
    store.PutSweep(samples::Sweep("running"), points);
    store::JobRecord job = samples::Job("job-1", "running", points);
    job.job_dir = dir_ / "job-1";
    job.measured_as = store.Progress("running").sweep.measured_as;
    store.RecordIntents({&job, 1});
    store.MarkSubmitted("job-1", "native", 1);
    store.SetJobState("job-1", store::JobRecord::State::kRunning, {}, 0);
    const auto progress = ProgressFile(dir_ / "job-1", points[0].id);
    MakeDirs(progress.parent_path());
    WriteFile(progress, "4 17 1234.5 2.75\n");
  }
  const std::string page = Page("/");
  EXPECT_THAT(page, HasSubstr("<a href=\"/sweeps/sample\">sample</a>"));
  EXPECT_THAT(page, HasSubstr("0 of 3 points are done; no run follows its jobs"));
  EXPECT_THAT(page, HasSubstr("seed=0</a>")) << "what tells it from the sweep's others";
  EXPECT_THAT(page, AllOf(HasSubstr("max=\"17\" value=\"4\">"), HasSubstr("1.23K"), HasSubstr("2.750")));
  const std::string sweep = Page("/sweeps/running");
  EXPECT_THAT(sweep, AllOf(HasSubstr("data-events=\"/events?sweep=running\""), HasSubstr("No runs."),
                           HasSubstr("/reports/scaling?sweep=running")));
  WriteFile(PointDir(dir_ / "job-1", points[0].id) / LogName(0), "step 4/17\n");
  EXPECT_THAT(Page("/history/" + points[0].id), AllOf(HasSubstr("In job job-1 of the launcher local, which is running"),
                                                      HasSubstr("step 4/17"), HasSubstr("It was not measured yet")));
  EXPECT_EQ(site_.Live("running").find("<h2>Sweeps"), std::string::npos);
  EXPECT_EQ(Get("/sweeps/none").status, 404);
}

TEST_F(SiteTest, FiltersRunsByTheAddress) {
  FillSample();
  EXPECT_THAT(Page("/runs"), HasSubstr("12 runs, the newest first"));
  EXPECT_THAT(Page("/runs", {{"precision", "fp32"}}), HasSubstr("4 runs, the newest first: precision fp32"));
  EXPECT_THAT(Page("/runs", {{"precision", "fp32"}, {"status", "ok"}}), HasSubstr("1 run, the newest first"));
  EXPECT_THAT(Page("/runs", {{"status", "not ok"}}), HasSubstr("4 runs"));
  const std::string crashed = Page("/runs", {{"status", "crashed"}, {"nonsense", "x"}, {"before", "x"}});
  EXPECT_THAT(crashed, AllOf(HasSubstr("1 run,"), HasSubstr("<option value=\"crashed\" selected=\"selected\">"),
                             HasSubstr("<tr class=\"failed\">")));
  EXPECT_THAT(Page("/runs", {{"model", "x' OR 1=1 --"}}), HasSubstr("No runs."));
  EXPECT_THAT(Page("/runs", {{"before", "1"}}), HasSubstr("No runs."));
}

TEST_F(SiteTest, PagesThroughManyRunsAndKeepsTheFilters) {
  {
    store::Store store = Open();
    report_sample::Runs runs(store);
    for (int i = 1; i <= 130; ++i) runs.Add({{"model", "llama-10m"}, {"seed", i}});
    runs.Put("many");
  }
  const std::string first = Page("/runs", {{"sweep", "many"}});
  EXPECT_THAT(first,
              AllOf(HasSubstr("100 runs"), HasSubstr("<a href=\"/runs?sweep=many&amp;before=31\">Older runs</a>"),
                    Not(HasSubstr("Newest runs"))));
  const std::string second = Page("/runs", {{"sweep", "many"}, {"before", "31"}});
  EXPECT_THAT(second, AllOf(HasSubstr("30 runs"), HasSubstr("<a href=\"/runs?sweep=many\">Newest runs</a>"),
                            Not(HasSubstr("Older runs"))));
}

TEST_F(SiteTest, TellsWhatBecameOfARunAndItsEvidence) {
  FillSample();
  const auto killed = NumberOf("SELECT number FROM results WHERE status = 'oom_host'");
  const std::string page = Page(fmt::format("/runs/{}", killed));
  EXPECT_THAT(page, AllOf(HasSubstr("out of memory"), HasSubstr("the kernel ended it: out of memory"),
                          HasSubstr("wanted_bytes"), HasSubstr("1800000000"), HasSubstr("/history/")));
  const auto ok = NumberOf("SELECT min(number) FROM results WHERE status = 'ok'");
  const std::string good = Page(fmt::format("/runs/{}", ok));
  EXPECT_THAT(good, AllOf(HasSubstr("tokens/s</p>"), HasSubstr("Step times"), HasSubstr("planned_peak_bytes"),
                          HasSubstr("Example CPU"), HasSubstr("<th scope=\"row\" align=\"left\">batch_size</th>")));
  for (const char* none : {"/runs/0", "/runs/999999", "/runs/x", "/runs/-1", "/runs/1%00"}) {
    EXPECT_EQ(Get(none).status, 404) << none;
  }
}

TEST_F(SiteTest, TheAddressOfARunLasts) {
  FillSample();
  store::Database(Db(), store::Database::Access::kReadWrite)
      .Execute("UPDATE results SET ended_unix_ns = 1000 + number");
  const auto ok = NumberOf("SELECT min(number) FROM results WHERE status = 'ok'");
  const PageAnswer moved = Get(fmt::format("/runs/{}", ok));
  EXPECT_EQ(moved.status, 302);
  EXPECT_THAT(moved.location, ::testing::MatchesRegex("/runs/[0-9a-f]+\\.[0-9]+"));
  const std::string page = Page(moved.location);
  {
    // As with a store that was rebuilt or merged.
    store::Database database(Db(), store::Database::Access::kReadWrite);
    database.Execute(fmt::format("UPDATE results SET number = number + 1000 WHERE number = {}", ok));
  }
  EXPECT_EQ(Get(fmt::format("/runs/{}", ok)).status, 404);
  EXPECT_EQ(Get(moved.location).status, 200);
  EXPECT_EQ(Get(fmt::format("/runs/{}", ok + 1000)).location, moved.location);
  EXPECT_EQ(Get(moved.location + "1").status, 404);
  EXPECT_EQ(Get("/runs/x.1").status, 404);
}

TEST_F(SiteTest, ARunThatAFurtherRepeatReplacedLeadsToThat) {
  std::string point;
  {
    store::Store store = Open();
    report_sample::Runs runs(store);
    point = runs.Add({{"model", "llama-10m"}}).point_id;
    runs.Put("repeated");
    store::Database database(Db(), store::Database::Access::kReadWrite);
    database.Execute("UPDATE results SET retry = 1, ended_unix_ns = 5");
    RunResult again = samples::Result(point);
    again.ended_unix_ns = 6;
    const store::NewResult added{again, "", 0, store.Progress("repeated").sweep.measured_as};
    store.AddResults({&added, 1});
  }
  ASSERT_EQ(NumberOf("SELECT count(*) FROM results"), 2);
  EXPECT_EQ(Get("/runs/1").location, "/runs/" + point + ".6");
  EXPECT_EQ(Get("/runs/" + point + ".5").location, "/runs/" + point + ".6");
  EXPECT_EQ(Get("/runs/" + point + ".6").status, 200);
}

TEST_F(SiteTest, ShowsTheEndOfALogThatIsThereAndNoneThroughALink) {
  const std::vector<Point> points = samples::Points(1);
  const auto job_dir = dir_ / "job-1";
  {
    store::Store store = Open();
    store.PutSweep(samples::Sweep("test"), points);
    store::JobRecord job = samples::Job("job-1", "test", points);
    job.job_dir = job_dir;
    job.measured_as = store.Progress("test").sweep.measured_as;
    store.RecordIntents({&job, 1});
    RunResult result = samples::Result(points[0].id, RunStatus::kCrashed);
    result.evidence["log_tail"] = "first\n<b>second</b>\x1b[2J";
    const store::NewResult added{result, "job-1", 1};
    store.AddResults({&added, 1});
  }
  MakeDirs(PointDir(job_dir, points[0].id));
  const auto log = PointDir(job_dir, points[0].id) / LogName(0);
  WriteFile(log, "the <last> words\n");
  const auto number = NumberOf("SELECT max(number) FROM results");
  const std::string page = Page(fmt::format("/runs/{}", number));
  EXPECT_THAT(page, AllOf(HasSubstr("the &lt;last&gt; words"), HasSubstr("&lt;b&gt;second&lt;/b&gt;\\x1b[2J")));
  WriteFile(dir_ / "secret", "a secret");
  std::filesystem::remove(log);
  std::filesystem::create_symlink(dir_ / "secret", log);
  EXPECT_THAT(Page(fmt::format("/runs/{}", number)), Not(HasSubstr("a secret")));
}

TEST_F(SiteTest, ComparesRunsAndCampaigns) {
  {
    store::Store store = Open();
    for (const char* campaign : {"monday", "tuesday"}) {
      report_sample::Runs runs(store);
      for (const int batch : {1, 2}) runs.Add({{"model", "llama-10m"}, {"batch_size", batch}});
      runs.Put("nights", campaign);
    }
  }
  const auto first = NumberOf("SELECT min(number) FROM results");
  const auto run = [&](int64_t n) { return std::pair<std::string, std::string>{"run", fmt::format("{}", first + n)}; };
  const std::string runs = Page("/compare", {run(0), run(1)});
  EXPECT_THAT(runs, AllOf(HasSubstr(fmt::format("run {}", first)), HasSubstr("batch_size"), HasSubstr("+33.3"),
                          HasSubstr("Step times")));
  EXPECT_THAT(Page("/compare"), HasSubstr("<option value=\"monday\" selected=\"selected\">"));
  const std::string campaigns = Page("/compare", {{"base", "monday"}, {"head", "tuesday"}});
  EXPECT_THAT(campaigns, AllOf(HasSubstr("batch_size=2"), HasSubstr("head / base")));
  EXPECT_EQ(Get("/compare", {{"base", "monday"}, {"head", "friday"}}).status, 404);
  for (const QueryValues& wrong : {QueryValues{run(0)}, QueryValues{{"run", "x"}, run(0)}, QueryValues{run(0), run(99)},
                                   QueryValues{run(0), run(1), run(2), run(3), {"run", "99"}}}) {
    EXPECT_EQ(Get("/compare", wrong).status, 404);
  }
}

TEST_F(SiteTest, DrawsAHistoryOverCommitsAndFindsWhereItChanged) {
  std::string point;
  {
    store::Store store = Open();
    for (int night = 0; night < 40; ++night) {
      report_sample::Runs runs(store);
      RunResult& result = runs.Add({{"model", "llama-10m"}});
      const double slower = (night < 20 ? 1.0 : 1.1) * (1 + 0.002 * (night * 7 % 5));
      result.step_ns.median_ns = static_cast<int64_t>(1e8 * slower);
      result.throughput.steady_tokens_per_s = 5120 / slower;
      result.environment["git_commit"] = fmt::format("{:09d}", 100000000 + night);
      result.ended_unix_ns = 1'700'000'000'000'000'000 + night * 86'400'000'000'000;
      result.started_unix_ns = result.ended_unix_ns - 1'000'000'000;
      point = result.point_id;
      runs.Put("nightly", fmt::format("night-{}", night));
    }
  }
  EXPECT_THAT(Page("/history"), AllOf(HasSubstr("/history/" + point), HasSubstr("data-v=\"40\"")));
  const std::string page = Page("/history/" + point);
  EXPECT_THAT(page, AllOf(HasSubstr("slower from commit 100000020 on"), HasSubstr("<svg"), HasSubstr("night-39")));
  EXPECT_EQ(Get("/history/none").status, 404);
}

TEST_F(SiteTest, RendersReportsInEveryForm) {
  FillSample();
  EXPECT_THAT(Page("/reports"),
              AllOf(HasSubstr("/reports/scaling"), HasSubstr("/reports/activation-checkpointing?sweep=sample")));
  const PageAnswer html = Get("/reports/activation-checkpointing", {{"sweep", "sample"}});
  EXPECT_EQ(html.status, 200);
  EXPECT_EQ(html.policy, ReportPolicy());
  store::Store store = Open();
  const std::string expected =
      report::Render(report_sample::ShippedReport(), store, {"sample", report::ReportFormat::kHtml}).bytes;
  EXPECT_EQ(html.body, expected) << "the same page that ridgeline report writes";
  EXPECT_EQ(Get("/reports/activation-checkpointing.csv").type, "text/csv; charset=utf-8");
  EXPECT_EQ(Get("/reports/activation-checkpointing.csv").file_name, "activation-checkpointing.csv");
  EXPECT_EQ(Get("/reports/activation-checkpointing.json").type, "application/json");
  EXPECT_EQ(Get("/reports/activation-checkpointing.md").status, 200);
  for (const char* none : {"/reports/none", "/reports/..", "/reports/.", "/reports/%2e%2e%2fx"}) {
    EXPECT_EQ(Get(none).status, 404) << none;
  }
  EXPECT_EQ(Get("/reports/scaling", {{"sweep", "none"}}).status, 404);
}

TEST_F(SiteTest, EscapesWhatASweepItsPointsAndItsResultsSay) {
  const std::string evil = "\"><script>alert(1)</script>'&";
  std::string point;
  int64_t number = 0;
  {
    store::Store store = Open();
    report_sample::Runs runs(store);
    RunResult& result = runs.Add({{"model", "llama-10m"}, {"data", "/x/" + evil}}, RunStatus::kCrashed);
    result.message = evil;
    result.hint = evil;
    result.device = evil;
    result.evidence = {{evil, evil}, {"log_tail", evil + "\n" + evil}};
    result.environment = {{evil, evil}, {"git_commit", evil}, {"command", evil}, {"version", evil}};
    point = result.point_id;
    runs.Add({{"model", "llama-10m"}, {"seed", 7}}).environment["git_commit"] = evil;
    runs.Put(evil, evil);
    number = std::get<int64_t>(store.Query("SELECT max(number) FROM results").rows.at(0).at(0));
  }
  for (const auto& [path, query] : std::vector<std::pair<std::string, QueryValues>>{
           {"/", {}},
           {"/runs", {}},
           {"/runs", {{"sweep", evil}, {"campaign", evil}}},
           {"/runs", {{"model", evil}}},
           {fmt::format("/runs/{}", number - 1), {}},
           {fmt::format("/runs/{}", number), {}},
           {"/sweeps/" + evil, {}},
           {"/history", {}},
           {"/history/" + point, {}},
           {"/compare", {{"run", fmt::format("{}", number)}, {"run", fmt::format("{}", number - 1)}}},
           {"/compare", {{"base", evil}, {"head", evil}}},
           {"/reports", {}}}) {
    const std::string page = Page(path, query);
    EXPECT_EQ(page.find("<script>alert"), std::string::npos) << path;
  }
  for (const PageAnswer& wrong : {Get("/" + evil), Get("/runs/" + evil), Get("/sweeps/x" + evil)}) {
    EXPECT_EQ(wrong.status, 404);
    report::ParseXml(wrong.body);
    EXPECT_EQ(wrong.body.find("<script>alert"), std::string::npos);
  }
}

TEST_F(SiteTest, GivesMetricsAsTheyAreAskedFor) {
  FillSample();
  EXPECT_THAT(Get("/metrics").type, HasSubstr("text/plain; version=0.0.4"));
  const PageAnswer open = Get("/metrics", {}, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  EXPECT_THAT(open.type, HasSubstr("application/openmetrics-text; version=1.0.0"));
  EXPECT_THAT(open.body, ::testing::EndsWith("# EOF\n"));
}

TEST_F(SiteTest, KnowsAPageAgainUntilTheDatabaseChanges) {
  FillSample();
  // From then on, pages are cached.
  const std::string wal = Db().string() + "-wal";
  EXPECT_TRUE(testing::Eventually([&] { return !StampOf({Db(), wal}).empty(); }));
  for (const auto& [path, query] : std::vector<std::pair<std::string, QueryValues>>{
           {"/runs", {}}, {"/history", {}}, {"/compare", {}}, {"/reports/scaling", {}}, {"/reports/scaling.csv", {}}}) {
    const PageAnswer first = Get(path, query);
    EXPECT_EQ(first.status, 200) << path;
    ASSERT_FALSE(first.etag.empty()) << path;
    const PageAnswer known = site_.Answer({path, query, "", "gzip", first.etag});
    EXPECT_EQ(known.status, 304) << path;
    EXPECT_EQ(known.body, "") << path;
    EXPECT_EQ(Get(path, query).body, first.body) << path;
    const PageAnswer compressed = site_.Answer({path, query, "", "gzip"});
    if (compressed.encoding.empty()) {
      EXPECT_LT(first.body.size(), 1000U) << path;
      continue;
    }
    EXPECT_EQ(Gunzip(compressed.body), first.body) << path;
    EXPECT_NE(compressed.etag, first.etag) << path;
  }
  EXPECT_EQ(Get("/").etag, "") << "what is live is not kept";
  EXPECT_EQ(Get("/nowhere").etag, "");
  const PageAnswer before = Get("/runs");
  {
    store::Store store = Open();
    report_sample::Runs runs(store);
    runs.Add({{"model", "llama-10m"}, {"seed", 77}});
    runs.Put("later");
  }
  const PageAnswer after = site_.Answer({"/runs", {}, "", "", before.etag});
  EXPECT_EQ(after.status, 200);
  EXPECT_THAT(after.body, HasSubstr("13 runs"));
}

TEST_F(SiteTest, LinksBeginWithTheBasePath) {
  FillSample();
  Site site(Db(), {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports"}, clock_, "/base");
  const auto run = NumberOf("SELECT min(number) FROM results");
  store::Store store = Open();
  const std::string point = CellText(store.Query("SELECT id FROM points LIMIT 1").rows.at(0).at(0));
  for (const std::string& path : {std::string("/"), std::string("/runs"), std::string("/history"),
                                  std::string("/compare"), std::string("/reports"), std::string("/sweeps/sample"),
                                  "/history/" + point, fmt::format("/runs/{}", run), std::string("/nowhere")}) {
    const std::string body = site.Answer({path, {}, ""}).body;
    EXPECT_THAT(body, HasSubstr("href=\"/base/runs\"")) << path;
    for (const char* attribute : {"href=\"/", "action=\"/", "data-events=\"/"}) {
      for (size_t at = 0; (at = body.find(attribute, at)) != std::string::npos; ++at) {
        EXPECT_EQ(body.compare(at + std::string_view(attribute).size(), 5, "base/"), 0)
            << path << " " << body.substr(at, 60);
      }
    }
  }
}

TEST(PageCache, KeepsTheLastAskedForWhileItsStampIsTheSame) {
  PageCache cache;
  PageAnswer page;
  page.body = std::string(PageCache::kMostBytes / 8, 'x');
  cache.Put("first", "1", page);
  EXPECT_TRUE(cache.Find("first", "1"));
  EXPECT_FALSE(cache.Find("first", "2"));
  for (int i = 0; i < 7; ++i) {
    cache.Put("page " + std::to_string(i), "1", page);
    EXPECT_TRUE(cache.Find("first", "1"));
  }
  EXPECT_FALSE(cache.Find("page 0", "1")) << "what was not asked for longest goes";
  page.body = std::string(PageCache::kMostBytes, 'x');
  cache.Put("too large", "1", page);
  EXPECT_FALSE(cache.Find("too large", "1"));
  EXPECT_TRUE(cache.Find("first", "1"));
}

TEST(StampOf, ChangesWithTheFileAndIsEmptyForAFileThatMayStillChange) {
  TempDir dir;
  const std::filesystem::path file = dir / "file";
  const std::string missing = StampOf({file});
  EXPECT_NE(missing, "");
  WriteFile(file, "a");
  // The stamp is empty until the file has been unchanged for a second, by the machine's clock.
  EXPECT_TRUE(testing::Eventually([&] { return !StampOf({file}).empty(); }));
  const std::string settled = StampOf({file});
  EXPECT_NE(settled, missing);
  EXPECT_EQ(StampOf({file}), settled);
  OverwriteFile(file, "b");
  const std::string changed = StampOf({file});
  EXPECT_NE(changed, settled) << "of the same size, too";
}

// After an edit of serve/assets.cc, the failure shows the hashes that it must have.
TEST_F(SiteTest, CarriesTheHashesOfItsStyleAndScript) {
  EXPECT_EQ(kSiteStyleHash, PolicyHash(kSiteStyle));
  EXPECT_EQ(kSiteScriptHash, PolicyHash(kSiteScript));
  EXPECT_EQ(std::string(kSiteStyle).find_first_of("<&"), std::string::npos);
  EXPECT_EQ(std::string(kSiteScript).find_first_of("<&"), std::string::npos);
  EXPECT_THAT(PagePolicy(), AllOf(HasSubstr("default-src 'none'"), Not(HasSubstr("unsafe"))));
}

}  // namespace
}  // namespace ridgeline::serve
