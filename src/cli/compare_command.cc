// `ridgeline compare`: compares the measurements of two sides, point by point.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "gate/sides.h"
#include "regress/compare.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

constexpr std::initializer_list<const char*> kCompareForms = {"text", "md", "csv", "json", "jsonl"};

struct CompareOptions {
  std::string base;
  std::string head;
  std::string db = session::kDefaultDb;
  std::string format;
  std::string to;
};

std::vector<regress::SideCell> ReadNamed(const std::string& name, const std::string& db) {
  const gate::NamedSide side = gate::FindSide(name, db, "compare");
  store::Store store = session::OpenStore(side.db, store::Store::Mode::kReadOnly);
  return regress::ReadSide(store, {side.campaign, side.commit});
}

int Compare(const CompareOptions& options) {
  const std::string form = FormOf(options.format, options.to, kCompareForms);
  const std::vector<regress::ComparedCell> cells =
      regress::MatchSides(ReadNamed(options.base, options.db), ReadNamed(options.head, options.db));
  if (std::none_of(cells.begin(), cells.end(),
                   [](const regress::ComparedCell& cell) { return cell.base && cell.head; })) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("compare: '{}' and '{}' have no comparable point", options.base, options.head),
        "two measurements are comparable if point, setup and machine fingerprint are the same (docs/compare.md)");
  }
  const bool for_people = form == "text" || form == "md";
  const std::string text =
      Format(for_people ? regress::ShortComparisonTable(cells) : regress::ComparisonTable(cells), form);
  if (options.to.empty()) {
    session::Write(text);
    return 0;
  }
  WriteFileAtomic(options.to, text);
  session::Say("{}: {}\n", options.to, CountOf(cells.size(), "point"));
  return 0;
}

}  // namespace

Action CompareCommand(CLI::App& self) {
  const auto options = std::make_shared<CompareOptions>();
  self.add_option("base", options->base, "the baseline: a campaign, commit:ABC1234, or a database file")
      ->type_name("BASE")
      ->required();
  self.add_option("head", options->head, "what is compared with it, named in the same way")
      ->type_name("HEAD")
      ->required();
  self.add_option("--db", options->db, "the database of the campaigns and commits")
      ->capture_default_str()
      ->type_name("FILE");
  AddFormatOption(self, options->format, kCompareForms)->default_str(kCompareForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write (default: print the table)");
  self.footer(
      "For each point that both sides measured with the same setup on machines of one fingerprint: how much"
      " longer its step takes in HEAD, with a 95 % interval, its peak memory, and what fails or is missing."
      " A FILE alone stands for its newest measurements, FILE:CAMPAIGN and FILE:commit:ABC1234 for a part "
      "of them.\n\n"
      "Exit codes: 0 something was compared, 3 nothing could be compared.\n\n"
      "Examples:\n"
      "  ridgeline compare monday tuesday\n"
      "  ridgeline compare commit:0123abc commit:4567def -o md\n"
      "  ridgeline compare /mnt/node2/ridgeline.db:monday tuesday");
  return [options] { return Compare(*options); };
}

}  // namespace ridgeline::cli
