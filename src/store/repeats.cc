#include "store/repeats.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "run/repeats.h"

namespace ridgeline {
namespace {

std::vector<int64_t> StepTimesOf(const std::string& text) {
  const Json steps = ParseJson(text, "the step times in the store");
  return steps.is_array() ? steps.get<std::vector<int64_t>>() : std::vector<int64_t>();
}

}  // namespace

EarlierRepeats::EarlierRepeats(Database& database)
    : point_(database.Prepare("SELECT repeats, warmup_steps FROM points WHERE id = ?")),
      earlier_(database.Prepare(
          "SELECT r.repeat, r.all_steps_ns, r.cold_tokens_per_s, r.rss_peak_bytes, r.device_peak_bytes, r.device_name, "
          "r.emulated, e.machine, e.version, r.cores_busy_share, r.cores_others_share, r.cores_throttles FROM results "
          "AS r LEFT JOIN environments AS e ON e.id = r.environment_id "
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
    const bool comparable = earlier_.Text(5) == result.device && (earlier_.Integer(6) != 0) == result.emulated &&
                            earlier_.Text(7) == MachineOf(result.environment) &&
                            earlier_.Text(8) == VersionOf(result.environment);
    if (!comparable) {
      earlier.step_ns.all_ns.clear();
      result.evidence["repeats_elsewhere"] =
          fmt::format("{}: of another machine or version, and so not in these figures", earlier.repeat);
    }
    AddEarlierRepeats(earlier, warmup_steps, result);
  } else {
    result.repeat = 1;
  }
  earlier_.Reset();
  return result.repeat < repeats;
}

}  // namespace ridgeline
