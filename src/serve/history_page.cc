// Shows a configuration's measurements over commits.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/escape.h"
#include "report/rows.h"
#include "serve/answer.h"
#include "serve/names.h"
#include "serve/pages.h"
#include "stats/change_points.h"

namespace ridgeline::serve {
namespace {

constexpr int64_t kMostHistories = 200;
constexpr int64_t kMostMeasurements = 500;
constexpr size_t kShortCommit = 9;

std::string ShortCommit(const QueryAnswer& runs, size_t row) {
  const std::string commit = runs.Text(row, "git_commit").substr(0, kShortCommit);
  return commit.empty() ? runs.Text(row, "version") : commit;
}

// A chart of the rows of one configuration, setup and machine, in the order in which they were measured.
std::string ChartOfHistory(const QueryAnswer& runs, const std::vector<size_t>& rows, size_t number) {
  report::LineChart chart;
  chart.id = fmt::format("history-{}", number);
  chart.title = "Throughput of each measurement";
  chart.x_axis = "measured with commit";
  chart.y_axis = "tokens/s";
  chart.scale = report::AxisScale::kCount;
  chart.from_zero = false;
  report::Curve line;
  line.title = chart.title;
  for (const size_t row : rows) {
    const auto* tokens_per_s = std::get_if<double>(&runs.At(row, "steady_tokens_per_s"));
    if (tokens_per_s == nullptr) continue;
    chart.at.push_back(static_cast<double>(chart.at.size() + 1));
    chart.at_labels.push_back(ShortCommit(runs, row));
    line.points.push_back({chart.at.back(), *tokens_per_s, *tokens_per_s, *tokens_per_s});
  }
  if (line.points.empty()) return {};
  chart.description = fmt::format("{} measurements, the oldest first.", line.points.size());
  chart.lines.push_back(std::move(line));
  return ChartsHtml({{std::move(chart), "The oldest first. The axis does not begin at zero."}});
}

std::string ChangesHtml(const QueryAnswer& runs, const std::vector<size_t>& rows) {
  std::vector<stats::HistoryRun> history;
  for (const size_t row : rows) {
    const int64_t ns = runs.Integer(row, "step_median_ns");
    if (ns > 0) history.push_back({ShortCommit(runs, row), std::log(static_cast<double>(ns))});
  }
  std::string out;
  for (const stats::ChangePoint& change : stats::ChangePoints(history)) {
    const double ratio = std::exp(change.change);
    out += fmt::format("<p class=\"answer\">{:.1f} % {} from commit {} on</p>\n", 100 * std::abs(ratio - 1),
                       ratio > 1 ? "slower" : "quicker", report::EscapeHtml(change.commit));
  }
  return out;
}

List MeasurementList(const Links& to, const QueryAnswer& runs, const std::vector<size_t>& rows, size_t number) {
  List list{fmt::format("measured-{}", number),
            {{"run", report::ValueStyle::kInteger},
             {"commit"},
             {"campaign", report::ValueStyle::kText, false},
             {"end"},
             {"tokens/s", report::ValueStyle::kCount},
             {"step", report::ValueStyle::kDuration, false},
             {"95 % of steps", report::ValueStyle::kDuration, false},
             {"peak memory", report::ValueStyle::kBytes, false},
             {"ended", report::ValueStyle::kText, false}},
            {},
            {}};
  for (const size_t row : std::vector<size_t>(rows.rbegin(), rows.rend())) {
    ListRow shown;
    shown.failed = runs.Has(row, "failure");
    shown.cells = {{runs.At(row, "result"), to({"runs", runs.Text(row, "result")})},
                   {ShortCommit(runs, row)},
                   {runs.At(row, "campaign")},
                   {shown.failed ? runs.Text(row, "failure") : "ok"},
                   {runs.At(row, "steady_tokens_per_s")},
                   {runs.At(row, "step_median_ns")},
                   {runs.At(row, "step_p95_ns")},
                   {runs.At(row, "peak_bytes")},
                   {runs.Integer(row, "ended_unix_ns") > 0 ? FormatUnixTime(runs.Integer(row, "ended_unix_ns")) : ""}};
    list.rows.push_back(std::move(shown));
  }
  return list;
}

// The state of the point from a job that has not ended, and its log.
std::string RunningHtml(store::Store& store, const std::string& point_id) {
  const QueryAnswer job(store.Query(
      "SELECT j.key, j.job_dir, j.state, j.launcher FROM jobs AS j JOIN job_points AS p ON p.job_key = j.key "
      "WHERE p.point_id = :id AND j.state IN ('intent', 'submitted', 'running')",
      {{"id", point_id}}));
  if (job.size() == 0) return {};
  return fmt::format("<p>In job {} of the launcher {}, which is {}.</p>\n", report::EscapeHtml(job.Text(0, "key")),
                     report::EscapeHtml(job.Text(0, "launcher")), report::EscapeHtml(job.Text(0, "state"))) +
         LogHtml(job.Text(0, "job_dir"), point_id);
}

}  // namespace

PageAnswer HistoriesPage(store::Store& store, const Links& to) {
  const QueryAnswer all(store.Query(fmt::format(
      "SELECT point_id, spec, count(*) AS times, count(DISTINCT environment ->> '$.git_commit') AS commits, "
      "count(DISTINCT campaign) AS campaigns, max(result) AS newest, max(ended_unix_ns) AS ended_unix_ns "
      "FROM measurements WHERE status = 'ok' GROUP BY point_id ORDER BY newest DESC LIMIT {}",
      kMostHistories)));
  std::string main;
  if (all.size() == 0) {
    main = "<p class=\"empty\">Nothing was measured yet.</p>\n";
  } else {
    List list{"histories",
              {{"configuration"},
               {"measured", report::ValueStyle::kInteger},
               {"commits", report::ValueStyle::kInteger},
               {"campaigns", report::ValueStyle::kInteger, false},
               {"last", report::ValueStyle::kText, false}},
              {},
              {}};
    for (size_t row = 0; row < all.size(); ++row) {
      list.rows.push_back({{{NameOfPoint(all.Text(row, "spec")), to({"history", all.Text(row, "point_id")})},
                            {all.At(row, "times")},
                            {all.At(row, "commits")},
                            {all.At(row, "campaigns")},
                            {FormatUnixTime(all.Integer(row, "ended_unix_ns"))}}});
    }
    if (std::ssize(list.rows) == kMostHistories) list.caption = fmt::format("The {} measured last.", kMostHistories);
    main = ListHtml(list);
  }
  PageAnswer answer =
      Framed(to, {"History", "Each configuration over the commits that measured it", main, "/history", ""});
  answer.is_lasting = true;
  return answer;
}

PageAnswer HistoryPage(store::Store& store, const Links& to, const std::string& point_id) {
  const QueryAnswer runs(store.Query(
      fmt::format("SELECT * FROM (SELECT result, spec, setup, ifnull(machine, '') AS machine, device_name, campaign, "
                  "version, environment ->> '$.git_commit' AS git_commit, status, failure, steady_tokens_per_s, "
                  "step_median_ns, step_p95_ns, observed_peak_bytes AS peak_bytes, ended_unix_ns "
                  "FROM measurements WHERE point_id = :id ORDER BY ended_unix_ns DESC, result DESC LIMIT {}) "
                  "ORDER BY ended_unix_ns, result",
                  kMostMeasurements),
      {{"id", point_id}}));
  const QueryAnswer point(store.Query("SELECT spec FROM points WHERE id = :id", {{"id", point_id}}));
  if (point.size() == 0) {
    throw Error(ErrorKind::kUsage, fmt::format("there is no point '{}' in this database", PrintableLine(point_id)),
                "/history lists what was measured");
  }
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> groups;
  for (size_t row = 0; row < runs.size(); ++row) {
    groups[{runs.Text(row, "machine"), runs.Text(row, "setup")}].push_back(row);
  }
  std::string main = RunningHtml(store, point_id);
  const bool runs_now = !main.empty();  // its log grows
  if (runs.size() == 0) main += "<p class=\"empty\">It was not measured yet.</p>\n";
  size_t number = 0;
  for (const auto& [of, rows] : groups) {
    ++number;
    if (groups.size() > 1) {
      main +=
          "<h2>" +
          report::EscapeHtml(ShortenToCodePoints(of.first.empty() ? "a machine that is not known" : of.first, 140)) +
          "</h2>\n<p class=\"note\">" + report::EscapeHtml(of.second) + "</p>\n";
    }
    main += ChangesHtml(runs, rows) + ChartOfHistory(runs, rows, number) +
            ListHtml(MeasurementList(to, runs, rows, number));
  }
  PageAnswer answer = Framed(
      to, {NameOfPoint(point.Text(0, "spec")), report::EscapeHtml("point " + point_id), main, "/history/one", ""});
  answer.is_lasting = !runs_now;
  return answer;
}

}  // namespace ridgeline::serve
