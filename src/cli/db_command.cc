// `ridgeline db`: looking after the results database.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "driver/lock.h"
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

int Merge(const std::string& file, const std::string& other) {
  const DriverLock lock = DriverLock::Take(file, "db merge");
  Store store = Store::Open(file, Store::Mode::kReadWrite);
  const MergeSummary merged = store.Merge(other);
  fmt::print("{} has {} new results of {} jobs, {} new points and {} new sweeps from {}", file, merged.results,
             merged.jobs, merged.points, merged.sweeps, other);
  if (merged.known_results > 0) fmt::print("; {} were here already", merged.known_results);
  fmt::print("\n");
  return 0;
}

}  // namespace

Action DbCommand(CLI::App& self) {
  struct Options {
    std::string file = kDefaultDb;
    std::string other;
  };
  const auto options = std::make_shared<Options>();
  self.require_subcommand(1);
  CLI::App* check = self.add_subcommand("check", "verify the file, its references, its JSON and every point's id");
  check->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  check->footer(
      "Reads all of it and changes nothing. Exit code 0: sound; 2: the problems are printed, one a line.\n\n"
      "Example:\n  ridgeline db check --db ridgeline.db");
  CLI::App* merge = self.add_subcommand("merge", "take in the measurements of another database");
  merge->add_option("other", options->other, "the database that is taken from, and left as it is")
      ->required()
      ->type_name("FILE");
  merge->add_option("--db", options->file, "the database that takes them in")->type_name("FILE")->capture_default_str();
  merge->footer(
      "Brings what two machines measured into one place: every measurement of the other database, with its campaign,\n"
      "trainer, machine and version. What is here already is known again, so merging twice changes nothing. Points\n"
      "that both have measured for one campaign stay apart, by their machines. A sweep of the same name stays as it\n"
      "is here. The other database may be older, and must have no live jobs.\n\n"
      "Example:\n  ridgeline db merge /mnt/node2/ridgeline.db");
  self.footer("Example:\n  ridgeline db check");
  return [options, merge] { return merge->parsed() ? Merge(options->file, options->other) : Check(options->file); };
}

}  // namespace ridgeline
