// The parts of pages: links, lists, charts, and the frame around them. All text is escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/lines.h"
#include "report/report.h"
#include "serve/http.h"

namespace ridgeline::serve {

std::string LinkHtml(const std::string& address, std::string_view text);

struct ListColumn {
  std::string label;
  report::ValueStyle style = report::ValueStyle::kText;
  bool key = true;  // stays if a screen has no room for every column
  std::string help = {};
};

struct ListCell {
  Cell value;             // sorts the cell, and is shown in its column's style
  std::string link = {};  // an address
  std::string html = {};  // instead of the value
};

struct ListRow {
  std::vector<ListCell> cells;
  bool failed = false;
};

struct List {
  std::string id;  // unique in the page
  std::vector<ListColumn> columns;
  std::vector<ListRow> rows;
  std::string caption = {};
  bool sorts = true;  // sorts on a click, if scripts run
};

std::string ListHtml(const List& list);

// Two columns: names and their texts.
std::string FactsHtml(const std::vector<std::pair<std::string, std::string>>& facts);

// A title that unfolds its content, even without a script.
std::string FoldedHtml(std::string_view title, const std::string& html);

// Preformatted text of several lines: a log, a file.
std::string PreHtml(std::string_view text);

// Charts for a large screen, half of one, and a phone. A single chart takes the whole page; several stand two by two.
struct NotedChart {
  report::LineChart chart;
  std::string note;
};
std::string ChartsHtml(const std::vector<NotedChart>& charts);

// One bar with a share of the whole for each part.
struct BarShare {
  int64_t count = 0;
  std::string_view colour;
};
std::string ShareBarHtml(const std::string& words, const std::vector<BarShare>& shares);

// One of our pages.
struct PageFrame {
  std::string title;   // text
  std::string facts;   // HTML, below the title; may be empty
  std::string main;    // HTML
  std::string here;    // the path of the section that it belongs to, such as "/runs"
  std::string events;  // the address of changes to its element `live`; empty: none
};
std::string PageHtml(const Links& to, const PageFrame& frame);

// The Content-Security-Policy of such pages: allows only their own style and script, by hash.
std::string PagePolicy();
// The policy of reports, which also state it themselves.
std::string ReportPolicy();

extern const std::string_view kSiteStyle;
extern const std::string_view kSiteStyleHash;
extern const std::string_view kSiteScript;
extern const std::string_view kSiteScriptHash;

}  // namespace ridgeline::serve
