// `ridgeline query`: answers a question in SQL with a table.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/table.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

constexpr const char* kExamples = R"text(The tables are described in docs/store.md. These are the most useful:
  runs          a row for each point and setup: its fields and its latest result
  sweep_runs    the same, with the sweep and the point's place in it
  measurements  every measurement, with its campaign, trainer and machine
  results       every attempt

Examples:
  ridgeline query "SELECT model, batch_size, steady_tokens_per_s FROM runs"
  ridgeline query "SELECT status, count(*) FROM sweep_runs GROUP BY status"
  ridgeline query "SELECT campaign, avg(mfu) FROM measurements GROUP BY 1"
  ridgeline query "SELECT name, type FROM pragma_table_info('runs')" -o md
  ridgeline query "SELECT * FROM runs" -o csv > runs.csv

The database is only read. A statement that writes is refused.)text";

struct QueryOptions {
  std::string sql;
  std::string db = session::kDefaultDb;
  std::string format = "text";
};

}  // namespace

Action QueryCommand(CLI::App& self) {
  const auto options = std::make_shared<QueryOptions>();
  self.add_option("sql", options->sql, "one SELECT statement")->type_name("SQL")->required();
  self.add_option("--db", options->db, "the results database")->type_name("FILE")->capture_default_str();
  AddFormatOption(self, options->format, {"text", "md", "csv", "json", "jsonl"});
  self.footer(kExamples);
  return [options] {
    store::Store store = session::OpenStore(options->db, store::Store::Mode::kReadOnly);
    session::Write(Format(store.Query(options->sql), options->format));
    return 0;
  };
}

}  // namespace ridgeline::cli
