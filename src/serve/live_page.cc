// What runs now, and every sweep: the first page, a sweep's page, and their live parts.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "report/escape.h"
#include "serve/answer.h"
#include "serve/pages.h"

namespace ridgeline::serve {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

struct StateShown {
  const char* words;
  std::string_view colour;
  int64_t count;
};

std::vector<StateShown> StatesOf(const metrics::SweepNow& sweep) {
  const store::SweepProgress& p = sweep.progress;
  const int64_t running = std::min(p.live, sweep.running_points);
  return {{"ok", "#3f9b54", p.ok},
          {"out of memory", "#d99a2b", p.out_of_memory},
          {"failed", "#d1432b", p.failed - p.out_of_memory},
          {"running", "#2f6fab", running},
          {"queued", "#8fb4d6", p.live - running},
          {"infrastructure", "#8a5fb0", p.infrastructure},
          {"to do", "#b9c0c9", p.points - p.finished() - p.live - p.infrastructure}};
}

std::string KeyHtml(const std::vector<StateShown>& states) {
  std::string out = "<ul class=\"key\">";
  for (const StateShown& state : states) {
    if (state.count == 0) continue;
    out += fmt::format(R"(<li><svg aria-hidden="true" width="10" height="10"><rect width="10" height="10" rx="2" )"
                       R"(fill="{}"/></svg>{} {}</li>)",
                       state.colour, state.count, state.words);
  }
  return out + "</ul>\n";
}

List RunningList(const metrics::SweepNow& sweep, const LiveNow& live, const Links& to) {
  List list{"running-" + sweep.progress.sweep.name,
            {{"point"}, {"step"}, {"tokens/s", report::ValueStyle::kCount}, {"loss", report::ValueStyle::kNumber}},
            {},
            {},
            /*sorts=*/false};
  for (const metrics::RunningPoint& point : sweep.running) {
    const auto name = live.names.find(point.point_id);
    ListRow row;
    row.cells.push_back({name == live.names.end() ? point.point_id : name->second, to({"history", point.point_id})});
    if (point.progress) {
      row.cells.push_back(
          {"", "",
           fmt::format("<progress aria-label=\"steps done\" max=\"{0}\" value=\"{1}\">{1}</progress>{1}/{0}",
                       point.progress->steps, point.progress->step)});
      row.cells.push_back({point.progress->tokens_per_s > 0 ? Cell(point.progress->tokens_per_s) : Cell()});
      row.cells.push_back({point.progress->loss ? Cell(*point.progress->loss) : Cell()});
    } else {
      row.cells.insert(row.cells.end(), {{"starting"}, {}, {}});
    }
    list.rows.push_back(std::move(row));
  }
  if (sweep.running_points > std::ssize(sweep.running)) {
    list.caption = fmt::format("The first {} of {} that run.", sweep.running.size(), sweep.running_points);
  }
  return list;
}

// Rounds an estimate to seconds; more digits would be false precision.
std::string About(int64_t ns) { return FormatDuration((ns + kSecondNs - 1) / kSecondNs * kSecondNs); }

std::string SweepHtml(const metrics::SweepNow& sweep, const LiveNow& live, const Links& to, bool linked) {
  const store::SweepProgress& p = sweep.progress;
  const bool followed = live.now.driver && live.now.driver->sweep == p.sweep.name;
  const std::string runs = p.runs > p.points ? fmt::format(" ({} of {} runs)", p.runs_done, p.runs) : "";
  std::string said = fmt::format("{} of {} points are done{}", p.finished(), p.points, runs);
  if (sweep.left_ns > 0) said += fmt::format(", about {} left", About(sweep.left_ns));
  if (followed) {
    const driver::DriverIdentity& driver = *live.now.driver;
    said += fmt::format("; process {}{} is at work", driver.pid, driver.is_here() ? "" : " on " + driver.host);
  }
  if (!followed && sweep.is_live()) said += "; no run follows its jobs: `ridgeline run` continues them";
  if (sweep.queued_jobs > 0) {
    said += fmt::format("; {} queued", CountOf(sweep.queued_jobs, "job"));
    if (sweep.queued_since_unix_ns > 0) {
      said += fmt::format(", the first for {}", About(live.now.unix_ns - sweep.queued_since_unix_ns));
    }
    if (!sweep.queued_for.empty()) said += fmt::format(" ({})", sweep.queued_for);
  }
  const std::vector<StateShown> states = StatesOf(sweep);
  std::vector<BarShare> shares;
  for (const StateShown& state : states) shares.push_back({state.count, state.colour});
  std::string out = "<section class=\"sweep\">\n";
  if (linked) out += "<h2>" + LinkHtml(to({"sweeps", p.sweep.name}), p.sweep.name) + "</h2>\n";
  out += fmt::format("<p class=\"facts\">{}.</p>\n", report::EscapeHtml(said));
  out += ShareBarHtml(fmt::format("{} of {} points are done", p.finished(), p.points), shares) + KeyHtml(states);
  if (!sweep.running.empty()) out += ListHtml(RunningList(sweep, live, to));
  return out + "</section>\n";
}

bool IsAtWork(const metrics::SweepNow& sweep, const LiveNow& live) {
  return sweep.is_live() || (live.now.driver && live.now.driver->sweep == sweep.progress.sweep.name);
}

List SweepList(const LiveNow& live, const Links& to) {
  List list{"sweeps",
            {{"sweep"},
             {"campaign", report::ValueStyle::kText, false},
             {"points", report::ValueStyle::kInteger},
             {"ok", report::ValueStyle::kInteger},
             {"out of memory", report::ValueStyle::kInteger, false},
             {"failed", report::ValueStyle::kInteger},
             {"in jobs", report::ValueStyle::kInteger, false},
             {"to do", report::ValueStyle::kInteger, false},
             {"its runs"}},
            {},
            {},
            /*sorts=*/false};
  for (const metrics::SweepNow& sweep : live.now.sweeps) {
    const store::SweepProgress& p = sweep.progress;
    list.rows.push_back({{{p.sweep.name, to({"sweeps", p.sweep.name})},
                          {p.sweep.measured_as.campaign},
                          {p.points},
                          {p.ok},
                          {p.out_of_memory},
                          {p.failed - p.out_of_memory},
                          {p.live},
                          {p.points - p.finished() - p.live},
                          {"runs", to({"runs"}, {{"sweep", p.sweep.name}})}}});
  }
  return list;
}

}  // namespace

std::string LiveHtml(const LiveNow& live, const Links& to, const std::string& only) {
  if (!live.trouble.empty()) return "<p class=\"empty\">" + report::EscapeHtml(live.trouble) + "</p>\n";
  std::string out;
  for (const metrics::SweepNow& sweep : live.now.sweeps) {
    if (only.empty() ? IsAtWork(sweep, live) : sweep.progress.sweep.name == only) {
      out += SweepHtml(sweep, live, to, only.empty());
    }
  }
  if (!only.empty()) return out;
  if (out.empty()) out = "<p class=\"empty\">Nothing runs now.</p>\n";
  if (live.now.sweeps.empty()) return out + "<p>No sweeps yet: ridgeline run SWEEP makes the first.</p>\n";
  return out + "<h2>Sweeps</h2>\n" + ListHtml(SweepList(live, to));
}

std::string LiveElement(const LiveNow& live, const Links& to, const std::string& only) {
  return fmt::format("<div id=\"live\" data-events=\"{}\">\n{}</div>\n",
                     report::EscapeHtml(to({"events"}, {{"sweep", only}})), LiveHtml(live, to, only));
}

PageAnswer FirstPage(const LiveNow& live, const Links& to, const std::string& db) {
  return Framed(to, {"Now", report::EscapeHtml(db), LiveElement(live, to, ""), "/", to({"events"})});
}

PageAnswer SweepPage(store::Store& store, const LiveNow& live, const Links& to, const std::string& name,
                     const std::vector<std::string>& reports) {
  const store::SweepRecord sweep = store.Progress(name).sweep;
  std::string main = LiveElement(live, to, name);
  main += "<p class=\"tools\">" + LinkHtml(to({"runs"}, {{"sweep", name}}), "All its runs");
  for (const std::string& report : reports) {
    main += LinkHtml(to({"reports", report}, {{"sweep", name}}), "Report: " + report);
  }
  main += "</p>\n<h2>Newest runs</h2>\n";
  constexpr int64_t kNewest = 20;
  main += RunsTable(store, to, {{"sweep", name}}, 0, kNewest).html;
  main += FoldedHtml("The sweep's file", PreHtml(sweep.text));
  const std::string said = fmt::format("{}{}campaign {}", sweep.description, sweep.description.empty() ? "" : "; ",
                                       sweep.measured_as.campaign);
  return Framed(to, {name, report::EscapeHtml(said), main, "/sweeps", to({"events"}, {{"sweep", name}})});
}

}  // namespace ridgeline::serve
