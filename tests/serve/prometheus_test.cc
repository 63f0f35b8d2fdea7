// A real Prometheus scrapes a running sweep, and answers every query of the shipped dashboard; promtool accepts the
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/json.h"
#include "store/store.h"
#include "tests/serve/watched_sweep.h"
#include "tests/store/samples.h"

namespace ridgeline::serve {
namespace {

using testing::Eventually;
using testing::HasProgram;
using ::testing::HasSubstr;
using testing::WatchedSweep;

std::filesystem::path Shipped(const std::string& name) {
  return std::filesystem::path(RIDGELINE_SOURCE_DIR) / "metrics" / name;
}

// The dashboard's queries, with its variables as Grafana fills them in.
std::vector<std::string> DashboardQueries() {
  std::vector<std::string> queries;
  const std::function<void(const Json&)> walk = [&](const Json& json) {
    if (json.is_object() && json.contains("expr")) queries.push_back(json["expr"]);
    if (!json.is_structured()) return;
    for (const Json& each : json) walk(each);
  };
  walk(ReadJsonFile(Shipped("grafana.json")));
  for (std::string& query : queries) {
    query = std::regex_replace(query, std::regex(R"(\$sweep)"), ".*");
    query = std::regex_replace(query, std::regex(R"(\$__rate_interval)"), "1m");
    EXPECT_EQ(query.find('$'), std::string::npos) << query;
  }
  return queries;
}

class PrometheusApi {
 public:
  explicit PrometheusApi(int port) : client_("127.0.0.1", port) { client_.set_read_timeout(30); }

  Json Ask(const std::string& path, const httplib::Params& parameters) {
    const auto answer = client_.Get(path, parameters, httplib::Headers{});
    return answer && answer->status != 503 ? ParseJson(answer->body, "Prometheus") : Json();  // 503 while it starts
  }
  // The result of an instant query, as in its answer. An error fails the test.
  Json Query(const std::string& query) {
    const Json answer = Ask("/api/v1/query", {{"query", query}});
    if (!answer.is_object()) return Json::array();
    EXPECT_EQ(answer.value("status", ""), "success") << query << "\n" << answer.dump();
    return answer.contains("data") ? answer["data"]["result"] : Json::array();
  }

 private:
  httplib::Client client_;
};

// A point as a GPU would have measured it, beside the sweep that runs here: with figures that a processor does not
// have.
void AddGpuPoint(const std::filesystem::path& db) {
  store::Store store = store::Store::Open(db, store::Store::Mode::kReadWrite);
  RunSpec spec = FamilyDefaults(ModelFamily::kLlama);
  ApplyPreset(*FindPreset("llama-10m"), spec);
  spec.device = "cuda";
  spec.gpu = "h200";
  Canonicalize(spec);
  const Point point{PointId(spec), spec};
  store.PutSweep(samples::Sweep("of-a-gpu"), {&point, 1});
  RunResult result = samples::Result(point.id);
  result.step_ns.median_ns = 10'000'000;
  result.memory.device_peak_bytes = 700;
  const store::NewResult added{result, "", 0, store.Progress("of-a-gpu").sweep.measured_as};
  store.AddResults({&added, 1});
}

// The text that two nights of a sweep of one point write for a textfile collector. The second night passes.
std::string MetricsOfNights(const TempDir& dir) {
  const auto build = std::filesystem::path(RIDGELINE_BINARY_DIR);
  WriteFile(
      dir / "nights.yaml",
      "name: nights\ndefaults: {model: llama-10m, seq_length: 64}\nmeasure: {warmup_steps: 1, steps: 2, repeats: 20}\n"
      "launch: {trainer: ['" +
          (build / "tests/fakes/fake_trainer").string() + "', ok]}\n");
  for (const int exit_code : {4, 0}) {
    const Captured night = ridgeline::Run({(build / "bin/ridgeline").string(), "nightly", "run",
                                           (dir / "nights.yaml").string(), "--dir", (dir / "nightly").string()});
    EXPECT_EQ(night.status.exit_code, exit_code) << night.stdout_text << night.stderr_text;
  }
  return ReadFile(dir / "nightly/nightly.prom") + ReadFile(dir / "nightly/last/gate.prom");
}

// Serves a text as node_exporter does, for the life of this object.
class TextServer {
 public:
  explicit TextServer(const std::string& text) {
    server_.Get("/metrics", [text](const httplib::Request&, httplib::Response& answer) {
      answer.set_content(text, "text/plain; version=0.0.4");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    Eventually([this] { return server_.is_running(); });
  }
  ~TextServer() {
    server_.stop();
    thread_.join();
  }
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;
  int port() const { return port_; }

 private:
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
};

TEST(Prometheus, ScrapesARunningSweepAndAnswersEveryQueryOfTheDashboard) {
  if (!HasProgram("prometheus")) GTEST_SKIP() << "prometheus is not installed; packages.txt has it";
  WatchedSweep watched(3);
  AddGpuPoint(watched / "ridgeline.db");
  watched.StartServer();
  const TempDir nights;
  const TextServer textfiles(MetricsOfNights(nights));
  const ReservedPort port;
  const std::string target = "127.0.0.1:" + std::to_string(watched.port());
  WriteFile(watched / "prometheus.yml",
            "global: {scrape_interval: 1s}\nrule_files: ['" + Shipped("alerts.yaml").string() +
                "']\nscrape_configs:\n  - job_name: ridgeline\n    static_configs: [{targets: ['" + target + "']}]\n" +
                "  - job_name: textfiles\n    static_configs: [{targets: ['127.0.0.1:" +
                std::to_string(textfiles.port()) + "']}]\n");
  watched.StartBeside({"prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                       "--web.listen-address=127.0.0.1:" + std::to_string(port.number()), "--log.level=error"},
                      "prometheus");
  PrometheusApi prometheus(static_cast<int>(port.number()));
  watched.StartRun();
  watched.Tell(1, WatchedSweep::kSteps);  // the first ends, and the second stays at its third step
  watched.Tell(2, 3);
  const auto value_of = [&](const std::string& query) {
    const Json result = prometheus.Query(query);
    return result.size() == 1 ? std::stod(result[0]["value"][1].get<std::string>()) : -1;
  };
  ASSERT_TRUE(Eventually([&] { return value_of("up{job=\"ridgeline\"}") == 1; })) << ReadFile(watched / "prometheus");
  ASSERT_TRUE(Eventually([&] { return value_of("ridgeline_running_step{sweep=\"watched\"}") == 3; }));
  ASSERT_TRUE(Eventually([&] { return value_of("ridgeline_points{sweep=\"watched\",state=\"ok\"}") == 1; }));
  EXPECT_EQ(value_of("ridgeline_driver_running"), 1);
  EXPECT_EQ(value_of("ridgeline_running_throughput_tokens_per_second"), 1000);
  EXPECT_EQ(value_of("ridgeline_running_loss"), 2.5);
  const std::vector<std::string> queries = DashboardQueries();
  EXPECT_GT(queries.size(), 37U);
  for (const std::string& query : queries) {
    EXPECT_TRUE(Eventually([&] { return !prometheus.Query(query).empty(); })) << query << " has no answer";
  }
  // The variable's query: label_values(SELECTOR, sweep).
  const Json dashboard = ReadJsonFile(Shipped("grafana.json"));
  std::smatch selector;
  const auto definition = dashboard.at("templating").at("list").at(1).at("definition").get<std::string>();
  ASSERT_TRUE(std::regex_match(definition, selector, std::regex(R"(label_values\((.*), sweep\))"))) << definition;
  const Json variable = prometheus.Ask("/api/v1/label/sweep/values", {{"match[]", selector[1].str()}});
  EXPECT_THAT(variable.dump(), ::testing::AllOf(HasSubstr("\"watched\""), HasSubstr("\"nights\"")));
  const Json metadata = prometheus.Ask("/api/v1/metadata", {{"metric", "ridgeline_step_time_median_seconds"}});
  EXPECT_THAT(metadata.dump(), HasSubstr("\"unit\":\"seconds\"")) << "it was scraped as OpenMetrics";
  watched.Tell(2, WatchedSweep::kSteps);
  watched.Tell(3, WatchedSweep::kSteps);
  ASSERT_TRUE(watched.RunEnds()) << ReadFile(watched / "run");
  EXPECT_TRUE(Eventually([&] { return value_of("ridgeline_points{sweep=\"watched\",state=\"ok\"}") == 3; }));
  EXPECT_TRUE(Eventually([&] { return value_of("ridgeline_driver_running") == 0; }));
  // 64 tokens in each of 6 steps of three points.
  EXPECT_EQ(value_of("ridgeline_tokens_total{sweep=\"watched\"}"), 3 * 6 * 64);
}

TEST(Prometheus, ARunsMetricsFileIsOnePromtoolTakes) {
  if (!HasProgram("promtool")) GTEST_SKIP() << "promtool is not installed; packages.txt has it (prometheus)";
  WatchedSweep watched(2);
  watched.StartRun({"--metrics-file", "ridgeline.prom"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(watched / "ridgeline.prom"); }));
  EXPECT_THAT(ReadFile(watched / "ridgeline.prom"), HasSubstr("\nridgeline_driver_running 1\n"));
  watched.Tell(1, WatchedSweep::kSteps);
  watched.Tell(2, WatchedSweep::kSteps);
  ASSERT_TRUE(watched.RunEnds()) << ReadFile(watched / "run");
  const std::string text = ReadFile(watched / "ridgeline.prom");
  EXPECT_THAT(text, HasSubstr("\nridgeline_driver_running 0\n"));
  EXPECT_THAT(text, HasSubstr("\nridgeline_points{sweep=\"watched\",state=\"ok\"} 2\n"));
  // It reads its standard input, which only a shell can redirect.
  const Captured checked =
      ridgeline::Run({"bash", "-c", "promtool check metrics < \"$0\"", (watched / "ridgeline.prom").string()});
  EXPECT_EQ(checked.status.exit_code, 0) << checked.stderr_text;
  EXPECT_EQ(checked.stderr_text, "") << "what it advises against";
}

TEST(Prometheus, TakesTheRulesAndTheyDoWhatTheySay) {
  if (!HasProgram("promtool")) GTEST_SKIP() << "promtool is not installed; packages.txt has it (prometheus)";
  const Captured rules = ridgeline::Run({"promtool", "check", "rules", Shipped("alerts.yaml").string()});
  EXPECT_EQ(rules.status.exit_code, 0) << rules.stdout_text << rules.stderr_text;
  const Captured config = ridgeline::Run({"promtool", "check", "config", Shipped("prometheus.yaml").string()});
  EXPECT_EQ(config.status.exit_code, 0) << config.stdout_text << config.stderr_text;
  TempDir dir;  // the test names its rules by a path relative to its folder
  WriteFile(dir / "alerts.yaml", ReadFile(Shipped("alerts.yaml")));
  WriteFile(dir / "test.yaml", ReadFile(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/serve/alerts_test.yaml"));
  const Captured tested = ridgeline::Run({"promtool", "test", "rules", (dir / "test.yaml").string()});
  EXPECT_EQ(tested.status.exit_code, 0) << tested.stdout_text << tested.stderr_text;
}

// Debian does not have Grafana, so this checks what it requires of a dashboard's JSON (its "JSON model").
TEST(Dashboard, IsOneThatGrafanaCanImport) {
  const Json dashboard = ReadJsonFile(Shipped("grafana.json"));
  EXPECT_FALSE(dashboard.at("title").get<std::string>().empty());
  const auto uid = dashboard.at("uid").get<std::string>();
  EXPECT_TRUE(std::regex_match(uid, std::regex("[a-zA-Z0-9_-]{1,40}"))) << uid;
  EXPECT_TRUE(!dashboard.contains("id") || dashboard["id"].is_null()) << "an id is the database's that it came from";
  EXPECT_GE(dashboard.at("schemaVersion").get<int>(), 36) << "from which a data source is an object";
  EXPECT_TRUE(dashboard.at("version").is_number_integer());
  EXPECT_TRUE(dashboard.at("tags").is_array());
  EXPECT_TRUE(dashboard.at("time").at("from").is_string() && dashboard["time"].at("to").is_string());
  for (const char* list : {"annotations", "templating"}) EXPECT_TRUE(dashboard.at(list).at("list").is_array()) << list;

  std::set<std::string> variables;
  for (const Json& variable : dashboard["templating"]["list"]) {
    EXPECT_TRUE(variables.insert(variable.at("name").get<std::string>()).second) << variable;
    EXPECT_TRUE(variable.at("type") == "datasource" || variable.at("datasource").at("uid") == "${datasource}");
  }
  ASSERT_TRUE(variables.contains("datasource")) << "nobody's data source is called as ours is";
  EXPECT_EQ(dashboard["templating"]["list"][0].at("type"), "datasource") << "before what asks it";
  EXPECT_EQ(dashboard["templating"]["list"][0].at("query"), "prometheus");

  constexpr int kColumns = 24;
  const std::set<std::string> types = {"bargauge", "gauge", "heatmap", "row", "stat", "table", "text", "timeseries"};
  std::set<int> ids;
  std::set<std::pair<int, int>> cells;
  const std::regex variable_of("\\$\\{?([A-Za-z_]+)");
  for (const Json& panel : dashboard.at("panels")) {
    const auto title = panel.at("title").get<std::string>();
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << title << " has another's id";
    EXPECT_TRUE(types.contains(panel.at("type").get<std::string>())) << title << ": no panel of Grafana's own";
    const Json& grid = panel.at("gridPos");
    const int x = grid.at("x");
    const int y = grid.at("y");
    const int w = grid.at("w");
    const int h = grid.at("h");
    EXPECT_TRUE(x >= 0 && w > 0 && x + w <= kColumns && y >= 0 && h > 0) << title;
    for (int row = y; row < y + h; ++row) {
      for (int column = x; column < x + w; ++column) {
        EXPECT_TRUE(cells.emplace(row, column).second) << title << " lies on another, at " << column << ", " << row;
      }
    }
    EXPECT_EQ(panel.at("datasource").at("uid"), "${datasource}") << title;
    EXPECT_TRUE(panel.at("fieldConfig").at("defaults").is_object() && panel["fieldConfig"].at("overrides").is_array());
    EXPECT_TRUE(panel.at("options").is_object()) << title;
    std::set<std::string> targets;
    for (const Json& target : panel.at("targets")) {
      EXPECT_TRUE(targets.insert(target.at("refId").get<std::string>()).second) << title << " has one refId twice";
      EXPECT_EQ(target.at("datasource").at("type"), "prometheus") << title;
      const auto query = target.at("expr").get<std::string>();
      for (std::sregex_iterator at(query.begin(), query.end(), variable_of), end; at != end; ++at) {
        const std::string name = (*at)[1];
        EXPECT_TRUE(name == "__rate_interval" || variables.contains(name)) << title << ": " << name;
      }
    }
    EXPECT_FALSE(targets.empty()) << title;
  }
}

// Every metric that the rules, the dashboard and the page of the metrics mention exists.
TEST(Prometheus, EveryMetricThatIsSpokenOfIsOneAndIsDescribed) {
  std::string said;
  for (const char* file : {"src/metrics/metrics.cc", "src/nightly/metrics.cc", "src/regress/gate_openmetrics.cc"}) {
    said += ReadFile(std::filesystem::path(RIDGELINE_SOURCE_DIR) / file);
  }
  std::set<std::string> there;
  const std::regex name("\"(ridgeline_[a-z0-9_]+)\"");
  for (std::sregex_iterator at(said.begin(), said.end(), name), end; at != end; ++at) there.insert((*at)[1]);
  // The gate's metrics have a common prefix.
  const std::regex gates("(?:add|Family)\\(\"([a-z_]+)\"");
  for (std::sregex_iterator at(said.begin(), said.end(), gates), end; at != end; ++at) {
    there.insert("ridgeline_gate_" + (*at)[1].str());
  }
  EXPECT_THAT(there, ::testing::Contains("ridgeline_gate_findings"));
  EXPECT_GT(there.size(), 20U);
  const std::string page = ReadFile(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "docs/metrics.md");
  for (const std::string& metric : there) EXPECT_THAT(page, HasSubstr("`" + metric)) << "docs/metrics.md";
  const std::regex word("ridgeline_[a-z0-9_]+");
  const std::regex suffix("_(total|info|bucket|count|sum)$");
  for (const std::string& text : {ReadFile(Shipped("alerts.yaml")), ReadFile(Shipped("grafana.json")), page}) {
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
      EXPECT_TRUE(there.contains(std::regex_replace(at->str(), suffix, "")) || there.contains(at->str())) << at->str();
    }
  }
}

}  // namespace
}  // namespace ridgeline::serve
