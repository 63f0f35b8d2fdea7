// `ridgeline compare`: two sides' measurements, point by point.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "regress/compare.h"
#include "store/store.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr std::initializer_list<const char*> kCompareForms = {"text", "md", "csv", "json", "jsonl"};
constexpr std::string_view kCommit = "commit:";
constexpr size_t kShortestCommit = 7;

struct CompareOptions {
  std::string base;
  std::string head;
  std::string db = kDefaultDb;
  std::string format;
  std::string to;
};

// The whole name of the commit that begins so. What is behind a dash says that sources had been changed: a build of no
// commit.
std::string WholeCommit(Store& store, const std::string& begin) {
  const bool hexadecimal =
      std::all_of(begin.begin(), begin.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hexadecimal || begin.size() < kShortestCommit) {
    throw Error(ErrorKind::kUsage, fmt::format("compare: '{}{}' names no commit", kCommit, begin),
                fmt::format("give its first hexadecimal digits, {} or more", kShortestCommit));
  }
  const Table commits = store.Query(
      "SELECT DISTINCT environment ->> '$.git_commit' AS said FROM environments "
      "WHERE substr(said, 1, length(:begin)) = :begin AND instr(said, '-') = 0",
      {{"begin", begin}});
  if (commits.rows.size() == 1) return CellText(commits.rows[0][0]);
  throw Error(ErrorKind::kUsage,
              fmt::format("compare: {} commit that begins with {} was measured",
                          commits.rows.empty() ? "no" : "more than one", begin),
              "`ridgeline query \"SELECT DISTINCT version FROM measurements\"` lists the builds");
}

// A campaign or a commit of the store; nothing where the name is neither.
std::optional<SideChoice> ChoiceIn(Store& store, const std::string& name) {
  if (store.HasCampaign(name)) return SideChoice{name, {}};
  if (name.starts_with(kCommit)) return SideChoice{{}, WholeCommit(store, name.substr(kCommit.size()))};
  return std::nullopt;
}

[[noreturn]] void ThrowUnknown(Store& store, const std::string& name, const std::string& db) {
  std::vector<std::string> campaigns;
  for (const auto& row : store.Query("SELECT DISTINCT campaign FROM results").rows) {
    campaigns.push_back(CellText(row[0]));
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("compare: '{}' is no campaign of {}, and no database{}", name, db, DidYouMean(name, campaigns)),
      "name a campaign, commit:ABC1234, another database's file, or FILE:CAMPAIGN; `ridgeline query \"SELECT "
      "DISTINCT campaign FROM measurements\"` lists campaigns");
}

// The database that a side names: its file, and what of it is behind a colon, if anything.
struct OtherDatabase {
  std::string file;
  std::string name;
};

std::optional<OtherDatabase> DatabaseIn(const std::string& side) {
  if (fs::is_regular_file(side)) return OtherDatabase{side, {}};
  for (size_t colon = side.find(':'); colon != std::string::npos; colon = side.find(':', colon + 1)) {
    if (const std::string file = side.substr(0, colon); fs::is_regular_file(file)) {
      return OtherDatabase{file, side.substr(colon + 1)};
    }
  }
  return std::nullopt;
}

std::vector<SideCell> ReadNamed(const std::string& side, const std::string& db) {
  const std::optional<OtherDatabase> other = DatabaseIn(side);
  if (!other || fs::is_regular_file(db)) {
    Store store = OpenStore(db, Store::Mode::kReadOnly);
    if (const auto choice = ChoiceIn(store, side)) return ReadSide(store, *choice);
    if (!other) ThrowUnknown(store, side, db);
  }
  Store store = OpenStore(other->file, Store::Mode::kReadOnly);
  if (other->name.empty()) return ReadSide(store, {});
  if (const auto choice = ChoiceIn(store, other->name)) return ReadSide(store, *choice);
  ThrowUnknown(store, other->name, other->file);
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
