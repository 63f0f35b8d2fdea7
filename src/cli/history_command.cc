// `ridgeline history`: shows every point over commits, and where it changed.
#include <initializer_list>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "gate/sides.h"
#include "regress/history.h"
#include "regress/measurements.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

constexpr std::initializer_list<const char*> kHistoryForms = {"text", "md", "csv", "json", "jsonl"};
// The most measurements of a cell. The time to find changes grows with the square of their number.
constexpr int64_t kMostMeasurements = 2000;

struct HistoryOptions {
  std::string side;
  std::string db = session::kDefaultDb;
  std::string format;
  std::string to;
  bool changes = false;
};

int ShowHistory(const HistoryOptions& options) {
  const std::string form = FormOf(options.format, options.to, kHistoryForms);
  regress::MeasurementChoice choice;
  choice.most = kMostMeasurements;
  std::string db = options.db;
  if (!options.side.empty()) {
    const gate::NamedSide side = gate::FindSide(options.side, options.db, "history", gate::SideNames::kOneOrMany);
    db = side.db;
    choice.campaign = side.campaign;
    choice.commit = side.commit;
  }
  store::Store store = session::OpenStore(db, store::Store::Mode::kReadOnly);
  const std::vector<regress::MeasuredCell> cells = regress::ReadMeasurements(store, choice);
  const bool for_people = form == "text" || form == "md";
  const Table table =
      for_people ? regress::ShortHistoryTable(cells, options.changes) : regress::HistoryTable(cells, options.changes);
  if (table.rows.empty() && !options.changes) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("history: {} has no step times", db),
                "measure some: ridgeline run SWEEP --campaign night-1");
  }
  const std::string text = Format(table, form);
  if (options.to.empty()) {
    session::Write(text);
    if (table.rows.empty() && form == "text") session::Say("no change is found in the history of any point\n");
    return 0;
  }
  WriteFileAtomic(options.to, text);
  session::Say("{}: {}\n", options.to, CountOf(table.rows.size(), "row"));
  return 0;
}

}  // namespace

Action HistoryCommand(CLI::App& self) {
  const auto options = std::make_shared<HistoryOptions>();
  self.add_option("campaigns", options->side, "a campaign, several (night-*) or a database (default: all)")
      ->type_name("CAMPAIGNS");
  self.add_flag("--changes", options->changes, "only commits at which a point's step time changed");
  self.add_option("--db", options->db, "the database of the campaigns")->capture_default_str()->type_name("FILE");
  AddFormatOption(self, options->format, kHistoryForms)->default_str(kHistoryForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write (default: print the table)");
  self.footer(
      "For each point, on machines of one fingerprint: the step time of every commit that was measured, the"
      " oldest first. A change of level is dated to the first commit that has it. It shows once there are "
      "about fifteen runs around it.\n\n"
      "Examples:\n"
      "  ridgeline history\n"
      "  ridgeline history 'night-*' --changes\n"
      "  ridgeline history -o csv --to history.csv");
  return [options] { return ShowHistory(*options); };
}

}  // namespace ridgeline::cli
