// `ridgeline db`: maintains the results database.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "driver/lock.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

constexpr std::initializer_list<const char*> kExportForms = {"csv", "json", "jsonl", "sql"};

int CheckStore(const std::string& file) {
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadOnly);
  const std::vector<std::string> problems = store.Check();
  if (problems.empty()) {
    const Table counts = store.Query(
        "SELECT (SELECT count(*) FROM sweeps), (SELECT count(*) FROM points), (SELECT count(*) FROM jobs), "
        "(SELECT count(*) FROM results)");
    const auto count = [&](size_t column, const char* noun) {
      return CountOf(std::get<int64_t>(counts.rows[0][column]), noun);
    };
    session::Say("{} is sound: {}, {}, {}, {}\n", file, count(0, "sweep"), count(1, "point"), count(2, "job"),
                 count(3, "measurement"));
    return 0;
  }
  for (const std::string& problem : problems) session::Say("{}\n", problem);
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} has {}, listed above", file, CountOf(problems.size(), "problem")),
              "copy the file first; `sqlite3 FILE .recover` saves what can be read");
}

int Merge(const std::string& file, const std::string& other) {
  const driver::DriverLock lock = driver::DriverLock::Take(file, "db merge");
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadWrite);
  const store::MergeSummary merged = store.Merge(other);
  session::Say("{} has {} of {}, {} and {} from {}", file, CountOf(merged.results, "new measurement"),
               CountOf(merged.jobs, "job"), CountOf(merged.points, "new point"), CountOf(merged.sweeps, "new sweep"),
               other);
  if (merged.known_results > 0) session::Say("; it already had {}", CountOf(merged.known_results, "measurement"));
  session::Say("\n");
  return 0;
}

int Backup(const std::string& file, const std::string& to) {
  session::OpenStore(file, store::Store::Mode::kReadOnly).Backup(to);
  session::Say("{} is a copy of {}\n", to, file);
  return 0;
}

// The beginning of a day such as "2026-01-31", in UTC.
int64_t UnixNsOf(const std::string& date) {
  tm parts{};
  const char* end = ::strptime(date.c_str(), "%Y-%m-%d", &parts);
  if (end == nullptr || *end != '\0') {
    throw Error(ErrorKind::kUsage, fmt::format("db: '{}' is not a date", PrintableLine(date)), "say it as 2026-01-31");
  }
  return int64_t{::timegm(&parts)} * 1'000'000'000;
}

int Prune(const std::string& file, const std::string& before) {
  const int64_t before_unix_ns = UnixNsOf(before);
  const driver::DriverLock lock = driver::DriverLock::Take(file, "db prune");
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadWrite);
  const store::Pruned pruned = store.Prune(before_unix_ns);
  session::Say("{}: deleted {} before {} and {}; `ridgeline db vacuum` shrinks the file\n", file,
               CountOf(pruned.results, "measurement"), before, CountOf(pruned.jobs, "job"));
  return 0;
}

struct DeleteOptions {
  std::string run;
  std::string campaign;
  std::string sweep;
  bool dry_run = false;
  bool yes = false;
};

// Asks at the terminal. Returns whether the person agrees.
bool IsConfirmed(const std::string& question) {
  session::Say("{} [y/N] ", question);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

int Delete(const std::string& file, const DeleteOptions& options) {
  using enum store::Deletion::What;
  const auto what = !options.run.empty() ? kRun : !options.campaign.empty() ? kCampaign : kSweep;
  const std::string& name = what == kRun ? options.run : what == kCampaign ? options.campaign : options.sweep;
  if (name.empty()) {
    throw Error(ErrorKind::kUsage, "db delete: nothing is named", "name it with --run, --campaign or --sweep");
  }
  const driver::DriverLock lock = driver::DriverLock::Take(file, "db delete");
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadWrite);
  const store::Deletion going = store.Delete(what, name, /*dry_run=*/true);
  const std::string all =
      fmt::format("{}{}{}", CountOf(going.results, "run"), going.jobs > 0 ? ", " + CountOf(going.jobs, "job") : "",
                  going.sweeps > 0 ? ", 1 sweep" : "");
  if (options.dry_run) {
    session::Say("{}: {} would be deleted; nothing was changed\n", file, all);
    return 0;
  }
  if (!options.yes && ::isatty(STDIN_FILENO) == 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("db delete: {} would be deleted, but there is no terminal to confirm it", all),
                "--yes confirms it; --dry-run only prints what would be deleted");
  }
  if (!options.yes && !IsConfirmed(fmt::format("{}: delete {}?", file, all))) {
    session::Say("nothing was changed\n");
    return 1;
  }
  store.Delete(what, name, /*dry_run=*/false);
  session::Say("{}: deleted {}; `ridgeline db vacuum` shrinks the file, and jobs' folders stay\n", file, all);
  return 0;
}

int Vacuum(const std::string& file) {
  const driver::DriverLock lock = driver::DriverLock::Take(file, "db vacuum");
  const auto before = static_cast<int64_t>(std::filesystem::file_size(file));
  session::OpenStore(file, store::Store::Mode::kReadWrite).Vacuum();
  session::Say("{}: {}, and {} before\n", file, FormatBytes(static_cast<int64_t>(std::filesystem::file_size(file))),
               FormatBytes(before));
  return 0;
}

// A store may be larger than memory, so it is written while it is read.
constexpr int64_t kLinesAtOnce = 200;  // rows in memory at a time, for a database of any size

// The columns of a measurement that hold JSON. Each becomes JSON in the measurement's line.
const std::vector<std::string> kJsonColumns = {"metrics",
                                               "own",
                                               "spec",
                                               "environment",
                                               "evidence",
                                               "loss",
                                               "grad_norm",
                                               "planned_bytes_by_category",
                                               "all_steps_ns",
                                               "setup",
                                               "gpu_clock_limits"};

// Invalid JSON, which other programs may have written to the database, stays a text.
void MakeJson(Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return;
  try {
    cell = DumpJson(ParseJson(*text, "a measurement"));
  } catch (const Error&) {
    cell = DumpJson(Json(*text));
  }
}

// Writes one line per measurement, while the measurements are read.
int64_t WriteLines(store::Store& store, const std::function<void(const std::string&)>& write) {
  int64_t lines = 0;
  for (int64_t last = 0;;) {
    Table some = store.Query(
        fmt::format("SELECT * FROM measurements WHERE result > {} ORDER BY result LIMIT {}", last, kLinesAtOnce));
    if (some.rows.empty()) return lines;
    const auto result = std::find(some.columns.begin(), some.columns.end(), "result") - some.columns.begin();
    last = CellInteger(some.rows.back()[static_cast<size_t>(result)]);
    lines += std::ssize(some.rows);
    for (size_t column = 0; column < some.columns.size(); ++column) {
      if (std::find(kJsonColumns.begin(), kJsonColumns.end(), some.columns[column]) == kJsonColumns.end()) continue;
      for (auto& row : some.rows) MakeJson(row[column]);
    }
    write(ToJsonLines(some, kJsonColumns));
  }
}

// `fill` gets a function that appends to the file. The file has another name until it is complete.
template <typename Fill>
void WriteWhole(const std::string& to, const Fill& fill) {
  const bool is_device = IsDevice(to);
  const std::string part = is_device ? to : to + ".part";
  std::ofstream out(part, std::ios::binary | (is_device ? std::ios::app : std::ios::trunc));
  fill([&](const std::string& text) { out << text; });
  out.close();
  if (!out) {
    if (!is_device) std::filesystem::remove(part);
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} cannot be written", to), "is its disk full?");
  }
  if (!is_device) std::filesystem::rename(part, to);
}

int ExportSql(const std::string& file, const std::string& to) {
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadOnly);
  if (to.empty()) {
    store.WriteSql([](const std::string& text) { session::Write(text); });
    return 0;
  }
  WriteWhole(to, [&](const auto& write) { store.WriteSql(write); });
  session::Say("{}: all of {}\n", to, file);
  return 0;
}

int ExportLines(const std::string& file, const std::string& to) {
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadOnly);
  if (to.empty()) {
    WriteLines(store, [](const std::string& text) { session::Write(text); });
    return 0;
  }
  int64_t lines = 0;
  WriteWhole(to, [&](const auto& write) { lines = WriteLines(store, write); });
  session::Say("{}: {} of {}\n", to, CountOf(lines, "measurement"), file);
  return 0;
}

int Export(const std::string& file, const std::string& format, const std::string& to) {
  const std::string form = FormOf(format, to, kExportForms);
  if (form == "sql") return ExportSql(file, to);
  if (form == "jsonl") return ExportLines(file, to);
  store::Store store = session::OpenStore(file, store::Store::Mode::kReadOnly);
  const Table measurements = store.Query("SELECT * FROM measurements ORDER BY result");
  const std::string text = Format(measurements, form);
  if (to.empty()) {
    session::Write(text);
    return 0;
  }
  WriteFileAtomic(to, text);
  session::Say("{}: {} of {}\n", to, CountOf(measurements.rows.size(), "measurement"), file);
  return 0;
}

}  // namespace

Action DbCommand(CLI::App& self) {
  struct Options {
    std::string file = session::kDefaultDb;
    std::string other;
    std::string format;
    std::string to;
    std::string before;
    DeleteOptions del;
  };
  const auto options = std::make_shared<Options>();
  self.require_subcommand(1);
  CLI::App* check = self.add_subcommand("check", "verify the file, its references, its JSON and every point's id");
  check->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  check->footer(
      "Reads the whole file and changes nothing.\n\n"
      "Exit codes: 0 sound, 2 the problems are printed, one a line.\n\n"
      "Example:\n"
      "  ridgeline db check --db ridgeline.db");
  CLI::App* merge = self.add_subcommand("merge", "add the measurements of another database");
  merge->add_option("other", options->other, "the other database, which is not changed")->required()->type_name("FILE");
  merge->add_option("--db", options->file, "the database that receives them")->type_name("FILE")->capture_default_str();
  merge->footer(
      "Brings the results of two machines together: every measurement of the other database, with its "
      "campaign, trainer, machine and version. Measurements that are here already are recognized, so "
      "merging twice changes nothing. If both measured a point for one campaign, their machines keep the "
      "two apart. If both have a sweep of one name, it stays as it is here. The other database may be "
      "older, and must have no live jobs.\n\n"
      "Example:\n"
      "  ridgeline db merge /mnt/node2/ridgeline.db");
  CLI::App* backup = self.add_subcommand("backup", "copy the database, also while a run is at work");
  AddToOption(*backup, options->to, "FILE", "the copy; the file must not exist")->required();
  backup->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  backup->footer(
      "Copies the database as it is at one moment into one file. The copy is complete, or there is none.\n\n"
      "Example:\n"
      "  ridgeline db backup --to ridgeline-monday.db");
  CLI::App* exported = self.add_subcommand("export", "write every measurement for other programs");
  AddFormatOption(*exported, options->format, kExportForms)->default_str(kExportForms.begin()[0]);
  AddToOption(*exported, options->to, "FILE", "the file to write (default: print the table)");
  exported->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  exported->footer(
      "Writes a row for each measurement, with the point's fields, its figures, campaign, trainer, machine "
      "and version (docs/store.md). To get less, use `ridgeline query`. jsonl writes each measurement as a "
      "line, with metrics and step times as JSON, for MLflow, W&B and TensorBoard (docs/store.md#other-"
      "tools). sql writes the whole database, which `sqlite3 FILE` reads back.\n\n"
      "Examples:\n"
      "  ridgeline db export --to measurements.csv\n"
      "  ridgeline db export -o jsonl | jq -c '{model, precision, mfu, metrics}'");
  CLI::App* prune = self.add_subcommand("prune", "delete old measurements");
  prune->add_option("--before", options->before, "those that ended before this day began, in UTC")
      ->required()
      ->type_name("DATE");
  prune->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  prune->footer(
      "Keeps the latest measurement of each point and setup, however old it is, so no report loses a point."
      " Histories and baselines lose what is pruned, so make a `ridgeline db backup` first.\n\n"
      "Example:\n"
      "  ridgeline db prune --before 2026-01-31");
  CLI::App* del = self.add_subcommand("delete", "delete a run, a campaign or a sweep");
  CLI::Option* run =
      del->add_option("--run", options->del.run,
                      "the run of this number (column run of tables), POINT.ENDED as its page says, or all runs of the "
                      "point of this id")
          ->type_name("RUN");
  CLI::Option* campaign =
      del->add_option("--campaign", options->del.campaign, "everything that was measured for this campaign")
          ->type_name("NAME")
          ->excludes(run);
  del->add_option("--sweep", options->del.sweep, "the sweep, and results of points that no other sweep has")
      ->type_name("NAME")
      ->excludes(run)
      ->excludes(campaign);
  del->add_flag("--dry-run", options->del.dry_run, "print what would be deleted, and change nothing");
  del->add_flag("--yes", options->del.yes, "do not ask");
  del->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  del->footer(
      "Asks before it deletes. Cancel a sweep that has live jobs first. The next `ridgeline run` measures "
      "deleted points again. The jobs' folders stay, and `ridgeline collect` on them would bring the "
      "results back.\n\n"
      "Examples:\n"
      "  ridgeline db delete --campaign try-1 --dry-run\n"
      "  ridgeline db delete --sweep demo --yes");
  CLI::App* vacuum = self.add_subcommand("vacuum", "shrink the file after deletions");
  vacuum->add_option("--db", options->file, "the results database")->type_name("FILE")->capture_default_str();
  vacuum->footer(
      "Needs as much free space beside the file while it works.\n\n"
      "Example:\n"
      "  ridgeline db vacuum");
  self.footer(
      "Example:\n"
      "  ridgeline db check");
  return [options, merge, backup, exported, prune, del, vacuum] {
    if (del->parsed()) return Delete(options->file, options->del);
    if (prune->parsed()) return Prune(options->file, options->before);
    if (vacuum->parsed()) return Vacuum(options->file);
    if (merge->parsed()) return Merge(options->file, options->other);
    if (backup->parsed()) return Backup(options->file, options->to);
    if (exported->parsed()) return Export(options->file, options->format, options->to);
    return CheckStore(options->file);
  };
}

}  // namespace ridgeline::cli
