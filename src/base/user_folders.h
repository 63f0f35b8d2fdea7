// Where a person's own files of ours lie, as the XDG Base Directory Specification has it. Nothing where the environment
// names neither the folder nor a home: a relative path in it does not count.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ridgeline {

std::optional<std::filesystem::path> ConfigFolder();  // $XDG_CONFIG_HOME/ridgeline, else ~/.config/ridgeline
std::optional<std::filesystem::path> CacheFolder();   // $XDG_CACHE_HOME/ridgeline, else ~/.cache/ridgeline

// Where files of one kind ("reports", "trainers") are looked for, in order: `own`, the person's configuration, what
// ships.
std::vector<std::filesystem::path> FoldersOf(const std::string& kind, std::vector<std::filesystem::path> own);
// Whether a file may be one of the kind; empty: any may. A sweep's own folder is searched, and holds other files too.
using IsOfKind = std::function<bool(const std::filesystem::path& file)>;
// NAME.yaml of each name that is not hidden, the first folder's that has one of the kind, sorted by name.
std::vector<std::filesystem::path> NamedFiles(const std::vector<std::filesystem::path>& folders,
                                              const IsOfKind& is_of_kind = {});
// The one of this name. Throws NoneOfName where there is none.
std::filesystem::path FindNamedFile(std::string_view what, const std::string& name,
                                    const std::vector<std::filesystem::path>& folders, const IsOfKind& is_of_kind = {});

// That `folders` have none of this name: kUsage, with the nearest of the `names` that there are, all of them, and the
// folders. `what`: one of them, "report".
Error NoneOfName(std::string_view what, const std::string& name, const std::vector<std::string>& names,
                 const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline
