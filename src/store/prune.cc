// Removes old measurements, and frees unused space.
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "store/impl.h"
#include "store/store.h"
#include "store/views.h"

namespace ridgeline::store {
namespace {

// Writes text with control characters or invalid UTF-8 as bytes, so that no terminal obeys it.
std::string SqlValue(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return "NULL";
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return CellText(cell);
  if (EscapeControls(*text, "\n\t") != *text) {
    std::string hex;
    for (const char byte : *text) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return "CAST(X'" + hex + "' AS TEXT)";
  }
  std::string quoted = "'";
  for (const char c : *text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Pruned Store::Prune(int64_t before_unix_ns) {
  Pruned pruned;
  Database& database = impl_->database;
  Transact([&] {
    // The last attempt always stays, because the next one is numbered after it.
    Statement results = database.Prepare(
        "DELETE FROM results WHERE ended_unix_ns < ? AND number NOT IN (SELECT number FROM latest) "
        "AND attempt < (SELECT max(n.attempt) FROM results AS n WHERE n.point_id = results.point_id) "
        "AND attempt < (SELECT max(j.attempt) FROM job_points AS j WHERE j.point_id = results.point_id)");
    results.Bind(1, before_unix_ns);
    results.Run();
    pruned.results = database.Changes();
    pruned.jobs = DropEmptyJobs();
    database.Execute("DELETE FROM environments WHERE id NOT IN (SELECT environment_id FROM results)");
  });
  return pruned;
}

int64_t Store::DropEmptyJobs() {
  Database& database = impl_->database;
  database.Execute(
      "DELETE FROM job_points WHERE job_key IN (SELECT key FROM jobs WHERE state NOT IN "
      "('intent', 'submitted', 'running')) AND NOT EXISTS (SELECT 1 FROM results AS r WHERE "
      "r.point_id = job_points.point_id AND r.attempt = job_points.attempt) AND attempt < "
      "(SELECT max(n.attempt) FROM job_points AS n WHERE n.point_id = job_points.point_id)");
  database.Execute("DELETE FROM jobs WHERE NOT EXISTS (SELECT 1 FROM job_points AS p WHERE p.job_key = jobs.key)");
  return database.Changes();
}

void Store::Vacuum() { impl_->database.Execute("VACUUM"); }

void Store::WriteSql(const std::function<void(const std::string& text)>& write) {
  Database& database = impl_->database;
  Transact([&] {  // reads one state of the store
    write("PRAGMA foreign_keys = OFF;\nBEGIN;\n");
    for (const char* pragma : {"application_id", "user_version"}) {
      write(fmt::format("PRAGMA {} = {};\n", pragma, database.Integer(fmt::format("PRAGMA {}", pragma))));
    }
    const auto objects = [&](const std::string& where) {
      std::vector<std::pair<std::string, std::string>> all;  // name, the SQL that makes it
      Statement each = database.Prepare("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND " +
                                        where + " ORDER BY rowid");
      while (each.Step()) all.emplace_back(each.Text(0), each.Text(1));
      return all;
    };
    for (const auto& [table, sql] : objects("type = 'table'")) {
      write(sql + ";\n");
      const auto columns = static_cast<int>(ColumnsOf(database, table).size());
      Statement rows = database.Prepare(fmt::format("SELECT * FROM \"{}\"", table));
      while (rows.Step()) {
        std::string values;
        for (int column = 0; column < columns; ++column) {
          values += (column > 0 ? "," : "") + SqlValue(rows.Value(column));
        }
        write(fmt::format("INSERT INTO \"{}\" VALUES ({});\n", table, values));
      }
    }
    for (const auto& [name, sql] : objects("type <> 'table' AND sql IS NOT NULL")) write(sql + ";\n");
    write("COMMIT;\n");
  });
}

}  // namespace ridgeline::store
