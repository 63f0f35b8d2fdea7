// How measurements are named on a command line: by a campaign, a commit, a database.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

struct NamedSide {
  std::string db;        // its file
  std::string campaign;  // empty: of any; a `*` at its end stands for whatever follows
  std::string commit;    // whole; empty: of any
};

enum class SideNames {
  kOne,        // a campaign, commit:ABC1234, a database's file, FILE:CAMPAIGN or FILE:commit:ABC1234
  kOneOrMany,  // or the beginning of campaigns' names, night-*, and likewise FILE:night-*
};

// A name that is a campaign of `db` means that. Throws Error(kUsage), with `command` first, where it means nothing.
NamedSide FindSide(const std::string& name, const std::string& db, std::string_view command,
                   SideNames names = SideNames::kOne);

}  // namespace ridgeline
