#include "store/repeats.h"

#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/table.h"
#include "run/figures.h"
#include "run/repeats.h"
#include "run/result.h"

namespace ridgeline::store {
namespace {

std::vector<int64_t> StepTimesOf(const std::string& text) {
  const Json steps = ParseJson(text, "the step times in the store");
  return steps.is_array() ? steps.get<std::vector<int64_t>>() : std::vector<int64_t>();
}

Amounts AmountsOf(const std::string& text) {
  const Json amounts = ParseJson(text, "the amounts in the store");
  return amounts.is_object() ? amounts.get<Amounts>() : Amounts();
}

constexpr int kFirstOptional = 15;  // index of the first optional figure among the query's columns

std::string OptionalColumns() {
  std::string columns;
  for (const Figure& figure : Figures()) {
    if (figure.is_optional()) columns += fmt::format(", r.{}", figure.name);
  }
  return columns;
}

void ReadOptional(const Statement& row, RunResult& result) {
  int column = kFirstOptional;
  for (const Figure& figure : Figures()) {
    if (!figure.is_optional()) continue;
    const bool null = std::holds_alternative<std::monostate>(row.Value(column));
    std::visit(
        [&]<typename T>(T& (*at)(RunResult&)) {
          if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
            if (!null) at(result) = row.Integer(column);
          } else if constexpr (std::is_same_v<T, std::optional<double>>) {
            if (!null) at(result) = row.Number(column);
          } else if constexpr (std::is_same_v<T, Amounts>) {
            at(result) = AmountsOf(row.Text(column));
          }
        },
        figure.member);
    ++column;
  }
}

}  // namespace

EarlierRepeats::EarlierRepeats(Database& database)
    : point_(database.Prepare("SELECT repeats, warmup_steps FROM points WHERE id = ?")),
      earlier_(database.Prepare(
          "SELECT r.repeat, r.all_steps_ns, r.cold_tokens_per_s, r.rss_peak_bytes, r.device_peak_bytes, r.device_name, "
          "r.emulated, e.machine, e.version, r.cores_busy_share, r.cores_others_share, r.cores_throttles, "
          "r.device_reserved_bytes, r.device_peak_kind, r.metrics" +
          OptionalColumns() +
          " FROM results AS r LEFT JOIN environments AS e ON e.id = r.environment_id "
          "WHERE r.point_id = ? AND r.campaign = ? AND r.setup = ? AND r.status = 'ok' AND r.repeat > 0 "
          "ORDER BY r.attempt DESC LIMIT 1")) {}

bool EarlierRepeats::AddTo(RunResult& result, const MeasurementKey& measured_as) {
  point_.Bind(1, result.point_id);
  const bool known = point_.Step();
  const int64_t repeats = known ? point_.Integer(0) : 1;
  const int64_t warmup_steps = known ? point_.Integer(1) : 0;
  point_.Reset();
  if (repeats <= 1) return false;
  earlier_.Bind(1, result.point_id);
  earlier_.Bind(2, measured_as.campaign);
  earlier_.Bind(3, measured_as.setup);
  if (earlier_.Step()) {
    RunResult earlier;
    earlier.repeat = earlier_.Integer(0);
    earlier.step_ns.all_ns = StepTimesOf(earlier_.Text(1));
    earlier.throughput.cold_tokens_per_s = earlier_.Number(2);
    earlier.memory.rss_peak_bytes = earlier_.Integer(3);
    earlier.memory.device_peak_bytes = earlier_.Integer(4);
    earlier.cores = {earlier_.Number(9), earlier_.Number(10), earlier_.Integer(11)};
    earlier.memory.device_reserved_bytes = earlier_.Integer(12);
    earlier.memory.device_peak_kind = earlier_.Text(13);
    earlier.metrics = DecodeOwnFigures(ParseJson(earlier_.Text(14), "the metrics in the store"));
    ReadOptional(earlier_, earlier);
    const bool comparable = earlier_.Text(5) == result.device && (earlier_.Integer(6) != 0) == result.emulated &&
                            earlier_.Text(7) == MachineOf(result.environment) &&
                            earlier_.Text(8) == ridgeline::VersionOf(result.environment);
    if (!comparable) {
      earlier.step_ns.all_ns.clear();
      result.evidence["repeats_elsewhere"] =
          fmt::format("{}: from another machine or version, so not in these figures", earlier.repeat);
    }
    AddEarlierRepeats(earlier, warmup_steps, result);
  } else {
    result.repeat = 1;
  }
  earlier_.Reset();
  return result.repeat < repeats;
}

}  // namespace ridgeline::store
