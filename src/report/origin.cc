#include "report/origin.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "store/store.h"

namespace ridgeline::report {
namespace {

constexpr size_t kMostMachines = 3;
constexpr size_t kMostOfAMachine = 120;
constexpr size_t kDate = 10;  // the length of the date in "2026-11-26T10:30:00Z"

std::string MachineWords(const std::vector<Cell>& row) {
  std::vector<std::string> parts;
  if (const std::string cpu = CellText(row[0]); !cpu.empty()) parts.push_back(cpu);
  if (const std::string cores = CellText(row[1]); !cores.empty()) {
    parts.push_back(cores + (cores == "1" ? " core" : " cores"));
  }
  if (const std::string gpu = CellText(row[2]); !gpu.empty()) parts.push_back(gpu);
  return ShortenToCodePoints(Join(parts, ", "), kMostOfAMachine);
}

}  // namespace

std::string MeasuredSentence(store::Store& store, const Table& table) {
  const auto result = std::find(table.columns.begin(), table.columns.end(), "result") - table.columns.begin();
  if (result == std::ssize(table.columns)) return {};
  Json numbers = Json::array();
  for (const auto& row : table.rows) {
    if (const auto* number = std::get_if<int64_t>(&row[static_cast<size_t>(result)])) numbers.push_back(*number);
  }
  const Table machines = store.Query(
      "SELECT e.environment ->> '$.cpu', e.environment ->> '$.cores', "
      "iif(p.device = 'cuda', coalesce(e.environment ->> '$.gpus', nullif(r.device_name, '')), NULL), "
      "min(nullif(r.ended_unix_ns, 0)), max(r.ended_unix_ns) FROM results AS r JOIN points AS p ON p.id = r.point_id "
      "LEFT JOIN environments AS e ON e.id = r.environment_id "
      "WHERE r.number IN (SELECT value FROM json_each(:numbers)) AND r.provenance = 'measured' "
      "GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 2, 3",
      {{"numbers", DumpJson(numbers)}});
  std::vector<std::string> words;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  for (const auto& row : machines.rows) {
    if (std::string machine = MachineWords(row); !machine.empty()) words.push_back(std::move(machine));
    const int64_t first = CellInteger(row[3]);
    if (first > 0 && (first_ns == 0 || first < first_ns)) first_ns = first;
    last_ns = std::max(last_ns, CellInteger(row[4]));
  }
  std::string when;
  if (first_ns > 0) {
    when = " " + FormatUnixTime(first_ns).substr(0, kDate);
    if (const std::string last = FormatUnixTime(last_ns).substr(0, kDate); last != when.substr(1))
      when += " to " + last;
  }
  const size_t more = words.size() > kMostMachines ? words.size() - kMostMachines : 0;
  words.resize(words.size() - more);
  if (more > 0) words.push_back(fmt::format("{} more", more));
  if (when.empty() && words.empty()) return {};
  return fmt::format("Measured{}{}{}.", when, words.empty() ? "" : " on ", Join(words, "; "));
}

}  // namespace ridgeline::report
