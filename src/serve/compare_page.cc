// Shows runs side by side, and compares two campaigns point by point.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "regress/compare.h"
#include "report/escape.h"
#include "report/rows.h"
#include "run/fields.h"
#include "run/spec.h"
#include "serve/answer.h"
#include "serve/names.h"
#include "serve/pages.h"
#include "serve/series.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kMostCompared = 4;

struct ComparedFigure {
  const char* column;
  const char* label;
  report::ValueStyle style;
};
constexpr ComparedFigure kCompared[] = {
    {"steady_tokens_per_s", "steady tokens/s", report::ValueStyle::kCount},
    {"cold_tokens_per_s", "cold tokens/s", report::ValueStyle::kCount},
    {"step_median_ns", "median step", report::ValueStyle::kDuration},
    {"step_mean_ns", "mean step", report::ValueStyle::kDuration},
    {"step_cv", "cv of steps", report::ValueStyle::kFraction},
    {"tokens_per_s_per_gpu", "tokens/s a GPU", report::ValueStyle::kCount},
    {"tflops_per_gpu", "TFLOP/s a GPU (model, causal attention as half)", report::ValueStyle::kNumber},
    {"mfu", "MFU (of those)", report::ValueStyle::kFraction},
    {"disturbed_by_others", "cores held by others", report::ValueStyle::kFraction},
    {"step_p95_ns", "95 % of steps within", report::ValueStyle::kDuration},
    {"planned_peak_bytes", "planned peak memory", report::ValueStyle::kBytes},
    {"rss_peak_bytes", "peak memory of the process", report::ValueStyle::kBytes},
    {"device_peak_bytes", "peak memory of the GPU", report::ValueStyle::kBytes},
    {"device_reserved_bytes", "reserved memory of the GPU", report::ValueStyle::kBytes},
    {"measured_steps", "measured steps", report::ValueStyle::kInteger},
    {"printed_mfu", "MFU, as printed", report::ValueStyle::kFraction},
    {"printed_tflops_per_gpu", "TFLOP/s of a GPU, as printed", report::ValueStyle::kNumber},
    {"gpu_power_w", "power, W", report::ValueStyle::kNumber},
};

std::optional<double> NumberIn(const Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  return std::nullopt;
}

// The chosen runs, in the order in which they were chosen.
std::vector<int64_t> ChosenRuns(const PageRequest& request) {
  std::vector<int64_t> chosen;
  for (const std::string& text : request.Values("run")) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a run's number", PrintableLine(text)),
                  "choose runs in the table of runs");
    }
    if (std::find(chosen.begin(), chosen.end(), number) == chosen.end()) chosen.push_back(number);
  }
  if (chosen.size() == 1 || chosen.size() > kMostCompared) {
    throw Error(ErrorKind::kUsage, fmt::format("{} run{} chosen", chosen.size(), chosen.size() == 1 ? " is" : "s are"),
                fmt::format("two to {} can be compared", kMostCompared));
  }
  return chosen;
}

PageAnswer RunsSideBySide(store::Store& store, const Links& to, const std::vector<int64_t>& numbers) {
  std::vector<QueryAnswer> runs;
  for (const int64_t number : numbers) {
    runs.emplace_back(store.Query(fmt::format("SELECT * FROM measurements WHERE result = {}", number)));
    if (runs.back().size() == 0) {
      throw Error(ErrorKind::kUsage, fmt::format("there is no run {} in this database", number),
                  "a run that was repeated has another number; the table of runs has all of them");
    }
  }
  List list{"compared", {{"figure"}}, {}, {}, /*sorts=*/false};
  ListRow links{{{"configuration"}}};
  ListRow ends{{{"end"}}};
  std::vector<RunSpec> specs;
  for (size_t i = 0; i < runs.size(); ++i) {
    list.columns.push_back({fmt::format("run {}", numbers[i])});
    links.cells.push_back({NameOfPoint(runs[i].Text(0, "spec")), to({"runs", fmt::format("{}", numbers[i])})});
    ends.cells.push_back({runs[i].Has(0, "failure") ? runs[i].Text(0, "failure") : "ok"});
    specs.push_back(DecodeSpec(ParseJson(runs[i].Text(0, "spec"), "a point in the store"), "a point in the store"));
  }
  list.rows = {links, ends};
  for (const ComparedFigure& figure : kCompared) {
    ListRow row{{{figure.label}}};
    const std::optional<double> first = NumberIn(runs[0].At(0, figure.column));
    bool any = false;
    for (const QueryAnswer& run : runs) {
      const Cell& value = run.At(0, figure.column);
      const std::optional<double> number = NumberIn(value);
      any = any || number.has_value();
      std::string text = report::FormatValue(figure.style, value);
      // Compares only figures of the same kind.
      const bool is_alike = std::string_view(figure.column) != "device_peak_bytes" ||
                            run.Text(0, "device_peak_kind") == runs[0].Text(0, "device_peak_kind");
      if (&run != runs.data() && first && number && *first > 0 && is_alike) {
        text +=
            " (" + report::FormatValue(report::ValueStyle::kSignedPercent, Cell(100 * (*number / *first - 1))) + ")";
      }
      row.cells.push_back({"", "", report::EscapeHtml(text)});
    }
    if (any) list.rows.push_back(std::move(row));
  }
  const auto add_where_it_differs = [&](const std::string& label, const auto& text_of) {
    ListRow row{{{label}}};
    bool differs = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      row.cells.emplace_back().value = text_of(i);
      differs = differs || CellText(row.cells.back().value) != CellText(row.cells[1].value);
    }
    if (differs) list.rows.push_back(std::move(row));
  };
  for (const Field& field : Fields()) {
    add_where_it_differs(std::string(field.name), [&](size_t i) { return FieldText(specs[i], field); });
  }
  for (const char* column :
       {"device_peak_kind", "run_note", "campaign", "setup", "machine", "version", "device_name"}) {
    add_where_it_differs(column, [&](size_t i) { return runs[i].Text(0, column); });
  }
  NamedSeries steps;
  NamedSeries losses;
  for (size_t i = 0; i < runs.size(); ++i) {
    steps.emplace_back(fmt::format("run {}", numbers[i]), runs[i].Text(0, "all_steps_ns"));
    losses.emplace_back(fmt::format("run {}", numbers[i]), runs[i].Text(0, "loss"));
  }
  const std::string main = ListHtml(list) + StepCharts(steps, losses);
  return Framed(to, {"Compare runs", fmt::format("{} runs; changes are against the first", runs.size()), main,
                     "/compare/runs", ""});
}

std::string CampaignsForm(const Links& to, const std::vector<std::string>& campaigns, const std::string& base,
                          const std::string& head) {
  std::string out = "<form class=\"filters\" action=\"" + report::EscapeHtml(to({"compare"})) + "\" method=\"get\">\n";
  for (const auto& [name, label, chosen] :
       {std::tuple{"base", "Base: the earlier state", base}, {"head", "Head: the state in question", head}}) {
    out += fmt::format("<label>{}<select name=\"{}\">", label, name);
    for (const std::string& campaign : campaigns) {
      out += fmt::format("<option value=\"{0}\"{1}>{0}</option>", report::EscapeHtml(campaign),
                         campaign == chosen ? " selected=\"selected\"" : "");
    }
    out += "</select></label>\n";
  }
  return out + "<button class=\"do\" type=\"submit\">Compare</button>\n</form>\n";
}

std::string CampaignsHtml(store::Store& store, const Links& to, const std::string& base, const std::string& head) {
  for (const std::string& name : {base, head}) {
    if (!store.HasCampaign(name)) {
      throw Error(ErrorKind::kUsage, fmt::format("nothing was measured for the campaign '{}'", PrintableLine(name)),
                  "choose one of those that are listed");
    }
  }
  const std::vector<regress::ComparedCell> cells =
      regress::MatchSides(regress::ReadSide(store, {base, {}}), regress::ReadSide(store, {head, {}}));
  const Table table = regress::ShortComparisonTable(cells);
  List list{"cells", {}, {}, {}};
  for (const std::string& column : table.columns) {
    const bool key = column == "point" || column == "head / base" || column == "step time";
    list.columns.push_back({column, report::ValueStyle::kText, key});
  }
  constexpr size_t kMostCells = 500;
  for (size_t i = 0; i < std::min(table.rows.size(), kMostCells); ++i) {
    ListRow row;
    for (const Cell& cell : table.rows[i]) row.cells.push_back({cell});
    row.cells.front().link = to({"history", cells[i].either().point_id});
    list.rows.push_back(std::move(row));
  }
  if (table.rows.size() > kMostCells) {
    list.caption = fmt::format("The first {} of {}; ridgeline compare prints all.", kMostCells, table.rows.size());
  }
  return ListHtml(list);
}

}  // namespace

PageAnswer ComparePage(store::Store& store, const Links& to, const PageRequest& request) {
  if (const std::vector<int64_t> chosen = ChosenRuns(request); !chosen.empty())
    return RunsSideBySide(store, to, chosen);
  std::vector<std::string> campaigns;
  for (const auto& row :
       store.Query("SELECT campaign, max(number) FROM results GROUP BY campaign ORDER BY 2 DESC LIMIT 500").rows) {
    campaigns.push_back(CellText(row[0]));
  }
  std::string base = request.Value("base");
  std::string head = request.Value("head");
  std::string main;
  if (campaigns.size() < 2) {
    main =
        "<p class=\"empty\">Two campaigns can be compared: ridgeline run --campaign NAME or --again measures for "
        "another. "
        "Runs can be compared from the table of runs.</p>\n";
  } else if (base.empty() || head.empty()) {
    main = CampaignsForm(to, campaigns, campaigns[1], campaigns[0]) +
           "<p class=\"note\">Runs can be compared from the table of runs.</p>\n";
  } else {
    main = CampaignsForm(to, campaigns, base, head) + CampaignsHtml(store, to, base, head);
  }
  PageAnswer answer = Framed(to, {"Compare", "Two campaigns, point by point", main, "/compare", ""});
  answer.is_lasting = true;
  return answer;
}

}  // namespace ridgeline::serve
