// The one-way street between the rooms (docs/house.md), kept by reading every include.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

// A room may include itself and every room to its left in a row it stands in.
const std::vector<std::vector<std::string>>& Street() {
  static const std::vector<std::vector<std::string>> rows = {
      // The harness.
      {"base",   "run",   "stats",   "yaml",       "trainers", "sweep",   "plan",    "search",
       "launch", "store", "collect", "driver",     "report",   "regress", "metrics", "session",
       "rounds", "gate",  "nightly", "completion", "serve",    "cli"},
      // What runs beside a trainer, on its node. Of the harness only the command line knows it.
      {"base", "run", "yaml", "trainers", "node", "cli"},
      // The engine.
      {"base", "run", "engine/tensor", "engine/memory", "engine/device", "engine/precision", "engine/ops",
       "engine/comm", "engine/model", "engine/recompute", "engine/shard", "engine/step", "engine/device/cpu",
       "engine/ops/cpu", "engine/comm/gloo", "engine/train", "engine/cli"},
      // Its other device: neither knows the one beside it.
      {"base", "run", "engine/tensor", "engine/memory", "engine/device", "engine/precision", "engine/ops",
       "engine/comm", "engine/model", "engine/recompute", "engine/shard", "engine/step", "engine/device/cuda",
       "engine/ops/cuda", "engine/comm/nccl", "engine/train", "engine/cli"},
      // The bridge: the only way from the harness to the engine, and what may use it. It knows no backend.
      {"base", "run", "engine/tensor", "engine/memory", "engine/device", "engine/precision", "engine/ops",
       "engine/comm", "engine/model", "engine/recompute", "engine/shard", "engine/step", "predict"},
      // What it reads beside: descriptions of devices, and how numbers are carried over.
      {"base", "run", "stats", "yaml", "predict"},
      {"predict", "plan", "search", "launch", "store", "collect", "driver", "report", "regress", "metrics", "session",
       "rounds", "gate", "nightly", "completion", "serve", "cli"},
  };
  return rows;
}

// One third party, one room that wraps it. (fmt and nlohmann-json are everybody's.)
const std::map<std::string, std::set<std::string>>& Wrappers() {
  static const std::map<std::string, std::set<std::string>> wrappers = {
      {"yaml-cpp/", {"yaml"}},
      {"re2/", {"trainers"}},
      {"httplib.h", {"serve"}},
      {"SQLiteCpp/", {"store"}},
      {"sqlite3.h", {"store"}},
      {"CLI/", {"base", "cli", "engine/cli"}},
      {"xxhash.h", {"base"}},
      {"dnnl.hpp", {"engine/ops/cpu", "engine/train"}},
      {"hwy/", {"engine/device/cpu", "engine/ops/cpu"}},
      {"dlfcn.h", {"launch", "base"}},
      {"gloo/", {"engine/comm/gloo"}},
      {"cuda", {"engine/device/cuda", "engine/ops/cuda", "engine/comm/nccl"}},
      {"cublasLt.h", {"engine/device/cuda", "engine/ops/cuda"}},
      {"nvtx3/", {"engine/device/cuda"}},
      {"cudnn", {"engine/device/cuda", "engine/ops/cuda"}},
      {"nccl.h", {"engine/comm/nccl"}},
      {"sodium.h", {"engine/comm/gloo"}},
      {"zlib.h", {"serve"}},
      {"protozero/", {"engine/step"}},
  };
  return wrappers;
}

// "engine/ops" for engine/ops/gemm.h, "engine/ops/cpu" for engine/ops/cpu/gemm.cc, "base" for base/error.h; nothing for
// a path of no room.
std::optional<std::string> RoomOf(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const auto& row : Street()) {
    if (std::find(row.begin(), row.end(), folder) != row.end()) return folder;
  }
  return std::nullopt;
}

bool MayInclude(const std::string& from, const std::string& to) {
  if (from == to) return true;
  for (const auto& row : Street()) {
    const auto from_place = std::find(row.begin(), row.end(), from);
    const auto to_place = std::find(row.begin(), row.end(), to);
    if (from_place != row.end() && to_place < from_place) return true;
  }
  return false;
}

struct Include {
  size_t line;
  std::string path;
  bool quoted;  // "x.h", not <x.h>
};

std::vector<Include> IncludesOf(const std::string& text) {
  static const std::regex pattern("^\\s*#\\s*include\\s*([\"<])([^\">]+)[\">].*");
  std::vector<Include> includes;
  size_t number = 0;
  for (const std::string& line : Lines(text)) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, pattern)) includes.push_back({number, match[2], match[1] == "\""});
  }
  return includes;
}

// What is wrong with the includes of src/`file`, one sentence each.
std::vector<std::string> WrongIncludes(const std::string& file, const std::string& text) {
  std::vector<std::string> wrong;
  const auto room = RoomOf(file);
  if (!room) return {"src/" + file + ": is in no room of the street"};
  for (const Include& include : IncludesOf(text)) {
    const std::string where = "src/" + file + ":" + std::to_string(include.line) + ": ";
    if (include.quoted && !include.path.starts_with("ridgeline/")) {
      const auto to = RoomOf(include.path);
      if (!to) {
        wrong.push_back(where + include.path + " is in no room of the street");
      } else if (!MayInclude(*room, *to)) {
        wrong.push_back(where + *room + " must not include " + *to + " (" + include.path + ")");
      }
    }
    for (const auto& [library, rooms] : Wrappers()) {
      if (include.path.starts_with(library) && !rooms.contains(*room)) {
        wrong.push_back(where + *room + " must not include " + include.path + ", another room wraps it");
      }
    }
  }
  return wrong;
}

std::vector<std::string> WrongPluginIncludes(const std::string& file, const std::string& text) {
  std::vector<std::string> wrong;
  for (const Include& include : IncludesOf(text)) {
    const bool known = include.path.starts_with("ridgeline/") || include.path.starts_with("base/") ||
                       std::filesystem::exists(SourceDir() / "plugins" / include.path);
    if (include.quoted && !known) {
      wrong.push_back(file + ":" + std::to_string(include.line) + ": a plugin must not include " + include.path);
    }
  }
  return wrong;
}

TEST(Street, LeftIsLeaveToInclude) {
  EXPECT_TRUE(MayInclude("plan", "sweep"));
  EXPECT_TRUE(MayInclude("plan", "predict"));
  EXPECT_TRUE(MayInclude("predict", "engine/step"));
  EXPECT_TRUE(MayInclude("engine/train", "engine/ops/cpu"));
  EXPECT_TRUE(MayInclude("engine/ops", "base"));
  EXPECT_TRUE(MayInclude("cli", "store"));
  EXPECT_TRUE(MayInclude("base", "base"));
}

TEST(Street, NothingElseIs) {
  EXPECT_FALSE(MayInclude("base", "run"));
  EXPECT_FALSE(MayInclude("sweep", "plan"));
  EXPECT_FALSE(MayInclude("store", "report"));
  EXPECT_FALSE(MayInclude("plan", "engine/train"));
  EXPECT_FALSE(MayInclude("cli", "engine/train"));
  EXPECT_FALSE(MayInclude("engine/train", "store"));
  EXPECT_FALSE(MayInclude("engine/train", "predict"));
  EXPECT_FALSE(MayInclude("engine/ops", "engine/model"));
  EXPECT_FALSE(MayInclude("engine/ops", "engine/ops/cpu"));
  EXPECT_FALSE(MayInclude("engine/step", "engine/device/cpu"));
  EXPECT_FALSE(MayInclude("predict", "engine/train"));
  EXPECT_FALSE(MayInclude("predict", "engine/device/cpu"));
  EXPECT_FALSE(MayInclude("predict", "engine/device/cuda"));
  EXPECT_FALSE(MayInclude("engine/ops/cuda", "engine/ops/cpu"));
  EXPECT_FALSE(MayInclude("sweep", "predict"));
}

TEST(Street, AWrongArrowIsFound) {
  EXPECT_EQ(WrongIncludes("base/error.h", "#include <string>\n  # include \"run/spec.h\"\n"),
            std::vector<std::string>{"src/base/error.h:2: base must not include run (run/spec.h)"});
  EXPECT_EQ(WrongIncludes("attic/a.h", "").size(), 1U);
  EXPECT_EQ(WrongIncludes("engine/a.h", "").size(), 1U) << "the engine's files stand in its rooms";
  EXPECT_EQ(WrongIncludes("run/a.h", "#include \"error.h\"\n").size(), 1U);
  EXPECT_EQ(WrongIncludes("run/a.cc", "#include <sqlite3.h>\n").size(), 1U);
  EXPECT_EQ(WrongIncludes("run/a.cc", "// #include \"cli/x.h\"\n#include \"ridgeline/run.h\"\n").size(), 0U);
  EXPECT_EQ(WrongPluginIncludes("plugins/local/a.cc", "#include \"run/spec.h\"\n").size(), 1U);
  EXPECT_EQ(WrongPluginIncludes("plugins/local/a.cc", "#include \"base/error.h\"\n").size(), 0U);
  EXPECT_EQ(WrongPluginIncludes("plugins/local/a.cc", "#include \"ridgeline/launcher.h\"\n").size(), 0U);
}

TEST(Street, IsKeptInSrc) {
  const std::string src = "src/";
  size_t includes = 0;
  for (const std::string& file : FilesBelow("src", {".h", ".cc", ".cu", ".cuh"})) {
    const std::string text = ReadFile(SourceDir() / file);
    includes += IncludesOf(text).size();
    for (const std::string& wrong : WrongIncludes(file.substr(src.size()), text)) ADD_FAILURE() << wrong;
  }
  EXPECT_GT(includes, 300U) << "the sources were not read";
}

struct Library {
  std::string room;
  std::set<std::string> links;  // of ours, by room
};

// By room, as CMake has them.
std::map<std::string, Library> Libraries() {
  std::map<std::string, Library> libraries;
  std::map<std::string, std::string> room_of;
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : Lines(ReadFile(std::filesystem::path(RIDGELINE_BINARY_DIR) / "tests/links.txt"))) {
    std::istringstream words(line);
    std::string name, room, links;
    words >> name >> room >> links;
    if (name.empty()) continue;
    room_of[name] = room;
    lines.push_back({room, links});
  }
  for (const auto& line : lines) {
    Library& library = libraries[line[0]];
    library.room = line[0];
    std::istringstream names(line[1]);
    for (std::string name; std::getline(names, name, ';');) {
      if (room_of.contains(name) && room_of.at(name) != line[0]) library.links.insert(room_of.at(name));
    }
  }
  return libraries;
}

TEST(Street, EveryArrowIsALinkAndEveryLinkAnArrow) {
  const auto libraries = Libraries();
  ASSERT_GT(libraries.size(), 20U);
  for (const auto& [room, library] : libraries) {
    std::set<std::string> included;
    for (const std::string& file : FilesBelow("src/" + room, {".h", ".cc", ".cu", ".cuh"})) {
      if (RoomOf(file.substr(4)) != room || file.ends_with("main.cc")) continue;
      for (const Include& include : IncludesOf(ReadFile(SourceDir() / file))) {
        const auto to = RoomOf(include.path);
        if (include.quoted && to && *to != room) included.insert(*to);
      }
    }
    std::set<std::string> reached;
    std::vector<std::string> ahead(library.links.begin(), library.links.end());
    while (!ahead.empty()) {
      const std::string next = ahead.back();
      ahead.pop_back();
      if (!reached.insert(next).second) continue;
      ahead.insert(ahead.end(), libraries.at(next).links.begin(), libraries.at(next).links.end());
    }
    for (const std::string& to : included) {
      if (!libraries.contains(to)) continue;  // built without CUDA
      EXPECT_TRUE(reached.contains(to)) << room << " includes " << to;
    }
    for (const std::string& to : library.links) EXPECT_TRUE(included.contains(to)) << room << " links " << to;
  }
}

TEST(Street, EveryQuotedIncludeIsAFileOfOurs) {
  for (const std::string& file : FilesBelow("src", {".h", ".cc", ".cu", ".cuh"})) {
    for (const Include& include : IncludesOf(ReadFile(SourceDir() / file))) {
      if (!include.quoted) continue;
      EXPECT_TRUE(std::filesystem::exists(SourceDir() / "src" / include.path) ||
                  std::filesystem::exists(SourceDir() / "include" / include.path))
          << file << ":" << include.line << ": " << include.path;
    }
  }
}

TEST(Street, PluginsSeeOnlyTheContractAndTheBase) {
  const auto files = FilesBelow("plugins", {".h", ".cc"});
  EXPECT_FALSE(files.empty());
  for (const std::string& file : files) {
    for (const std::string& wrong : WrongPluginIncludes(file, ReadFile(SourceDir() / file))) ADD_FAILURE() << wrong;
  }
}

TEST(Street, TheContractStandsAlone) {
  for (const std::string& file : FilesBelow("include", {".h"})) {
    for (const Include& include : IncludesOf(ReadFile(SourceDir() / file))) {
      EXPECT_TRUE(!include.quoted || include.path.starts_with("ridgeline/")) << file << ": " << include.path;
    }
  }
}

}  // namespace
}  // namespace ridgeline
