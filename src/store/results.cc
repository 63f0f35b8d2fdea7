#include "store/results.h"

#include <array>
#include <string_view>

#include "base/hash.h"
#include "base/json.h"
#include "run/result.h"

namespace ridgeline {
namespace {

constexpr char kCommand[] = "command";  // the environment's one entry that differs from run to run

constexpr std::array<std::string_view, 31> kColumns = {"point_id",
                                                       "attempt",
                                                       "job_key",
                                                       "status",
                                                       "message",
                                                       "hint",
                                                       "evidence",
                                                       "provenance",
                                                       "emulated",
                                                       "device_name",
                                                       "communicator_name",
                                                       "parameters",
                                                       "tokens_per_step",
                                                       "steady_tokens_per_s",
                                                       "cold_tokens_per_s",
                                                       "step_median_ns",
                                                       "step_p95_ns",
                                                       "step_cv",
                                                       "all_steps_ns",
                                                       "loss",
                                                       "grad_norm",
                                                       "skipped_steps",
                                                       "planned_peak_bytes",
                                                       "planned_bytes_by_category",
                                                       "rss_peak_bytes",
                                                       "model_causal_flops_per_step",
                                                       "model_noncausal_flops_per_step",
                                                       "executed_flops_per_step",
                                                       "started_unix_ns",
                                                       "ended_unix_ns",
                                                       "command"};

std::string InsertSql() {
  std::string columns;
  std::string values;
  for (const std::string_view column : kColumns) {
    columns += std::string(column) + ", ";
    values += "?, ";
  }
  return "INSERT INTO results (" + columns + "environment_id) VALUES (" + values +
         "?) ON CONFLICT (point_id, attempt) DO NOTHING";
}

// Binds one parameter after another.
class Binder {
 public:
  explicit Binder(Statement& statement) : statement_(statement) {}
  template <typename T>
  void Add(const T& value) {
    statement_.Bind(++index_, value);
  }
  void AddText(const std::string& value) { statement_.BindInPlace(++index_, value); }
  void AddNull() { statement_.BindNull(++index_); }
  // A figure that was not taken is 0 in the contract and NULL here, so that averages leave it out.
  template <typename T>
  void AddFigure(T value) {
    value == T{0} ? AddNull() : Add(value);
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
      insert_environment_(
          database.Prepare("INSERT INTO environments (id, environment) VALUES (?, ?) ON CONFLICT (id) DO NOTHING")) {}

bool ResultWriter::Write(const RunResult& result, const std::string& job_key, int64_t attempt) {
  const std::string& environment_id = EnvironmentId(result.environment);
  const auto command = result.environment.find(kCommand);
  const std::string evidence = DumpTexts(result.evidence);
  const std::string all_steps_ns = DumpJson(Json(result.step_ns.all_ns));
  const std::string loss = DumpJson(Json(result.loss));
  const std::string grad_norm = DumpJson(Json(result.grad_norm));
  const std::string by_category = DumpJson(Json(result.memory.by_category));
  const std::string no_command;
  Binder row(insert_);
  row.AddText(result.point_id);
  row.Add(attempt);
  job_key.empty() ? row.AddNull() : row.AddText(job_key);
  row.Add(StatusName(result.status));
  row.AddText(result.message);
  row.AddText(result.hint);
  row.AddText(evidence);
  row.Add(ProvenanceName(result.provenance));
  row.Add(static_cast<int64_t>(result.emulated));
  row.AddText(result.device);
  row.AddText(result.communicator);
  row.AddFigure(result.parameters);
  row.AddFigure(result.tokens_per_step);
  row.AddFigure(result.throughput.steady_tokens_per_s);
  row.AddFigure(result.throughput.cold_tokens_per_s);
  row.AddFigure(result.step_ns.median_ns);
  row.AddFigure(result.step_ns.p95_ns);
  result.step_ns.median_ns == 0 ? row.AddNull() : row.Add(result.step_ns.cv);  // 0 is a good one
  row.AddText(all_steps_ns);
  row.AddText(loss);
  row.AddText(grad_norm);
  result.loss.empty() ? row.AddNull() : row.Add(result.skipped_steps);  // 0 is a good one
  row.AddFigure(result.memory.planned_peak_bytes);
  row.AddText(by_category);
  row.AddFigure(result.memory.rss_peak_bytes);
  row.AddFigure(result.flops.model_causal);
  row.AddFigure(result.flops.model_non_causal);
  row.AddFigure(result.flops.executed);
  row.AddFigure(result.started_unix_ns);
  row.AddFigure(result.ended_unix_ns);
  row.AddText(command == result.environment.end() ? no_command : command->second);
  row.AddText(environment_id);
  insert_.Run();
  return database_.Changes() > 0;
}

// Runs of one machine share their environment, but for the command line, which has a column of its own.
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
  insert_environment_.Run();
  return last_environment_id_;
}

}  // namespace ridgeline
