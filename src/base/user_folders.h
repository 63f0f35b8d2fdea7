// The folders of a user's own Ridgeline files, by the XDG Base Directory Specification. Nothing if the environment
// names neither the folder nor a home; relative paths in it do not count.
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

// The folders for files of one kind ("reports", "trainers"), in the order of search: `own`, the user's configuration,
// the shipped files.
std::vector<std::filesystem::path> FoldersOf(const std::string& kind, std::vector<std::filesystem::path> own);
// Whether a file may be of the kind; empty: any may. A sweep's own folder is searched, and also holds other files.
using IsOfKind = std::function<bool(const std::filesystem::path& file)>;
// NAME.yaml for each name that is not hidden, from the first folder that has one of the kind, sorted by name.
std::vector<std::filesystem::path> NamedFiles(const std::vector<std::filesystem::path>& folders,
                                              const IsOfKind& is_of_kind = {});
// Finds the file of this name. Throws NoneOfName if there is none.
std::filesystem::path FindNamedFile(std::string_view what, const std::string& name,
                                    const std::vector<std::filesystem::path>& folders, const IsOfKind& is_of_kind = {});

// The error that `folders` have no file of this name: kUsage, with the nearest of the existing `names`, all of them,
// and the folders. `what`: the kind of file, "report".
Error NoneOfName(std::string_view what, const std::string& name, const std::vector<std::string>& names,
                 const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline
