#include "store/results.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "base/hash.h"
#include "base/json.h"
#include "run/figures.h"
#include "run/result.h"

namespace ridgeline::store {
namespace {

constexpr char kCommand[] = "command";  // the one entry of the environment that differs from run to run

// The columns before the figures. After the figures come `command` and the environment.
constexpr std::array<std::string_view, 12> kColumns = {"point_id", "attempt", "job_key",  "retry",
                                                       "campaign", "setup",   "status",   "reason",
                                                       "message",  "hint",    "evidence", "provenance"};

std::string InsertSql() {
  std::string columns;
  std::string values;
  const auto add = [&](std::string_view column) {
    columns += std::string(column) + ", ";
    values += "?, ";
  };
  std::for_each(kColumns.begin(), kColumns.end(), add);
  for (const Figure& figure : Figures()) add(figure.name);
  add(kCommand);
  return "INSERT INTO results (" + columns + "environment_id) VALUES (" + values +
         "?) ON CONFLICT (point_id, attempt) DO NOTHING";
}

// Binds parameters in order.
class Binder {
 public:
  explicit Binder(Statement& statement) : statement_(statement) {}
  template <typename T>
  void Add(const T& value) {
    statement_.Bind(++index_, value);
  }
  void AddText(const std::string& value) { statement_.BindInPlace(++index_, value); }
  void AddNull() { statement_.BindNull(++index_); }

  // A number that was not taken is 0 in the contract and NULL here, so that averages leave it out. Texts, lists and
  // amounts show by themselves that they are empty.
  void AddFigure(const RunResult& result, const Figure& figure) {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, const std::string*>) {
            AddText(*value);
          } else if constexpr (std::is_same_v<T, const OwnFigures*>) {
            Add(DumpJson(EncodeOwnFigures(*value)));
          } else if constexpr (std::is_pointer_v<T>) {
            Add(DumpJson(Json(*value)));
          } else if constexpr (std::is_same_v<T, bool>) {
            Add(static_cast<int64_t>(value));
          } else if (!WasTaken(result, figure)) {
            AddNull();
          } else if constexpr (std::is_arithmetic_v<T>) {
            Add(value);
          } else {
            Add(*value);
          }
        },
        ValueOf(result, figure));
  }

 private:
  Statement& statement_;
  int index_ = 0;
};

}  // namespace

std::string DumpTexts(const std::map<std::string, std::string>& texts) { return DumpJson(Json(texts)); }

ResultWriter::ResultWriter(Database& database)
    : database_(database),
      insert_(database.Prepare(InsertSql())),
      insert_environment_(database.Prepare("INSERT INTO environments (id, environment, machine, version) VALUES (?, ?, "
                                           "?, ?) ON CONFLICT (id) DO NOTHING")) {}

bool ResultWriter::Write(const RunResult& result, const std::string& job_key, int64_t attempt,
                         const MeasurementKey& measured_as, bool run_again) {
  const std::string& environment_id = EnvironmentId(result.environment);
  const auto command = result.environment.find(kCommand);
  const std::string evidence = DumpTexts(result.evidence);
  const std::string no_command;
  Binder row(insert_);
  row.AddText(result.point_id);
  row.Add(attempt);
  job_key.empty() ? row.AddNull() : row.AddText(job_key);
  row.Add(static_cast<int64_t>(run_again));
  row.AddText(measured_as.campaign);
  row.AddText(measured_as.setup);
  row.Add(StatusName(result.status));
  row.Add(ReasonName(result.reason));
  row.AddText(result.message);
  row.AddText(result.hint);
  row.AddText(evidence);
  row.Add(ProvenanceName(result.provenance));
  for (const Figure& figure : Figures()) row.AddFigure(result, figure);
  row.AddText(command == result.environment.end() ? no_command : command->second);
  row.AddText(environment_id);
  insert_.Run();
  return database_.Changes() > 0;
}

// Runs on one machine share their environment, except for the command line, which has a column of its own.
const std::string& ResultWriter::EnvironmentId(const std::map<std::string, std::string>& environment) {
  const auto same_as_last = [&] {
    auto last = last_environment_.begin();
    for (const auto& entry : environment) {
      if (entry.first == kCommand) continue;
      if (last == last_environment_.end() || *last != entry) return false;
      ++last;
    }
    return last == last_environment_.end();
  };
  if (!last_environment_id_.empty() && same_as_last()) return last_environment_id_;
  last_environment_ = environment;
  last_environment_.erase(kCommand);
  const std::string text = DumpTexts(last_environment_);
  last_environment_id_ = Hex(Hash(text));
  insert_environment_.Bind(1, last_environment_id_);
  insert_environment_.Bind(2, text);
  insert_environment_.Bind(3, MachineOf(last_environment_));
  insert_environment_.Bind(4, ridgeline::VersionOf(last_environment_));
  insert_environment_.Run();
  return last_environment_id_;
}

}  // namespace ridgeline::store
