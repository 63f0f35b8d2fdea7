#include "plan/show.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "run/parallelism.h"
#include "run/presets.h"
#include "sweep/formula.h"
#include "trainers/definition.h"

namespace ridgeline::plan {
namespace {

constexpr size_t kShortId = 8;
constexpr size_t kWriteBytes = 1 << 18;
constexpr size_t kShownBases = 3;

// Returns "4 nodes, 8 cores, at most 1 h a point".
std::string AskedText(const sweep::Sweep& sweep, const Job& job) {
  std::vector<std::string> asked = {CountOf(job.nodes, "node")};
  if (job.cpus > 0) asked.push_back(CountOf(job.cpus, "core"));
  if (job.memory_limit_bytes > 0) asked.push_back(FormatBytes(job.memory_limit_bytes));
  if (const int64_t limit_s = job.points.front().time_limit_s; limit_s > 0) {
    asked.push_back("at most " + FormatDuration(limit_s * 1'000'000'000) + " a point");
  }
  for (const auto& [name, value] : job.environment) asked.push_back(fmt::format("{}={}", name, PrintableLine(value)));
  const Json& config = job.config.is_null() ? sweep.launch.config : job.config;
  if (const auto own = config.find(sweep.launch.launcher); own != config.end()) {
    asked.push_back(fmt::format("{}: {}", sweep.launch.launcher, PrintableLine(DumpJson(*own))));
  }
  return Join(asked, ", ");
}

// Returns the reasons for the points' memory limits, each once.
std::set<std::string> Bases(const Plan& plan) {
  std::set<std::string> bases;
  for (const PlannedPoint& point : plan.points) bases.insert(point.limit.basis);
  return bases;
}

bool HaveRanks(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [](const Point& point) { return point.spec.ranks > 1; });
}

// Returns "DP 4, TP 2, PP 2"; empty if all ranks are data-parallel and each has a whole model.
std::string SplitText(const sweep::Sweep& sweep, const RunSpec& spec) {
  const int64_t data_parallel = sweep.trainers.DataParallelRanksOf(spec);
  const std::string words = ParallelWords(spec);
  if (words.empty() && data_parallel == spec.ranks) return {};
  return fmt::format("DP {}{}{}", data_parallel, words.empty() ? "" : ", ", words);
}

// Writes {"id":…,"spec":{…}}, one on each line, or as a JSON array.
sweep::Expansion WriteSpecs(const sweep::Sweep& sweep, bool array, const std::function<void(std::string_view)>& write) {
  std::string out = array ? "[" : "";
  bool first = true;
  sweep::Expansion expansion = sweep::ForEachPoint(sweep, [&](const sweep::PointView& point) {
    if (array) out += first ? "\n" : ",\n";
    first = false;
    out += R"({"id":")";
    out += point.id;
    out += R"(","spec":)";
    out += point.encoded;
    out += array ? "}" : "}\n";
    if (out.size() >= kWriteBytes) {
      write(out);
      out.clear();
    }
  });
  if (array) out += "\n]\n";
  write(out);
  return expansion;
}

bool Varies(const std::vector<const Field*>& fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const Field* field) { return field->name == name; });
}

// For example in a mixture of experts, where a token does not use all parameters.
bool HasIdleParameters(const Point& point) { return ActiveParameters(point.spec) != CountParameters(point.spec); }

}  // namespace

Table PointColumns(const std::vector<const Field*>& fields) {
  Table table;
  table.columns.emplace_back("point");
  for (const Field* field : fields) table.columns.emplace_back(field->name);
  return table;
}

std::vector<Cell> PointCells(std::string_view id, const RunSpec& spec, const std::vector<const Field*>& fields,
                             Audience audience) {
  std::vector<Cell> row;
  row.reserve(fields.size() + 4);
  row.emplace_back(std::string(audience == Audience::kPeople ? id.substr(0, kShortId) : id));
  for (const Field* field : fields) row.push_back(FieldCell(spec, *field));
  return row;
}

Cell FieldCell(const RunSpec& spec, const Field& field) {
  if (IsUnknown(spec, field)) return {};
  if (const auto* i = std::get_if<int64_t RunSpec::*>(&field.member)) return spec.*(*i);
  if (const auto* d = std::get_if<double RunSpec::*>(&field.member)) return spec.*(*d);
  return FieldText(spec, field);
}

Table PlanTable(const sweep::Sweep& sweep, const std::vector<Point>& points, const Plan& plan, Audience audience) {
  const auto fields = sweep::VaryingFields(sweep);
  Table table = PointColumns(fields);
  const bool for_people = audience == Audience::kPeople;
  const bool say_basis = !for_people || Bases(plan).size() > 1;
  const std::string_view each = for_people && HaveRanks(points) ? "_per_rank" : "";
  std::vector<std::string> splits;
  for (const PlannedPoint& planned : plan.points) splits.push_back(SplitText(sweep, points[planned.point].spec));
  const bool say_split =
      std::any_of(splits.begin(), splits.end(), [](const std::string& text) { return !text.empty(); });
  if (say_split) table.columns.emplace_back("split");
  const bool say_parameters = !Varies(fields, "parameters");
  const bool say_active = !Varies(fields, "active_parameters") && std::ranges::any_of(points, HasIdleParameters);
  if (say_parameters) table.columns.emplace_back("parameters");
  if (say_active) table.columns.emplace_back("active_parameters");
  table.columns.push_back(for_people ? fmt::format("predicted_peak{}", each) : "predicted_peak_bytes");
  table.columns.emplace_back("verdict");
  table.columns.push_back(for_people ? fmt::format("available{}", each) : "available_bytes");
  if (say_basis) table.columns.emplace_back("basis");
  const bool say_estimated =
      std::ranges::any_of(plan.points, [](const PlannedPoint& p) { return !p.estimated.empty(); });
  if (say_estimated) table.columns.emplace_back("estimated");
  for (const PlannedPoint& planned : plan.points) {
    const Point& point = points[planned.point];
    auto row = PointCells(point.id, point.spec, fields, audience);
    if (say_split) row.emplace_back(splits[table.rows.size()]);
    const auto count = [&](int64_t parameters) {
      if (parameters == 0) return Cell();
      return for_people ? Cell(FormatCount(static_cast<double>(parameters))) : Cell(parameters);
    };
    if (say_parameters) row.push_back(count(CountParameters(point.spec)));
    if (say_active) row.push_back(count(ActiveParameters(point.spec)));
    const auto bytes = [&](int64_t value) {
      return value == 0 ? Cell() : for_people ? Cell(FormatBytes(value)) : Cell(value);
    };
    row.push_back(bytes(planned.forecast.planned_peak_bytes));
    row.emplace_back(std::string(VerdictName(planned.verdict)));
    row.push_back(bytes(planned.limit.bytes));
    if (say_basis) row.emplace_back(planned.limit.basis);
    if (say_estimated) row.emplace_back(planned.estimated);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table FieldsTable() {
  Table table;
  table.columns = {"field", "type", "values", "meaning"};
  const auto add = [&](const Field& field) {
    std::string values(field.choices);
    std::replace(values.begin(), values.end(), '|', ' ');
    if (field.type() == "integer" || field.type() == "number") {
      values = fmt::format("{} to {}", field.min, field.max);
    } else if (field.type() == "true or false") {
      values = "true false";
    }
    table.rows.push_back(
        {std::string(field.name), std::string(field.type()), std::move(values), std::string(field.help)});
  };
  const auto after_batch = std::ranges::lower_bound(Fields(), sweep::GlobalBatch().name, {}, &Field::name);
  std::for_each(Fields().begin(), after_batch, add);
  add(sweep::GlobalBatch());
  std::for_each(after_batch, Fields().end(), add);
  std::for_each(Settings().begin(), Settings().end(), add);
  return table;
}

std::string PlanSummary(const std::vector<Point>& points, const Plan& plan) {
  if (plan.points.empty()) return "0 points";
  int64_t fit = 0;
  int64_t unknown = 0;
  int64_t too_large = 0;
  int64_t not_predicted = 0;
  int64_t estimated = 0;
  int64_t sharded = 0;
  int64_t largest = 0;
  int64_t least = 0;
  int64_t most = 0;
  for (const PlannedPoint& point : plan.points) {
    if (point.limit.bytes > 0 && (least == 0 || point.limit.bytes < least)) least = point.limit.bytes;
    most = std::max(most, point.limit.bytes);
    if (point.verdict == Verdict::kOutOfMemory) ++too_large;
    if (point.verdict == Verdict::kNotPredicted) ++not_predicted;
    if (!point.estimated.empty()) ++estimated;
    if (point.fits_sharded) ++sharded;
    if (point.verdict == Verdict::kFits) ++fit;
    if (point.verdict == Verdict::kUnknown) ++unknown;
    if (point.verdict == Verdict::kFits || point.verdict == Verdict::kUnknown) {
      largest = std::max(largest, point.forecast.planned_peak_bytes);
    }
  }
  const std::string_view a_rank = HaveRanks(points) ? " a rank" : "";
  std::vector<std::string> ends;
  if (fit > 0) ends.push_back(fmt::format("{} {}", fit, fit == 1 ? "fits" : "fit"));
  if (unknown > 0) ends.push_back(fmt::format("{} unknown", unknown));
  if (fit + unknown > 0) ends.back() += fmt::format(" (the largest needs {}{})", FormatBytes(largest), a_rank);
  if (too_large > 0) {
    ends.push_back(fmt::format("{} out of memory", too_large));
    if (sharded > 0) ends.back() += fmt::format(" ({} {} with shard: full)", sharded, sharded == 1 ? "fits" : "fit");
  }
  if (not_predicted > 0) ends.push_back(fmt::format("{} of a trainer whose memory is not predicted", not_predicted));
  std::string text = CountOf(std::ssize(plan.points), "point") + ": " + Join(ends, ", ");
  if (estimated > 0)
    text += fmt::format("; {} estimated as other trainers, which run whether or not they fit", estimated);
  if (most == 0) return text + "; what memory they will have is not known here (--memory says it)";
  const std::set<std::string> bases = Bases(plan);
  text += least == most ? fmt::format("; available {}{}", FormatBytes(most), a_rank)
                        : fmt::format("; available {} to {}{}", FormatBytes(least), FormatBytes(most), a_rank);
  if (bases.size() == 1) text += fmt::format(" ({})", *bases.begin());
  return text;
}

std::string OutOfMemoryWhy(const Plan& plan) {
  std::vector<std::string> parts;
  int64_t sharded = 0;
  for (const PlannedPoint& point : plan.points) {
    if (point.verdict != Verdict::kOutOfMemory) continue;
    if (std::find(parts.begin(), parts.end(), point.limit.basis) == parts.end()) parts.push_back(point.limit.basis);
    if (point.fits_sharded) ++sharded;
  }
  if (parts.size() > kShownBases) {
    const size_t more = parts.size() - kShownBases;
    parts.resize(kShownBases);
    parts.push_back(fmt::format("and {} more", more));
  }
  if (sharded > 0) parts.push_back(fmt::format("{} would fit with shard: full", sharded));
  return Join(parts, "; ");
}

std::vector<std::string> JobLines(const sweep::Sweep& sweep, const Plan& plan) {
  struct Count {
    std::string asked;
    int64_t jobs = 0;
    int64_t points = 0;
  };
  std::vector<Count> counts;
  int64_t least_repeats = std::numeric_limits<int64_t>::max();
  int64_t most_repeats = 0;
  for (const Job& job : plan.jobs) {
    for (const JobPoint& point : job.points) {
      least_repeats = std::min(least_repeats, point.spec.repeats);
      most_repeats = std::max(most_repeats, point.spec.repeats);
    }
    const std::string asked = AskedText(sweep, job);
    auto count = std::find_if(counts.begin(), counts.end(), [&](const Count& known) { return known.asked == asked; });
    if (count == counts.end()) count = counts.insert(counts.end(), Count{asked});
    ++count->jobs;
    count->points += std::ssize(job.points);
  }
  std::vector<std::string> lines;
  const bool goes_without_saying = counts.size() == 1 && counts.front().asked == "1 node";
  for (const Count& count : counts) {
    if (goes_without_saying) break;
    lines.push_back(
        fmt::format("{} of {}: {}", CountOf(count.jobs, "job"), CountOf(count.points, "point"), count.asked));
  }
  if (most_repeats > 1) {
    lines.push_back(fmt::format("{} repeats of each point, so many rounds of such jobs",
                                least_repeats == most_repeats ? fmt::format("{}", most_repeats)
                                                              : fmt::format("{} to {}", least_repeats, most_repeats)));
  }
  return lines;
}

std::string ExpansionSummary(const sweep::Expansion& expansion) {
  std::string text = CountOf(expansion.points, "point");
  if (expansion.excluded > 0) text += fmt::format("; {} excluded", CountOf(expansion.excluded, "combination"));
  if (expansion.duplicates > 0) {
    text += fmt::format("; {} left out", CountOf(expansion.duplicates, "duplicate"));
  }
  return text;
}

sweep::Expansion WriteExpanded(const sweep::Sweep& sweep, std::string_view format,
                               const std::function<void(std::string_view)>& write) {
  if (format == "jsonl" || format == "json") return WriteSpecs(sweep, format == "json", write);
  const auto fields = sweep::VaryingFields(sweep);
  Table table = PointColumns(fields);
  const Audience audience = format == "csv" ? Audience::kPrograms : Audience::kPeople;
  sweep::Expansion expansion = sweep::ForEachPoint(sweep, [&](const sweep::PointView& point) {
    table.rows.push_back(PointCells(point.id, point.spec, fields, audience));
  });
  write(Format(table, format));
  return expansion;
}

}  // namespace ridgeline::plan
