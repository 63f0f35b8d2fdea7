#include "gate/sides.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::gate {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kCommit = "commit:";
constexpr size_t kShortestCommit = 7;

// The full name of the commit that begins so. A suffix behind a dash means changed sources: such a build has no commit.
std::string WholeCommit(store::Store& store, const std::string& begin, std::string_view command) {
  const bool hexadecimal =
      std::all_of(begin.begin(), begin.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hexadecimal || begin.size() < kShortestCommit) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: '{}{}' names no commit", command, kCommit, begin),
                fmt::format("give its first hexadecimal digits, {} or more", kShortestCommit));
  }
  const Table commits = store.Query(
      "SELECT DISTINCT environment ->> '$.git_commit' AS said FROM environments "
      "WHERE substr(said, 1, length(:begin)) = :begin AND instr(said, '-') = 0",
      {{"begin", begin}});
  if (commits.rows.size() == 1) return CellText(commits.rows[0][0]);
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: {} commit that begins with {} was measured", command,
                          commits.rows.empty() ? "no" : "more than one", begin),
              "`ridgeline query \"SELECT DISTINCT version FROM measurements\"` lists the builds");
}

std::vector<std::string> CampaignsOf(store::Store& store) {
  std::vector<std::string> campaigns;
  for (const auto& row : store.Query("SELECT DISTINCT campaign FROM results").rows) {
    campaigns.push_back(CellText(row[0]));
  }
  return campaigns;
}

class SideFinder {
 public:
  SideFinder(std::string_view command, SideNames names) : command_(command), names_(names) {}

  // Returns nothing if the database has no such name.
  std::optional<NamedSide> FindIn(store::Store& store, const std::string& name, const std::string& db) const {
    if (store.HasCampaign(name)) return NamedSide{db, name, {}};
    if (name.starts_with(kCommit)) {
      return NamedSide{db, {}, WholeCommit(store, name.substr(kCommit.size()), command_)};
    }
    if (names_ == SideNames::kOneOrMany && name.ends_with('*')) {
      const std::string beginning = name.substr(0, name.size() - 1);
      const std::vector<std::string> campaigns = CampaignsOf(store);
      if (std::any_of(campaigns.begin(), campaigns.end(),
                      [&](const std::string& campaign) { return campaign.starts_with(beginning); })) {
        return NamedSide{db, name, {}};
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void ThrowUnknown(store::Store& store, const std::string& name, const std::string& db) const {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' is neither a campaign of {} nor a database{}", command_, name, db,
                            DidYouMean(name, CampaignsOf(store))),
                fmt::format("name a campaign, {}commit:ABC1234, another database's file, or FILE:CAMPAIGN; `ridgeline "
                            "query \"SELECT DISTINCT campaign FROM measurements\"` lists campaigns",
                            names_ == SideNames::kOneOrMany ? "the beginning of several (night-*), " : ""));
  }

 private:
  const std::string_view command_;
  const SideNames names_;
};

// The database that a side names: its file, and the name behind a colon, if any.
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

}  // namespace

NamedSide FindSide(const std::string& name, const std::string& db, std::string_view command, SideNames names) {
  const SideFinder finder(command, names);
  const std::optional<OtherDatabase> other = DatabaseIn(name);
  if (!other || fs::is_regular_file(db)) {
    store::Store store = session::OpenStore(db, store::Store::Mode::kReadOnly);
    if (auto side = finder.FindIn(store, name, db)) return *side;
    if (!other) finder.ThrowUnknown(store, name, db);
  }
  if (other->name.empty()) return {other->file, {}, {}};
  store::Store store = session::OpenStore(other->file, store::Store::Mode::kReadOnly);
  if (auto side = finder.FindIn(store, other->name, other->file)) return *side;
  finder.ThrowUnknown(store, other->name, other->file);
}

}  // namespace ridgeline::gate
