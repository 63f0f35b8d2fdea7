// Names of measurements on a command line: a campaign, a commit or a database.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::gate {

struct NamedSide {
  std::string db;        // the database's file
  std::string campaign;  // empty: any; a `*` at its end stands for any ending
  std::string commit;    // the full name; empty: any
};

enum class SideNames {
  kOne,        // a campaign, commit:ABC1234, a database's file, FILE:CAMPAIGN or FILE:commit:ABC1234
  kOneOrMany,  // or the beginning of campaigns' names, night-*, and likewise FILE:night-*
};

// A name that is a campaign of `db` means that campaign. Throws Error(kUsage), with `command` first, if it means
// nothing.
NamedSide FindSide(const std::string& name, const std::string& db, std::string_view command,
                   SideNames names = SideNames::kOne);

}  // namespace ridgeline::gate
