#include "metrics/metrics.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/version.h"
#include "predict/memory_forecast.h"
#include "run/result.h"

namespace ridgeline::metrics {
namespace {

using Kind = MetricsText::Kind;

// The fields of a configuration that become a point's labels. They distinguish most sweeps' points, and none is free
// text from a trainer.
constexpr std::array<std::string_view, 11> kPointLabels = {
    "model", "precision", "batch_size", "seq_length", "checkpointing", "grad_accumulation",
    "ranks", "shard",     "device",     "gpu",        "trainer"};

// The fields for how its ranks share the model, if they do.
constexpr std::array<std::string_view, 5> kParallelLabels = {"tensor_parallel", "pipeline_parallel", "context_parallel",
                                                             "expert_parallel", "virtual_pipeline"};

// Upper bounds of the queue's histogram, in seconds: a second to a day.
const std::vector<double>& QueueBounds() {
  static const std::vector<double> bounds = {1, 5, 15, 60, 300, 900, 3600, 14400, 86400};
  return bounds;
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

double NumberOf(const Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  return 0;
}

// The figures of one point of one sweep, by the names of their columns.
class PointRow {
 public:
  PointRow(const Table& table, size_t row) : table_(table), row_(row) {}
  std::string Text(std::string_view column) const { return CellText(At(column)); }
  double Number(std::string_view column) const { return NumberOf(At(column)); }  // 0: not measured
  MetricLabels labels() const { return {{"sweep", Text("sweep")}, {"point", Text("point_id")}}; }

 private:
  const Cell& At(std::string_view column) const {
    const auto at = std::find(table_.columns.begin(), table_.columns.end(), column) - table_.columns.begin();
    return table_.rows[row_].at(static_cast<size_t>(at));
  }
  const Table& table_;
  size_t row_;
};

std::string JsonList(const std::set<std::string>& texts) { return DumpJson(texts); }

class Writer {
 public:
  Writer(store::Store& store, const StoreNow& now, MetricsFormat format)
      : store_(store), now_(now), sweeps_(now.sweeps), text_(format) {
    sweeps_ = sweeps_.first(std::min(sweeps_.size(), kMostMetricSweeps));
    for (const SweepNow& sweep : sweeps_) names_.insert(sweep.progress.sweep.name);
  }

  std::string Write() {
    BuildInfo(text_);
    text_.Begin(Kind::kGauge, "ridgeline_driver_running", "", "Whether a ridgeline run is at work on the database.");
    text_.Add({}, now_.driver ? 1 : 0);
    RunInfo();
    Points();
    Results();
    Queue();
    Figures();
    Running();
    PointInfo();
    return text_.Finish();
  }

  static void BuildInfo(MetricsText& text) {
    text.Begin(Kind::kInfo, "ridgeline_build", "", "The ridgeline that says this.");
    text.Add({{"version", std::string(kVersion)}, {"commit", std::string(GitCommit())}}, 1);
  }

 private:
  void RunInfo() {
    std::map<std::string, std::string> launchers;
    for (const auto& row : store_
                               .Query("SELECT sweep, launcher FROM jobs WHERE number IN "
                                      "(SELECT max(number) FROM jobs GROUP BY sweep)")
                               .rows) {
      launchers[CellText(row[0])] = CellText(row[1]);
    }
    text_.Begin(Kind::kInfo, "ridgeline_run", "", "Each sweep's campaign, and the launcher of its last job.");
    for (const SweepNow& sweep : sweeps_) {
      const store::SweepRecord& record = sweep.progress.sweep;
      text_.Add(
          {{"sweep", record.name}, {"campaign", record.measured_as.campaign}, {"launcher", launchers[record.name]}}, 1);
    }
  }

  void Points() {
    text_.Begin(Kind::kGauge, "ridgeline_points", "", "Points of a sweep by how they stand now; each is in one state.");
    for (const SweepNow& sweep : sweeps_) {
      const store::SweepProgress& p = sweep.progress;
      const int64_t running = std::min(p.live, sweep.running_points);
      for (const auto& [state, count] : {std::pair<const char*, int64_t>{"ok", p.ok},
                                         {"out_of_memory", p.out_of_memory},
                                         {"failed", p.failed - p.out_of_memory},
                                         {"running", running},
                                         {"queued", p.live - running},
                                         {"infrastructure", p.infrastructure},
                                         {"waiting", p.points - p.finished() - p.live - p.infrastructure}}) {
        text_.Add({{"sweep", p.sweep.name}, {"state", state}}, static_cast<double>(count));
      }
    }
    text_.Begin(Kind::kGauge, "ridgeline_sweep_left_seconds", "seconds",
                "Estimated time until a sweep that runs is done.");
    for (const SweepNow& sweep : sweeps_) {
      if (sweep.left_ns > 0) text_.Add({{"sweep", sweep.progress.sweep.name}}, Seconds(sweep.left_ns));
    }
  }

  // Counters begin at 0, so that the first failure is an increase.
  void Results() {
    std::map<std::string, std::map<std::string, int64_t>> counts;
    std::map<std::string, int64_t> last_success;
    const Table results = store_.Query(
        "SELECT s.sweep, r.status, count(*), max(r.ended_unix_ns) FROM results AS r "
        "JOIN sweep_points AS s ON s.point_id = r.point_id "
        "WHERE r.setup ->> '$.predicted_on' IS NULL GROUP BY s.sweep, r.status");
    for (const auto& row : results.rows) {
      const std::string sweep = CellText(row[0]);
      const std::string status = CellText(row[1]);
      counts[sweep][status] = static_cast<int64_t>(NumberOf(row[2]));
      if (status == "ok") last_success[sweep] = static_cast<int64_t>(NumberOf(row[3]));
    }
    text_.Begin(Kind::kCounter, "ridgeline_results", "",
                "Results of a sweep's points, every attempt, by how they ended.");
    for (const std::string& sweep : names_) {
      for (const std::string& status : StatusNames()) {
        text_.Add({{"sweep", sweep}, {"status", status}}, static_cast<double>(counts[sweep][status]));
      }
    }
    text_.Begin(Kind::kCounter, "ridgeline_oom", "", "Results that were out of memory, met or predicted.");
    for (const std::string& sweep : names_) {
      for (const auto& [kind, status] :
           {std::pair{"device", "oom_device"}, {"host", "oom_host"}, {"predicted", "skipped_predicted_oom"}}) {
        text_.Add({{"sweep", sweep}, {"kind", kind}}, static_cast<double>(counts[sweep][status]));
      }
    }
    text_.Begin(Kind::kGauge, "ridgeline_last_success_timestamp_seconds", "seconds",
                "When a point of the sweep last ended ok, since 1970.");
    for (const std::string& sweep : names_) {
      if (last_success[sweep] > 0) text_.Add({{"sweep", sweep}}, Seconds(last_success[sweep]));
    }
    text_.Begin(Kind::kCounter, "ridgeline_tokens", "", "Tokens trained on by runs that ended ok.");
    std::map<std::string, double> tokens;
    const Table trained = store_.Query(
        "SELECT s.sweep, sum(1.0 * r.tokens_per_step * (p.warmup_steps + p.steps)) FROM results AS r JOIN sweep_points "
        "AS s ON s.point_id = r.point_id "
        "JOIN points AS p ON p.id = r.point_id WHERE r.status = 'ok' AND r.setup ->> '$.predicted_on' IS NULL "
        "GROUP BY s.sweep");
    for (const auto& row : trained.rows) tokens[CellText(row[0])] = NumberOf(row[1]);
    for (const std::string& sweep : names_) text_.Add({{"sweep", sweep}}, tokens[sweep]);
  }

  void Queue() {
    text_.Begin(Kind::kGauge, "ridgeline_jobs", "", "Jobs that have not ended, by their state.");
    for (const SweepNow& sweep : sweeps_) {
      text_.Add({{"sweep", sweep.progress.sweep.name}, {"state", "queued"}}, static_cast<double>(sweep.queued_jobs));
      text_.Add({{"sweep", sweep.progress.sweep.name}, {"state", "running"}}, static_cast<double>(sweep.running_jobs));
    }
    text_.Begin(Kind::kGauge, "ridgeline_queued_since_timestamp_seconds", "seconds",
                "When the job that waits longest was handed over, since 1970.");
    for (const SweepNow& sweep : sweeps_) {
      if (sweep.queued_since_unix_ns > 0) {
        text_.Add({{"sweep", sweep.progress.sweep.name}}, Seconds(sweep.queued_since_unix_ns));
      }
    }
    std::string within;
    for (const double bound : QueueBounds()) within += fmt::format(", sum(waited_s <= {})", bound);
    const Table waits =
        store_.Query(fmt::format("SELECT sweep, count(*), sum(waited_s){} FROM (SELECT sweep, "
                                 "max(started_unix_ns - submitted_unix_ns, 0) / 1e9 AS waited_s FROM jobs "
                                 "WHERE started_unix_ns > 0 AND submitted_unix_ns > 0) GROUP BY sweep",
                                 within));
    text_.Begin(Kind::kHistogram, "ridgeline_queue_wait_seconds", "seconds",
                "How long jobs that have begun had waited since they were handed over.");
    std::map<std::string, const std::vector<Cell>*> waited;
    for (const auto& row : waits.rows) waited[CellText(row[0])] = &row;
    for (const std::string& sweep : names_) {
      const std::vector<Cell>* row = waited[sweep];  // none if no job has waited in a queue
      const auto count = [&](size_t column) {
        return row == nullptr ? 0 : static_cast<int64_t>(NumberOf((*row)[column]));
      };
      std::vector<int64_t> counts;
      for (size_t i = 0; i < QueueBounds().size(); ++i) counts.push_back(count(3 + i));
      text_.AddHistogram({{"sweep", sweep}}, QueueBounds(), counts, count(1), row == nullptr ? 0 : NumberOf((*row)[2]));
    }
  }

  // Writes a family with one sample per point. A point has none if `value` returns nothing, because it was not
  // measured.
  void OfPoints(const Table& points, std::string_view name, std::string_view unit, std::string_view help,
                const std::function<std::optional<double>(const PointRow&)>& value) {
    text_.Begin(Kind::kGauge, name, unit, help);
    for (size_t row = 0; row < points.rows.size(); ++row) {
      const PointRow point(points, row);
      if (const std::optional<double> taken = value(point)) text_.Add(point.labels(), *taken);
    }
  }

  static std::optional<double> IfTaken(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

  void Figures() {
    const Table points = store_.Query(
        fmt::format(
            "SELECT sweep, point_id, step_median_ns, step_p95_ns, steady_tokens_per_s, model_causal_flops_per_step, "
            "planned_peak_bytes, rss_peak_bytes, device_bytes, observed_peak_bytes, measured_steps, mfu "
            "FROM "
            "sweep_runs WHERE status = 'ok' "
            "AND "
            "sweep IN (SELECT value FROM json_each(:sweeps)) AND "
            "result IN (SELECT number FROM results WHERE status = 'ok' ORDER BY number DESC LIMIT {0}) "
            "ORDER BY sweep, ordinal LIMIT {0}",
            kMostMetricPoints),
        {{"sweeps", JsonList(names_)}});
    for (size_t row = 0; row < points.rows.size(); ++row)
      shown_.insert({PointRow(points, row).Text("sweep"), PointRow(points, row).Text("point_id")});
    OfPoints(points, "ridgeline_step_time_median_seconds", "seconds", "Statistics of a point's measured steps.",
             [](const PointRow& p) { return IfTaken(p.Number("step_median_ns") / 1e9); });
    OfPoints(points, "ridgeline_step_time_p95_seconds", "seconds", "95 % of a point's measured steps took no longer.",
             [](const PointRow& p) { return IfTaken(p.Number("step_p95_ns") / 1e9); });
    OfPoints(points, "ridgeline_throughput_tokens_per_second", "", "Tokens of a step over the median measured step.",
             [](const PointRow& p) { return IfTaken(p.Number("steady_tokens_per_s")); });
    OfPoints(points, "ridgeline_measured_steps", "", "Steps that a point's steady figures are of.",
             [](const PointRow& p) { return IfTaken(p.Number("measured_steps")); });
    OfPoints(points, "ridgeline_model_flops_per_second", "",
             "FLOPs of the model a second and rank, without recomputation, causal attention counted as half.",
             [](const PointRow& p) { return FlopsPerSecond(p); });
    OfPoints(points, "ridgeline_mfu_ratio", "ratio",
             "Model FLOPs utilization: the model's FLOPs a second over the most that its GPU can do in its precision.",
             [](const PointRow& p) { return IfTaken(p.Number("mfu")); });
    OfPoints(points, "ridgeline_planned_peak_bytes", "bytes", "Peak memory of a rank's tensors, as planned.",
             [](const PointRow& p) { return IfTaken(p.Number("planned_peak_bytes")); });
    OfPoints(points, "ridgeline_observed_peak_bytes", "bytes",
             "Measured peak memory: the GPU's if there is one, else the process's.",
             [](const PointRow& p) { return Observed(p); });
    OfPoints(
        points, "ridgeline_prediction_error_ratio", "ratio",
        "How much more memory was taken than predicted, as a share of that; a process takes more than its tensors.",
        [](const PointRow& p) -> std::optional<double> {
          const double planned = p.Number("planned_peak_bytes");
          const auto observed = Observed(p);
          if (planned <= 0 || !observed) return std::nullopt;
          const double base = OnGpu(p) ? 0 : static_cast<double>(predict::kProcessBaseBytes);
          return *observed / (planned + base) - 1;
        });
  }

  static bool OnGpu(const PointRow& p) { return p.Number("device_bytes") > 0; }
  static std::optional<double> Observed(const PointRow& p) { return IfTaken(p.Number("observed_peak_bytes")); }
  static std::optional<double> FlopsPerSecond(const PointRow& p) {
    const double step_s = p.Number("step_median_ns") / 1e9;
    return step_s > 0 ? IfTaken(p.Number("model_causal_flops_per_step") / step_s) : std::nullopt;
  }

  void OfRunning(std::string_view name, std::string_view help,
                 const std::function<std::optional<double>(const driver::PointProgress&)>& value) {
    text_.Begin(Kind::kGauge, name, "", help);
    for (const SweepNow& sweep : sweeps_) {
      for (const RunningPoint& point : sweep.running) {
        if (!point.progress) continue;
        if (const auto said = value(*point.progress)) {
          text_.Add({{"sweep", sweep.progress.sweep.name}, {"point", point.point_id}}, *said);
        }
      }
    }
  }

  void Running() {
    for (const SweepNow& sweep : sweeps_) {
      for (const RunningPoint& point : sweep.running) shown_.insert({sweep.progress.sweep.name, point.point_id});
    }
    OfRunning("ridgeline_running_step", "The step that a running point has done.",
              [](const driver::PointProgress& p) { return std::optional(static_cast<double>(p.step)); });
    OfRunning("ridgeline_running_steps", "The steps that it has to do.",
              [](const driver::PointProgress& p) { return std::optional(static_cast<double>(p.steps)); });
    OfRunning("ridgeline_running_throughput_tokens_per_second", "Tokens a second of its last step.",
              [](const driver::PointProgress& p) { return IfTaken(p.tokens_per_s); });
    OfRunning("ridgeline_running_loss", "The loss of its last step.",
              [](const driver::PointProgress& p) { return p.loss; });
  }

  // Describes the points in other families, which are joined by their labels sweep and point.
  void PointInfo() {
    std::set<std::string> ids;
    for (const auto& [sweep, id] : shown_) ids.insert(id);
    std::string columns;
    for (const std::string_view label : kPointLabels) columns += fmt::format(", {}", label);
    for (const std::string_view label : kParallelLabels) columns += fmt::format(", {}", label);
    const Table points =
        store_.Query(fmt::format("SELECT id{} FROM points WHERE id IN (SELECT value FROM json_each(:ids))", columns),
                     {{"ids", JsonList(ids)}});
    std::map<std::string, MetricLabels> labels;
    for (const auto& row : points.rows) {
      MetricLabels& of = labels[CellText(row[0])];
      for (size_t i = 0; i < kPointLabels.size(); ++i) of.emplace_back(kPointLabels[i], CellText(row[i + 1]));
      for (size_t i = 0; i < kParallelLabels.size(); ++i) {
        const std::string ranks = CellText(row[i + 1 + kPointLabels.size()]);
        if (ranks != "1") of.emplace_back(kParallelLabels[i], ranks);
      }
    }
    text_.Begin(Kind::kInfo, "ridgeline_point", "", "A point's fields, as labels to join with its figures.");
    for (const auto& [sweep, id] : shown_) {
      MetricLabels all = {{"sweep", sweep}, {"point", id}};
      all.insert(all.end(), labels[id].begin(), labels[id].end());
      text_.Add(all, 1);
    }
  }

  store::Store& store_;
  const StoreNow& now_;
  std::span<const SweepNow> sweeps_;
  std::set<std::string> names_;
  std::set<std::pair<std::string, std::string>> shown_;  // sweep and point
  MetricsText text_;
};

}  // namespace

std::string MetricsOf(store::Store& store, const StoreNow& now, MetricsFormat format) {
  return Writer(store, now, format).Write();
}

std::string MetricsOfNothing(MetricsFormat format) {
  MetricsText text(format);
  Writer::BuildInfo(text);
  return text.Finish();
}

}  // namespace ridgeline::metrics
