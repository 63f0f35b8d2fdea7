// Shows the outcome of each night, and what of it was accepted.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/gate.h"
#include "regress/nights.h"
#include "report/escape.h"
#include "serve/pages.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kMostNights = 200;
constexpr size_t kMostAccepted = 500;

std::string TimeOf(int64_t unix_s) { return unix_s > 0 ? FormatUnixTime(1'000'000'000 * unix_s) : ""; }

List NightList(const Links& to, const std::vector<regress::Night>& nights) {
  List list{"nights",
            {{"night"}, {"began", report::ValueStyle::kText, false}, {"answer"}, {"details"}, {"accepted"}},
            {},
            {}};
  for (auto night = nights.rbegin(); night != nights.rend() && list.rows.size() < kMostNights; ++night) {
    ListRow row;
    row.failed = night->is_over() && !night->is_good();
    row.cells = {{night->name, to({"runs"}, {{"campaign", night->name}})},
                 {TimeOf(night->started_unix_s)},
                 {regress::NightAnswer(*night)},
                 {regress::NightWords(*night)},
                 {regress::AcceptedWords(*night)}};
    list.rows.push_back(std::move(row));
  }
  if (nights.size() > kMostNights) list.caption = fmt::format("The last {} of {} nights.", kMostNights, nights.size());
  return list;
}

// What accepting it subtracts from later measurements: "step time +5.3 %".
std::string TakenWords(const regress::WorseCell& worse) {
  std::vector<std::string> words;
  for (const auto& [metric, figures] : worse.metrics) {
    if (figures.up > 0) words.push_back(fmt::format("{} {:+.1f} %", regress::GateMetricName(metric), 100 * figures.up));
  }
  return Join(words, ", ");
}

List AcceptedList(const Links& to, const std::vector<regress::Night>& nights) {
  List list{
      "accepted",
      {{"point"},
       {"night"},
       {"at most", report::ValueStyle::kText, true, "The upper end of its 95 % interval, which the gate subtracts."},
       {"by"},
       {"reason"},
       {"accepted on", report::ValueStyle::kText, false}},
      {},
      {}};
  for (auto night = nights.rbegin(); night != nights.rend() && list.rows.size() < kMostAccepted; ++night) {
    for (const regress::AcceptedCell& accepted : night->accepted) {
      const auto worse = std::ranges::find(night->worse, accepted.cell, &regress::WorseCell::cell);
      if (worse == night->worse.end() || list.rows.size() >= kMostAccepted) continue;
      ListRow row;
      row.cells = {
          {worse->point.empty() ? accepted.cell.point_id : worse->point, to({"history", accepted.cell.point_id})},
          {night->name},
          {TakenWords(*worse)},
          {accepted.author},
          {accepted.reason},
          {TimeOf(accepted.unix_s)}};
      list.rows.push_back(std::move(row));
    }
  }
  if (list.rows.size() == kMostAccepted) list.caption = fmt::format("The last {}.", kMostAccepted);
  return list;
}

}  // namespace

PageAnswer NightsPage(const Links& to, const std::filesystem::path& folder) {
  std::vector<std::string> problems;
  const std::vector<regress::Night> nights = regress::ReadNights(folder, &problems);
  std::string main;
  for (const std::string& problem : problems) {
    main += "<p class=\"answer\">" + report::EscapeHtml(PrintableText(problem)) + "</p>\n";
  }
  if (nights.empty()) {
    main += "<p class=\"empty\">There are no nights beside this database. `ridgeline nightly run` makes them.</p>\n";
  } else {
    main += ListHtml(NightList(to, nights));
    const List accepted = AcceptedList(to, nights);
    if (!accepted.rows.empty()) main += "<h2>Accepted changes</h2>\n" + ListHtml(accepted);
  }
  return Framed(to, {"Nights", "The gate's verdict on each night, and what was accepted", main, "/nights", ""});
}

}  // namespace ridgeline::serve
