// `ridgeline db`: looking after the results database.
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "driver/lock.h"
#include "store/store.h"

namespace ridgeline {
namespace {

constexpr std::initializer_list<const char*> kExportForms = {"csv", "json", "jsonl"};

int CheckStore(const std::string& file) {
  Store store = OpenStore(file, Store::Mode::kReadOnly);
  const std::vector<std::string> problems = store.Check();
  if (problems.empty()) {
    const Table counts = store.Query(
        "SELECT (SELECT count(*) FROM sweeps), (SELECT count(*) FROM points), (SELECT count(*) FROM jobs), "
        "(SELECT count(*) FROM results)");
    const auto count = [&](size_t column, const char* noun) {
      const std::string number = CellText(counts.rows[0][column]);
      return fmt::format("{} {}{}", number, noun, number == "1" ? "" : "s");
    };
    Say("{} is sound: {}, {}, {}, {}\n", file, count(0, "sweep"), count(1, "point"), count(2, "job"),
        count(3, "result"));
    return 0;
  }
  for (const std::string& problem : problems) Say("{}\n", problem);
  throw Error(ErrorKind::kInvalidInput, fmt::format("{} has {} problems, listed above", file, problems.size()),
              "copy the file before anything else; `sqlite3 FILE .recover` saves what can be read");
}

int Merge(const std::string& file, const std::string& other) {
  const DriverLock lock = DriverLock::Take(file, "db merge");
  Store store = OpenStore(file, Store::Mode::kReadWrite);
  const MergeSummary merged = store.Merge(other);
  Say("{} has {} new results of {} jobs, {} new points and {} new sweeps from {}", file, merged.results, merged.jobs,
      merged.points, merged.sweeps, other);
  if (merged.known_results > 0) Say("; {} were here already", merged.known_results);
  Say("\n");
  return 0;
}

int Backup(const std::string& file, const std::string& to) {
  OpenStore(file, Store::Mode::kReadOnly).Backup(to);
  Say("{} is a copy of {}\n", to, file);
  return 0;
}

int Export(const std::string& file, const std::string& format, const std::string& to) {
  const std::string form = FormOf(format, to, kExportForms);
  Store store = OpenStore(file, Store::Mode::kReadOnly);
  const Table measurements = store.Query("SELECT * FROM measurements ORDER BY result");
  const std::string text = Format(measurements, form);
  if (to.empty()) {
    Write(text);
    return 0;
  }
  WriteFileAtomic(to, text);
  Say("{}: {} measurement{} of {}\n", to, measurements.rows.size(), measurements.rows.size() == 1 ? "" : "s", file);
  return 0;
}

}  // namespace

Action DbCommand(CLI::App& self) {
  struct Options {
    std::string file = kDefaultDb;
    std::string other;
    std::string format;
    std::string to;
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
  CLI::App* backup = self.add_subcommand("backup", "copy the database, while a run is at work too");
  AddToOption(*backup, options->to, "FILE", "the copy, which must not be there")->required();
  backup->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  backup->footer(
      "The copy is the database as it is at one moment, in one file. It is whole, or it is not there.\n\n"
      "Example:\n  ridgeline db backup --to ridgeline-monday.db");
  CLI::App* exported = self.add_subcommand("export", "write every measurement as a table for other programs");
  AddFormatOption(*exported, options->format, kExportForms)->default_str(kExportForms.begin()[0]);
  AddToOption(*exported, options->to, "FILE", "the file to write; without it the table is printed");
  exported->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  exported->footer(
      "A row each, with the point's fields, its figures, its campaign, trainer, machine and version\n"
      "(docs/store.md). `ridgeline query` asks for less.\n\n"
      "Example:\n  ridgeline db export --to measurements.csv");
  self.footer("Example:\n  ridgeline db check");
  return [options, merge, backup, exported] {
    if (merge->parsed()) return Merge(options->file, options->other);
    if (backup->parsed()) return Backup(options->file, options->to);
    if (exported->parsed()) return Export(options->file, options->format, options->to);
    return CheckStore(options->file);
  };
}

}  // namespace ridgeline
