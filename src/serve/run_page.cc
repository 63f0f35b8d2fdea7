// Shows one measurement: how it ended and why, its steps, figures, configuration, log and environment.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/escape.h"
#include "report/rows.h"
#include "ridgeline/job_dir.h"
#include "run/fields.h"
#include "run/figures.h"
#include "run/result.h"
#include "run/spec.h"
#include "serve/answer.h"
#include "serve/names.h"
#include "serve/pages.h"
#include "serve/series.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kShownLogBytes = 64 << 10;

using FactList = std::vector<std::pair<std::string, std::string>>;

std::string WithUnit(const Figure& figure, const Cell& value) {
  if (std::holds_alternative<std::monostate>(value)) return {};
  if (figure.type() == "true or false") return report::FormatValue(report::ValueStyle::kFlag, value);
  if (figure.unit == "bytes") return report::FormatValue(report::ValueStyle::kBytes, value);
  if (figure.unit == "ns") return report::FormatValue(report::ValueStyle::kDuration, value);
  if (figure.unit == "tokens/s" || figure.unit == "FLOP") {
    return report::FormatValue(report::ValueStyle::kCount, value) + " " + std::string(figure.unit);
  }
  const bool whole = std::holds_alternative<int64_t>(value);
  std::string text = report::FormatValue(whole ? report::ValueStyle::kCount : report::ValueStyle::kNumber, value);
  if (!figure.unit.empty() && !text.empty()) text += " " + std::string(figure.unit);
  return text;
}

// "activations 1.20 GB, parameters 100 MB" from a JSON object of amounts.
std::string AmountsText(const Figure& figure, const std::string& json) {
  std::vector<std::string> parts;
  const Json amounts = ParseJson(json, "amounts in the store");
  for (const auto& [name, amount] : amounts.items()) {
    if (!amount.is_number_integer()) continue;
    const auto value = amount.get<int64_t>();
    parts.push_back(name + " " + (figure.unit == "bytes" ? FormatBytes(value) : fmt::format("{}", value)));
  }
  return Join(parts, ", ");
}

// "data_time 0.012 s, bus_bandwidth 310 GB/s" from a definition's own figures.
std::string OwnFiguresText(const std::string& json) {
  std::vector<std::string> parts;
  for (const auto& [name, own] : DecodeOwnFigures(ParseJson(json, "metrics in the store"))) {
    parts.push_back(fmt::format("{} {}{}{}", name, report::FormatValue(report::ValueStyle::kNumber, own.value),
                                own.unit.empty() ? "" : " ", own.unit));
  }
  return Join(parts, ", ");
}

// Derived figures (docs/store.md). Those of a GPU count causal attention as half, and are shown beside the other
// convention.
struct FollowingFigure {
  const char* name;
  report::ValueStyle style;
  const char* help;
};
constexpr FollowingFigure kFollowing[] = {
    {"step_mean_ns", report::ValueStyle::kDuration,
     "mean of the measured steps: far above the median where some stall"},
    {"tokens_per_s_per_gpu", report::ValueStyle::kCount, "steady throughput over its GPUs"},
    {"tflops_per_gpu", report::ValueStyle::kNumber,
     "of the model: causal attention counts as half, recomputation does not count"},
    {"mfu", report::ValueStyle::kFraction, "those over the GPU's peak"},
    {"tflops_per_gpu_noncausal", report::ValueStyle::kNumber, "of the model, with attention over the full square"},
    {"mfu_noncausal", report::ValueStyle::kFraction, "those over the GPU's peak"},
    {"peak_tflops_per_gpu", report::ValueStyle::kNumber, "dense, in the run's precision, of the maker's data sheet"},
    {"energy_j_per_step", report::ValueStyle::kNumber, "joules of the GPU of rank 0, a measured step"},
    {"energy_j_per_token", report::ValueStyle::kNumber, "the same over its share of the tokens"},
    {"disturbed_by_others", report::ValueStyle::kFraction,
     "of its cores' time was used by others: no conclusion is drawn from this run"},
};

std::string FiguresHtml(const QueryAnswer& run) {
  List list{
      "figures", {{"figure"}, {"value"}, {"what it is", report::ValueStyle::kText, false}}, {}, {}, /*sorts=*/false};
  for (const Figure& figure : Figures()) {
    if (figure.is_series() || figure.unit == "ns since 1970") continue;
    const Cell& value = run.At(0, figure.name);
    const std::string text = figure.type() == "amounts"   ? AmountsText(figure, CellText(value))
                             : figure.type() == "figures" ? OwnFiguresText(CellText(value))
                                                          : WithUnit(figure, value);
    if (text.empty()) continue;
    list.rows.push_back(
        {{{std::string(figure.name)}, {"", "", report::EscapeHtml(text)}, {"", "", report::EscapeHtml(figure.help)}}});
  }
  for (const FollowingFigure& figure : kFollowing) {
    if (!run.Has(0, figure.name)) continue;
    const std::string text = report::FormatValue(figure.style, run.At(0, figure.name));
    list.rows.push_back(
        {{{figure.name}, {"", "", report::EscapeHtml(text)}, {"", "", report::EscapeHtml(figure.help)}}});
  }
  return ListHtml(list);
}

std::string ConfigurationHtml(const RunSpec& spec) {
  FactList facts;
  for (const Field& field : Fields()) {
    const std::string text = FieldText(spec, field);
    if (!text.empty()) facts.emplace_back(field.name, text);
  }
  for (const auto& [name, value] : spec.own) {
    facts.emplace_back(name, std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  }
  return FactsHtml(facts);
}

FactList TextsOf(const std::string& json, const std::string& source) {
  FactList facts;
  const Json texts = ParseJson(json, source);
  for (const auto& [name, value] : texts.items()) {
    facts.emplace_back(name, value.is_string() ? value.get<std::string>() : DumpJson(value));
  }
  return facts;
}

}  // namespace

std::string LogHtml(const std::string& job_dir, const std::string& point_id) {
  if (job_dir.empty()) return {};
  const std::filesystem::path log = PointDir(job_dir, point_id) / LogName(0);
  std::string tail = ReadLogTail(log, kShownLogBytes);
  if (tail.empty()) return {};
  if (tail.size() == kShownLogBytes) tail = tail.substr(std::min(tail.find('\n') + 1, tail.size()));
  return "<h2>The end of its log</h2>\n<p class=\"note\">" + report::EscapeHtml(log.string()) +
         "</p>\n<div class=\"log\">\n" + PreHtml(tail) + "</div>\n";
}

namespace {

// Returns -1 if it is no number.
int64_t WholeOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

// The rows of this point that ended at that time: one, except in databases edited by hand.
QueryAnswer EndedThen(store::Store& store, const std::string& point_id, int64_t ended_unix_ns) {
  return QueryAnswer(store.Query(
      fmt::format("SELECT number FROM results WHERE point_id = :point AND ended_unix_ns = {}", ended_unix_ns),
      {{"point", point_id}}));
}

// The number of this measurement, or of the later attempt that replaced it; 0 if there is none.
int64_t MeasurementOf(store::Store& store, const std::string& name) {
  const size_t dot = name.find('.');
  int64_t number = WholeOf(name);
  if (dot != std::string::npos) {
    const QueryAnswer then = EndedThen(store, name.substr(0, dot), WholeOf(std::string_view(name).substr(dot + 1)));
    number = then.size() == 1 ? then.Integer(0, "number") : -1;
  }
  const QueryAnswer measured(store.Query(
      fmt::format("SELECT m.result FROM results AS r JOIN measurements AS m ON m.point_id = r.point_id AND "
                  "m.setup = r.setup AND m.campaign = r.campaign WHERE r.number = {} AND m.attempt >= r.attempt "
                  "ORDER BY m.result = r.number DESC, m.attempt DESC LIMIT 1",
                  number)));
  return measured.size() == 0 ? 0 : measured.Integer(0, "result");
}

}  // namespace

PageAnswer RunPage(store::Store& store, const Links& to, const std::string& name) {
  const int64_t result = MeasurementOf(store, name);
  const std::string number = std::to_string(result);
  const QueryAnswer run(
      store.Query(fmt::format("SELECT m.*, m.environment ->> '$.definition' AS definition, j.job_dir, j.native_id, "
                              "j.launcher, j.submitted_unix_ns, j.started_unix_ns AS job_started "
                              "FROM measurements AS m LEFT JOIN jobs AS j ON j.key = m.job_key WHERE m.result = {}",
                              result)));
  if (run.size() == 0) {
    throw Error(ErrorKind::kUsage, fmt::format("there is no run '{}' in this database", PrintableLine(name)),
                "it was let go, or is in another database; the table of runs has all that are here");
  }
  const std::string point_id = run.Text(0, "point_id");
  const int64_t ended_unix_ns = run.Integer(0, "ended_unix_ns");
  const std::string lasting = fmt::format("{}.{}", point_id, ended_unix_ns);
  if (name != lasting && EndedThen(store, point_id, ended_unix_ns).size() == 1) {
    PageAnswer there;
    there.status = 302;
    there.location = to({"runs", lasting});
    return there;
  }
  const std::string status = run.Text(0, "status");
  const RunSpec spec = DecodeSpec(ParseJson(run.Text(0, "spec"), "a point in the store"), "a point in the store");
  std::string answer = status == "ok" ? "ok" : run.Text(0, "failure");
  if (run.Has(0, "steady_tokens_per_s") && status == "ok") {
    answer = report::FormatValue(report::ValueStyle::kCount, run.At(0, "steady_tokens_per_s")) + " tokens/s";
    if (run.Has(0, "mfu")) {
      answer += fmt::format(", {} MFU", report::FormatValue(report::ValueStyle::kFraction, run.At(0, "mfu")));
    }
    if (run.Has(0, "disturbed_by_others")) {
      answer = fmt::format("Others held {} of its cores, so reports draw no conclusion from its times. It had {} {}.",
                           report::FormatValue(report::ValueStyle::kFraction, run.At(0, "disturbed_by_others")), answer,
                           report::kDisturbedMark);
    }
  }
  std::string main = "<p class=\"answer\">" + report::EscapeHtml(answer) + "</p>\n";
  for (const char* words : {"message", "hint", "run_note"}) {
    if (const std::string text = run.Text(0, words); !text.empty())
      main += "<p>" + report::EscapeHtml(PrintableText(text)) + "</p>\n";
  }
  main += "<p class=\"tools\">" + LinkHtml(to({"history", point_id}), "History of this configuration") + "</p>\n";
  main += StepCharts({{"", run.Text(0, "all_steps_ns")}}, {{"", run.Text(0, "loss")}});

  FactList about = {{"run", number}, {"point", point_id}, {"attempt", run.Text(0, "attempt")}, {"status", status}};
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) about.emplace_back(name, text);
  };
  const auto add_time = [&](const char* name, const char* column) {
    if (const int64_t ns = run.Integer(0, column); ns > 0) add(name, FormatUnixTime(ns));
  };
  add("reason", run.Text(0, "reason"));
  add("provenance", run.Text(0, "provenance"));
  add("campaign", run.Text(0, "campaign"));
  add("setup", run.Text(0, "setup"));
  add("machine", run.Text(0, "machine"));
  add("build", run.Text(0, "version"));
  add("definition", run.Text(0, "definition"));
  add("job", run.Text(0, "job_key"));
  add("launcher", run.Text(0, "launcher"));
  if (run.Text(0, "native_id") != run.Text(0, "job_key")) add("the scheduler's name", run.Text(0, "native_id"));
  add_time("submitted", "submitted_unix_ns");
  add_time("job began", "job_started");
  add_time("began", "started_unix_ns");
  add_time("ended", "ended_unix_ns");
  main += "<h2>The run</h2>\n" + FactsHtml(about) + "<h2>Figures</h2>\n" + FiguresHtml(run);
  if (const FactList evidence = TextsOf(run.Text(0, "evidence"), "evidence in the store"); !evidence.empty()) {
    main += "<h2>Evidence</h2>\n";
    FactList short_ones;
    std::string long_ones;
    for (const auto& [name, text] : evidence) {
      if (text.find('\n') == std::string::npos) {
        short_ones.emplace_back(name, text);
      } else {
        long_ones += "<h3>" + report::EscapeHtml(name) + "</h3>\n" + PreHtml(text);
      }
    }
    if (!short_ones.empty()) main += FactsHtml(short_ones);
    main += long_ones;
  }
  main += LogHtml(run.Text(0, "job_dir"), point_id);
  main += FoldedHtml("Configuration", ConfigurationHtml(spec));
  FactList environment =
      TextsOf(run.Text(0, "environment").empty() ? "{}" : run.Text(0, "environment"), "an environment");
  if (const std::string command = run.Text(0, "command"); !command.empty())
    environment.emplace_back("command", command);
  main += FoldedHtml("Environment", FactsHtml(environment));
  const std::string title = NameOfPoint(run.Text(0, "spec"));
  return Framed(to, {fmt::format("Run {}", number), report::EscapeHtml(title), main, "/runs/one", ""});
}

}  // namespace ridgeline::serve
