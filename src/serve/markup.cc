#include "serve/markup.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "report/assets.h"
#include "report/escape.h"
#include "report/html_table.h"
#include "report/rows.h"
#include "report/svg.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kMaxFact = 4000;  // characters

struct SitePlace {
  const char* path;
  const char* name;
};
constexpr std::array<SitePlace, 6> kPlaces = {{{"/", "Now"},
                                               {"/runs", "Runs"},
                                               {"/history", "History"},
                                               {"/nights", "Nights"},
                                               {"/compare", "Compare"},
                                               {"/reports", "Reports"}}};

std::string ListCellHtml(const ListColumn& column, const ListCell& cell, bool folds) {
  const bool words = column.style == report::ValueStyle::kText;
  std::string attributes = folds && !column.key ? R"( class="more")" : "";
  if (!words) attributes += R"( align="right")";
  if (std::holds_alternative<std::monostate>(cell.value) && cell.html.empty()) attributes += R"( data-none="")";
  const bool number = std::holds_alternative<int64_t>(cell.value) || std::holds_alternative<double>(cell.value);
  if (number) attributes += fmt::format(R"( data-v="{}")", CellText(cell.value));
  if (!cell.html.empty()) return fmt::format("<td{}>{}</td>", attributes, cell.html);
  const std::string text = words ? CellText(cell.value) : report::FormatValue(column.style, cell.value);
  if (cell.link.empty()) return report::Titled("td", attributes, text, report::kMaxCell);
  return fmt::format("<td{}>{}</td>", attributes, LinkHtml(cell.link, ShortenToCodePoints(text, report::kMaxCell)));
}

}  // namespace

std::string LinkHtml(const std::string& address, std::string_view text) {
  return fmt::format(R"(<a href="{}">{}</a>)", report::EscapeHtml(address), report::EscapeHtml(text));
}

std::string ListHtml(const List& list) {
  const auto keys = std::count_if(list.columns.begin(), list.columns.end(), [](const ListColumn& c) { return c.key; });
  const bool folds = keys < std::ssize(list.columns);
  std::string out = "<div>\n";
  if (folds) {
    out += fmt::format(R"(<input class="fold" type="checkbox" id="{0}" hidden=""/><label class="fold" for="{0}" )"
                       R"(hidden="">all {1} columns</label>)"
                       "\n",
                       report::EscapeHtml(list.id), list.columns.size());
  }
  out += fmt::format(R"(<div class="scroll"><table{}>)"
                     "\n",
                     list.sorts ? R"( data-sort="")" : "");
  if (!list.caption.empty()) out += "<caption>" + report::EscapeHtml(list.caption) + "</caption>\n";
  out += "<thead>\n<tr>";
  for (const ListColumn& column : list.columns) {
    out += fmt::format(R"(<th scope="col"{} align="{}"{}>{}</th>)", folds && !column.key ? R"( class="more")" : "",
                       column.style == report::ValueStyle::kText ? "left" : "right",
                       column.help.empty() ? "" : fmt::format(R"( title="{}")", report::EscapeHtml(column.help)),
                       report::EscapeHtml(column.label));
  }
  out += "</tr>\n</thead>\n<tbody>\n";
  for (const ListRow& row : list.rows) {
    out += row.failed ? R"(<tr class="failed">)" : "<tr>";
    for (size_t c = 0; c < list.columns.size(); ++c) out += ListCellHtml(list.columns[c], row.cells.at(c), folds);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n</div>\n";
}

std::string FactsHtml(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = "<table class=\"environment\">\n";
  for (const auto& [name, value] : facts) {
    out += "<tr>" + report::Titled("th", R"( scope="row" align="left")", name, report::kMaxCell) +
           report::Titled("td", "", value, kMaxFact) + "</tr>\n";
  }
  return out + "</table>\n";
}

std::string FoldedHtml(std::string_view title, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", report::EscapeHtml(title), html);
}

std::string PreHtml(std::string_view text) {
  return fmt::format("<pre tabindex=\"0\">{}</pre>\n", report::EscapeHtml(PrintableText(text)));
}

std::string ChartsHtml(const std::vector<NotedChart>& charts) {
  if (charts.empty()) return {};
  const bool alone = charts.size() == 1;
  std::string out = "<div class=\"charts\">\n";
  for (const NotedChart& each : charts) {
    const auto drawn = [&](const report::svg::Room& room, std::string_view name) {
      report::LineChart copy = each.chart;
      copy.id += fmt::format("-{}", name);
      return report::RenderLineChart(copy, room);
    };
    out += fmt::format("<figure{}><figcaption><strong>{}</strong> <small>{}</small></figcaption>\n",
                       alone ? " class=\"full\"" : "", report::EscapeHtml(each.chart.title),
                       report::EscapeHtml(each.note));
    if (alone) out += "<div class=\"wide\" hidden=\"\">\n" + drawn(report::svg::kWide, "wide") + "</div>\n";
    out += "<div class=\"medium\">\n" + drawn(report::svg::kMedium, "medium") + "</div>\n";
    out += "<div class=\"narrow\" hidden=\"\">\n" + drawn(report::svg::kNarrow, "narrow") + "</div>\n</figure>\n";
  }
  return out + "</div>\n";
}

std::string ShareBarHtml(const std::string& words, const std::vector<BarShare>& shares) {
  int64_t all = 0;
  for (const BarShare& share : shares) all += share.count;
  std::string out = fmt::format(R"(<svg class="shares" role="img" aria-label="{}" width="100%" height="10">)",
                                report::EscapeHtml(words));
  double from = 0;
  for (const BarShare& share : shares) {
    if (share.count <= 0) continue;
    const double part = 100.0 * static_cast<double>(share.count) / static_cast<double>(all);
    out += fmt::format(R"(<rect x="{:.3f}%" y="0" width="{:.3f}%" height="10" fill="{}"/>)", from, part, share.colour);
    from += part;
  }
  return out + "</svg>\n";
}

std::string PageHtml(const Links& to, const PageFrame& frame) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"Ridgeline\"/>\n"
      // Browsers request an icon of each site. This says that there is none.
      "<link rel=\"icon\" href=\"data:,\"/>\n";
  if (!frame.events.empty()) out += "<noscript><meta http-equiv=\"refresh\" content=\"5\"/></noscript>\n";
  out +=
      fmt::format("<title>{} \xE2\x80\x93 Ridgeline</title>\n<style>{}</style>\n<style>{}</style>\n</head>\n<body>\n",
                  report::EscapeHtml(frame.title), report::kPageStyle, kSiteStyle);
  out += "<header>\n<nav class=\"site\" aria-label=\"Site\">\n";
  for (const SitePlace& place : kPlaces) {
    out += fmt::format("<a href=\"{}\"{}>{}</a>\n", report::EscapeHtml(to.base() + place.path),
                       frame.here == place.path ? " aria-current=\"page\"" : "", place.name);
  }
  out += "</nav>\n<h1>" + report::EscapeHtml(frame.title) + "</h1>\n";
  if (!frame.facts.empty()) out += "<p class=\"facts\">" + frame.facts + "</p>\n";
  out += "</header>\n<main>\n";
  if (!frame.events.empty()) {
    out += "<p class=\"note\" id=\"live-state\" role=\"status\"></p>\n";
  }
  out += frame.main + "</main>\n<script>" + std::string(report::kPageScript) + "</script>\n<script>" +
         std::string(kSiteScript) + "</script>\n</body>\n</html>\n";
  return out;
}

std::string PagePolicy() {
  return fmt::format(
      "default-src 'none'; style-src 'sha256-{}' 'sha256-{}'; script-src 'sha256-{}' 'sha256-{}'; img-src data:; "
      "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      report::kPageStyleHash, kSiteStyleHash, report::kPageScriptHash, kSiteScriptHash);
}

std::string ReportPolicy() {
  return fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'",
      report::kPageStyleHash, report::kPageScriptHash);
}

}  // namespace ridgeline::serve
