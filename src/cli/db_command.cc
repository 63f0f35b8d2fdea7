// `ridgeline db`: looking after the results database.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "store/store.h"

namespace ridgeline {
namespace {

int Check(const std::string& file) {
  Store store = Store::Open(file, Store::Mode::kReadOnly);
  const std::vector<std::string> problems = store.Check();
  if (problems.empty()) {
    const Table counts = store.Query(
        "SELECT (SELECT count(*) FROM sweeps), (SELECT count(*) FROM points), (SELECT count(*) FROM jobs), "
        "(SELECT count(*) FROM results)");
    const auto count = [&](size_t column) { return CellText(counts.rows[0][column]); };
    fmt::print("{} is sound: {} sweeps, {} points, {} jobs, {} results\n", file, count(0), count(1), count(2),
               count(3));
    return 0;
  }
  for (const std::string& problem : problems) fmt::print("{}\n", problem);
  throw Error(ErrorKind::kInvalidInput, fmt::format("{} has {} problems, listed above", file, problems.size()),
              "copy the file before anything else; `sqlite3 FILE .recover` saves what can be read");
}

}  // namespace

Action DbCommand(CLI::App& self) {
  const auto file = std::make_shared<std::string>(kDefaultDb);
  self.require_subcommand(1);
  CLI::App* check = self.add_subcommand("check", "verify the file, its references, its JSON and every point's id");
  check->add_option("--db", *file, "the results database")->type_name("FILE")->capture_default_str();
  check->footer(
      "Reads all of it and changes nothing. Exit code 0: sound; 2: the problems are printed, one a line.\n\n"
      "Example:\n  ridgeline db check --db ridgeline.db");
  self.footer("Example:\n  ridgeline db check");
  return [file] { return Check(*file); };
}

}  // namespace ridgeline
