// What pages are made of: links, lists, charts, and the frame around them. All text is escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/lines.h"
#include "report/report.h"
#include "serve/http.h"

namespace ridgeline {

std::string LinkHtml(const std::string& address, std::string_view text);

struct ListColumn {
  std::string label;
  ValueStyle style = ValueStyle::kText;
  bool key = true;  // stays where a screen has no room for every column
  std::string help = {};
};

struct ListCell {
  Cell value;             // what it is sorted by, and shown as its column's style has it
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
  bool sorts = true;  // by a click, where scripts run
};

std::string ListHtml(const List& list);

// Of names and what is to be said of them, two columns.
std::string FactsHtml(const std::vector<std::pair<std::string, std::string>>& facts);

// A title that opens what is in it, also without a script.
std::string FoldedHtml(std::string_view title, const std::string& html);

// Words of several lines as they are: a log, a file.
std::string PreHtml(std::string_view text);

// Charts as they fit a large screen, half of one, and a phone: one alone over all of the page, several two by two.
struct NotedChart {
  LineChart chart;
  std::string note;
};
std::string ChartsHtml(const std::vector<NotedChart>& charts);

// A share of a whole for each part, as one bar.
struct BarShare {
  int64_t count = 0;
  std::string_view colour;
};
std::string ShareBarHtml(const std::string& words, const std::vector<BarShare>& shares);

// A page of ours.
struct PageFrame {
  std::string title;   // text
  std::string facts;   // HTML, below the title; may be empty
  std::string main;    // HTML
  std::string here;    // the path of what it is part of, such as "/runs"
  std::string events;  // the address that says how its element `live` changes; empty: it does not
};
std::string PageHtml(const Links& to, const PageFrame& frame);

// The Content-Security-Policy of such pages: their own style and script by hash, and nothing else.
std::string PagePolicy();
// Of reports, which say it themselves too.
std::string ReportPolicy();

extern const std::string_view kSiteStyle;
extern const std::string_view kSiteStyleHash;
extern const std::string_view kSiteScript;
extern const std::string_view kSiteScriptHash;

}  // namespace ridgeline
