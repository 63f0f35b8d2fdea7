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
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/sides.h"
#include "regress/compare.h"
#include "store/store.h"

namespace ridgeline {
namespace {

constexpr std::initializer_list<const char*> kCompareForms = {"text", "md", "csv", "json", "jsonl"};

struct CompareOptions {
  std::string base;
  std::string head;
  std::string db = kDefaultDb;
  std::string format;
  std::string to;
};

std::vector<SideCell> ReadNamed(const std::string& name, const std::string& db) {
  const NamedSide side = FindSide(name, db, "compare");
  Store store = OpenStore(side.db, Store::Mode::kReadOnly);
  return ReadSide(store, {side.campaign, side.commit});
}

int Compare(const CompareOptions& options) {
  const std::string form = FormOf(options.format, options.to, kCompareForms);
  const std::vector<ComparedCell> cells =
      MatchSides(ReadNamed(options.base, options.db), ReadNamed(options.head, options.db));
  if (std::none_of(cells.begin(), cells.end(), [](const ComparedCell& cell) { return cell.base && cell.head; })) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("compare: '{}' and '{}' have measured no point alike", options.base, options.head),
                "what is compared is the same point with the same setup, on machines of one fingerprint "
                "(docs/compare.md)");
  }
  const bool for_people = form == "text" || form == "md";
  const std::string text = Format(for_people ? ShortComparisonTable(cells) : ComparisonTable(cells), form);
  if (options.to.empty()) {
    Write(text);
    return 0;
  }
  WriteFileAtomic(options.to, text);
  Say("{}: {} point{}\n", options.to, cells.size(), cells.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

Action CompareCommand(CLI::App& self) {
  const auto options = std::make_shared<CompareOptions>();
  self.add_option("base", options->base, "what is compared with: a campaign, commit:ABC1234, or a database's file")
      ->type_name("BASE")
      ->required();
  self.add_option("head", options->head, "what is compared, named likewise")->type_name("HEAD")->required();
  self.add_option("--db", options->db, "the database that campaigns and commits are of")
      ->capture_default_str()
      ->type_name("FILE");
  AddFormatOption(self, options->format, kCompareForms)->default_str(kCompareForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write; without it the table is printed");
  self.footer(
      "Of each point that both have measured with the same setup on machines of one fingerprint: how much longer its\n"
      "step takes in head, with the interval of 95 % that its runs leave, its peak memory, and what fails or is\n"
      "missing. A file alone means its newest measurements, FILE:CAMPAIGN and FILE:commit:ABC1234 those of a part.\n"
      "Exit code 0: something was compared, whatever came out; 3: nothing could be.\n\n"
      "  ridgeline compare monday tuesday\n"
      "  ridgeline compare commit:0123abc commit:4567def -o md\n"
      "  ridgeline compare /mnt/node2/ridgeline.db:monday tuesday");
  return [options] { return Compare(*options); };
}

}  // namespace ridgeline
