// Shows the table of runs, with its filters in the address.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "regress/point_names.h"
#include "report/escape.h"
#include "run/result.h"
#include "serve/answer.h"
#include "serve/pages.h"

namespace ridgeline::serve {
namespace {

constexpr int64_t kRunsAPage = 100;
constexpr const char* kNotOk = "not ok";  // value of the filter `status`: any failed run

// A filter of the address. `condition` is true for rows of `measurements` that match :NAME.
struct RunFilter {
  const char* name;
  const char* label;
  const char* condition;
  const char* choices;  // a query for its values
};
constexpr std::array<RunFilter, 7> kFilters = {
    {{"sweep", "Sweep", "point_id IN (SELECT point_id FROM sweep_points WHERE sweep = :sweep)",
      "SELECT name FROM sweeps ORDER BY created_unix_ns DESC LIMIT 200"},
     {"campaign", "Campaign", "campaign = :campaign", "SELECT DISTINCT campaign FROM results LIMIT 200"},
     {"status", "Status", "(status = :status OR (:status = 'not ok' AND status <> 'ok'))", ""},
     {"model", "Model", "model = :model", "SELECT DISTINCT model FROM points ORDER BY 1 LIMIT 200"},
     {"precision", "Precision", "precision = :precision", "SELECT DISTINCT precision FROM points ORDER BY 1 LIMIT 200"},
     {"checkpointing", "Checkpointing", "checkpointing = :checkpointing",
      "SELECT DISTINCT checkpointing FROM points ORDER BY 1 LIMIT 200"},
     {"trainer", "Trainer", "point_id IN (SELECT id FROM points WHERE trainer = :trainer)",
      "SELECT DISTINCT trainer FROM points ORDER BY 1 LIMIT 200"}}};

std::vector<std::string> ChoicesOf(store::Store& store, const RunFilter& filter) {
  if (std::string_view(filter.choices).empty()) {
    std::vector<std::string> statuses = StatusNames();
    statuses.insert(statuses.begin(), kNotOk);
    return statuses;
  }
  std::vector<std::string> choices;
  for (const auto& row : store.Query(filter.choices).rows) choices.push_back(CellText(row[0]));
  return choices;
}

std::string FormHtml(store::Store& store, const Links& to, const PageRequest& request) {
  std::string out = "<form class=\"filters\" action=\"" + report::EscapeHtml(to({"runs"})) + "\" method=\"get\">\n";
  for (const RunFilter& filter : kFilters) {
    const std::string chosen = request.Value(filter.name);
    std::vector<std::string> choices = ChoicesOf(store, filter);
    if (choices.size() < 2 && chosen.empty()) continue;
    if (!chosen.empty() && std::find(choices.begin(), choices.end(), chosen) == choices.end())
      choices.push_back(chosen);
    out += fmt::format("<label>{}<select name=\"{}\"><option value=\"\">all</option>", filter.label, filter.name);
    for (const std::string& choice : choices) {
      out += fmt::format("<option value=\"{}\"{}>{}</option>", report::EscapeHtml(choice),
                         choice == chosen ? " selected=\"selected\"" : "",
                         report::EscapeHtml(ShortenToCodePoints(choice, 60)));
    }
    out += "</select></label>\n";
  }
  return out + "<button class=\"do\" type=\"submit\">Show</button>\n</form>\n";
}

// The number of a run; 0 if the address has none.
int64_t BeforeOf(const PageRequest& request) {
  const std::string text = request.Value("before");
  int64_t before = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), before);
  return error == std::errc() && end == text.data() + text.size() ? std::max<int64_t>(before, 0) : 0;
}

}  // namespace

RunsShown RunsTable(store::Store& store, const Links& to, const QueryValues& filters, int64_t before, int64_t most) {
  std::map<std::string, std::string> texts;
  std::string conditions;
  for (const auto& chosen : filters) {
    const std::string& name = chosen.first;
    const std::string& value = chosen.second;
    const auto filter =
        std::find_if(kFilters.begin(), kFilters.end(), [&](const RunFilter& f) { return name == f.name; });
    if (filter == kFilters.end() || value.empty() || !texts.emplace(name, value).second) continue;
    conditions += fmt::format(" AND {}", filter->condition);
  }
  if (before > 0) conditions += fmt::format(" AND result < {}", before);
  Table table =
      store.Query(fmt::format("SELECT result, point_id, spec, status, failure, steady_tokens_per_s, step_median_ns, "
                              "observed_peak_bytes AS peak_bytes, campaign, "
                              "environment ->> '$.git_commit' AS git_commit, ended_unix_ns, provenance, emulated, "
                              "trainer, disturbed_by_others "
                              "FROM measurements WHERE true{} ORDER BY result DESC LIMIT {}",
                              conditions, most + 1),
                  texts);
  RunsShown shown;
  const bool more = std::ssize(table.rows) > most;
  if (more) table.rows.pop_back();
  shown.count = std::ssize(table.rows);
  if (table.rows.empty()) {
    shown.html = "<p class=\"empty\">No runs.</p>\n";
    return shown;
  }
  const QueryAnswer runs(std::move(table));
  if (more) shown.older = runs.Integer(runs.size() - 1, "result");
  std::vector<std::string> specs;
  for (size_t row = 0; row < runs.size(); ++row) specs.push_back(runs.Text(row, "spec"));
  const std::vector<std::string> names = regress::PointNames(specs);
  List list{"runs",
            {{"compare", report::ValueStyle::kText, false, "choose two to four, and compare them below"},
             {"run"},
             {"configuration", report::ValueStyle::kText, true, "what differs between the runs shown"},
             {"end"},
             {"tokens/s", report::ValueStyle::kCount},
             {"step", report::ValueStyle::kDuration, false, "median of the measured steps"},
             {"peak memory", report::ValueStyle::kBytes, false, "of the GPU if there is one, else of the process"},
             {"campaign", report::ValueStyle::kText, false},
             {"commit", report::ValueStyle::kText, false},
             {"ended", report::ValueStyle::kText, false}},
            {},
            {}};
  for (size_t row = 0; row < runs.size(); ++row) {
    const std::string number = runs.Text(row, "result");
    std::string end = runs.Has(row, "failure") ? runs.Text(row, "failure") : "ok";
    if (runs.Text(row, "provenance") != "measured" && end == "ok") end = runs.Text(row, "provenance");
    if (runs.Integer(row, "emulated") != 0) end += ", emulated";
    if (runs.Has(row, "disturbed_by_others")) end += ", disturbed";
    ListRow shown_row;
    shown_row.failed = runs.Has(row, "failure");
    shown_row.cells = {
        {"", "",
         fmt::format(R"(<input type="checkbox" name="run" value="{0}" aria-label="compare run {0}"/>)", number)},
        {runs.At(row, "result"), to({"runs", number})},
        {names[row], to({"runs", number})},
        {end},
        {runs.At(row, "steady_tokens_per_s")},
        {runs.At(row, "step_median_ns")},
        {runs.At(row, "peak_bytes")},
        {runs.At(row, "campaign")},
        {runs.Text(row, "git_commit").substr(0, 12)},
        {runs.Integer(row, "ended_unix_ns") > 0 ? FormatUnixTime(runs.Integer(row, "ended_unix_ns")) : ""}};
    list.rows.push_back(std::move(shown_row));
  }
  shown.html =
      "<form action=\"" + report::EscapeHtml(to({"compare"})) + "\" method=\"get\">\n" + ListHtml(list) +
      "<p class=\"tools\"><button class=\"do\" type=\"submit\">Compare the chosen runs</button></p>\n</form>\n";
  return shown;
}

PageAnswer RunsPage(store::Store& store, const Links& to, const PageRequest& request) {
  const int64_t before = BeforeOf(request);
  const RunsShown shown = RunsTable(store, to, request.query, before, kRunsAPage);
  QueryValues kept;
  std::vector<std::string> chosen;
  for (const RunFilter& filter : kFilters) {
    kept.emplace_back(filter.name, request.Value(filter.name));
    if (!kept.back().second.empty()) chosen.push_back(kept.back().first + " " + kept.back().second);
  }
  std::string main = FormHtml(store, to, request) + shown.html;
  if (before > 0 || shown.older > 0) {
    main += "<p class=\"pages\">";
    if (before > 0) main += LinkHtml(to({"runs"}, kept), "Newest runs");
    if (shown.older > 0) {
      kept.emplace_back("before", fmt::format("{}", shown.older));
      main += LinkHtml(to({"runs"}, kept), "Older runs");
    }
    main += "</p>\n";
  }
  std::string facts = fmt::format("{}, the newest first", CountOf(shown.count, "run"));
  if (before > 0) facts += fmt::format(", before run {}", before);
  if (!chosen.empty()) facts += ": " + Join(chosen, ", ");
  PageAnswer answer = Framed(to, {"Runs", report::EscapeHtml(facts), main, "/runs", ""});
  answer.is_lasting = true;
  return answer;
}

}  // namespace ridgeline::serve
