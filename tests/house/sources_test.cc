// What holds for every source, and for the papers beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "tests/house/sources.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

std::vector<std::string> Sources() {
  std::vector<std::string> files;
  for (const char* folder : {"src", "include", "plugins", "tests", "bench"}) {
    const auto below = FilesBelow(folder, {".h", ".cc", ".cu", ".cuh"});
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

TEST(Sources, AreOneIdeaLong) {
  for (const std::string& file : Sources()) {
    // The driver is a loop that moves jobs from part to part: what makes it longer is a part.
    const size_t limit = file.starts_with("src/driver/") ? 300 : 600;
    EXPECT_LE(Lines(ReadFile(SourceDir() / file)).size(), limit) << file;
  }
}

// A launcher describes its jobs itself (include/ridgeline/launcher.h), so a new one gets right answers everywhere.
TEST(Sources, SrcNamesNoLauncher) {
  const std::regex names("\"(slurm|local|kubernetes)\"|\\bnodelist\\b|kubernetes\\.io|\\bgres\\b");
  const std::set<std::string> allowed = {
      "src/sweep/sweep.h",               // the default
      "src/sweep/launch.cc",             // settings of all launchers that change figures, and so are part of a setup
      "src/trainers/number_meaning.cc",  // a word of logs
      "src/run/synonyms.cc",             // where to write what was written in the wrong place
      "src/cli/nightly_command.cc",      // a folder of shipped files
      "src/node/container.cc"};          // srun's option
  for (const std::string& file : FilesBelow("src", {".h", ".cc"})) {
    const std::string text = ReadFile(SourceDir() / file);
    std::smatch found;
    EXPECT_EQ(std::regex_search(text, found, names), allowed.contains(file)) << file << ": " << found.str();
  }
}

// An op says itself what it is (src/engine/device/op.h). Only kernels know which op they compute.
TEST(Sources, AskAnOpForItsKindAndNotForItsName) {
  const std::regex comparison(R"(\bop [!=]= &)");
  for (const std::string& file : FilesBelow("src", {".h", ".cc", ".cu", ".cuh"})) {
    if (file.starts_with("src/engine/ops/") || file.starts_with("src/engine/comm/nccl/")) continue;
    if (file == "src/engine/device/trace.cc") continue;  // hands out a call's operands to its own op alone
    std::smatch found;
    const std::string text = ReadFile(SourceDir() / file);
    EXPECT_FALSE(std::regex_search(text, found, comparison)) << file << ": " << found.str();
  }
}

TEST(Sources, MainsAreShort) {
  size_t mains = 0;
  for (const std::string& file : FilesBelow("src", {".cc"})) {
    const std::string text = ReadFile(SourceDir() / file);
    if (text.find("\nint main(") == std::string::npos) continue;
    ++mains;
    EXPECT_LT(Lines(text).size(), 60U) << file;
  }
  EXPECT_EQ(mains, 3U);  // ridgeline, ridgeline-train and ridgeline-train-cuda
}

TEST(Sources, HeadersAreReadOnce) {
  for (const std::string& file : Sources()) {
    if (!(file.ends_with(".h") || file.ends_with(".cuh")) || file.ends_with("-inl.h"))
      continue;  // -inl.h: read once per instruction set
    const std::string text = ReadFile(SourceDir() / file);
    // What C programs may include has a guard instead.
    EXPECT_TRUE(text.find("#pragma once\n") != std::string::npos ||
                text.find("\n#ifndef RIDGELINE_") != std::string::npos)
        << file;
  }
}

TEST(Sources, HeadersOfSrcDoNotOpenNamespaces) {
  for (const std::string& file : Sources()) {
    if (!file.ends_with(".h")) continue;
    EXPECT_EQ(ReadFile(SourceDir() / file).find("\nusing namespace"), std::string::npos) << file;
  }
}

TEST(Sources, NothingIsLeftForLater) {
  const auto is_of_a_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (const std::string& file : Sources()) {
    const std::string text = " " + ReadFile(SourceDir() / file) + " ";
    for (const std::string& later : {std::string("TO") + "DO", std::string("FIX") + "ME", std::string(3, 'X')}) {
      for (size_t at = text.find(later); at != std::string::npos; at = text.find(later, at + 1)) {
        EXPECT_TRUE(is_of_a_word(text[at - 1]) || is_of_a_word(text[at + later.size()]))
            << file << ":" << 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') << ": "
            << later;
      }
    }
  }
}

// What stands in words may come from anywhere: session/say.h shows it so that no terminal obeys it.
TEST(Sources, CommandsSpeakInOneWay) {
  const std::regex other(R"(fmt::print|std::cout|std::cerr|\bf?printf\(|\bf?puts\(|\bfwrite\()");
  for (const char* room : {"src/session", "src/rounds", "src/gate", "src/nightly", "src/completion", "src/cli"}) {
    for (const std::string& file : FilesBelow(room, {".h", ".cc"})) {
      if (file.starts_with("src/session/say.")) continue;
      size_t number = 0;
      for (const std::string& line : Lines(ReadFile(SourceDir() / file))) {
        ++number;
        EXPECT_FALSE(std::regex_search(line, other)) << file << ":" << number << ": use Say, SayAside or Write";
      }
    }
  }
}

TEST(Papers, TheLicenceIsMit) {
  const std::string licence = ReadFile(SourceDir() / "LICENSE");
  EXPECT_TRUE(licence.starts_with("MIT License\n"));
  EXPECT_THAT(licence, HasSubstr("The Ridgeline authors"));
  EXPECT_THAT(licence, HasSubstr("WITHOUT WARRANTY OF ANY KIND"));
}

TEST(Papers, PackagesAreOneALine) {
  std::set<std::string> seen;
  for (std::string line : Lines(ReadFile(SourceDir() / "packages.txt"))) {
    line = line.substr(0, line.find('#'));
    while (line.ends_with(' ')) line.pop_back();
    if (line.empty()) continue;
    EXPECT_EQ(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-."), std::string::npos) << line;
    EXPECT_TRUE(seen.insert(line).second) << line << " stands there twice";
  }
  EXPECT_TRUE(seen.contains("cmake"));
}

// PlanCommand, RunCommand, … of src/cli/commands.h, as people type them.
std::vector<std::string> CommandNames() {
  const std::string header = ReadFile(SourceDir() / "src/cli/commands.h");
  static const std::regex pattern(R"(Action (\w)(\w*)Command\()");
  std::vector<std::string> names;
  for (std::sregex_iterator at(header.begin(), header.end(), pattern), end; at != end; ++at) {
    std::string name = (*at)[1].str() + (*at)[2].str();
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    names.push_back(name);
  }
  return names;
}

TEST(Papers, ThePageOfCommandsNamesEach) {
  const auto names = CommandNames();
  EXPECT_THAT(names, testing::Contains("plan"));
  const std::string page = ReadFile(SourceDir() / "docs/commands.md");
  for (const std::string& name : names) EXPECT_THAT(page, HasSubstr("ridgeline " + name));
}

TEST(Papers, TheHousePageNamesEveryRoom) {
  const std::string page = ReadFile(SourceDir() / "docs/house.md");
  for (const std::string folder : {"src", "src/engine"}) {
    for (const auto& entry : std::filesystem::directory_iterator(SourceDir() / folder)) {
      if (!entry.is_directory()) continue;
      EXPECT_THAT(page, HasSubstr("`" + folder + "/" + entry.path().filename().string() + "`"));
    }
  }
}

TEST(Papers, ThePageOfReportsAndTheGalleryHaveEachReport) {
  const std::string page = ReadFile(SourceDir() / "docs/reports.md");
  const std::string gallery = ReadFile(SourceDir() / "docs/site/gallery.md");
  const std::string script = ReadFile(SourceDir() / "scripts/docs.sh");
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() / "reports")) {
    const std::string name = entry.path().filename().string();
    EXPECT_THAT(page.substr(page.find("\n## Which reports there are\n")), HasSubstr("`" + name + "`"));
    EXPECT_THAT(gallery, HasSubstr("\n### " + name + "\n"));
    EXPECT_THAT(script, testing::ContainsRegex("[ \"]" + name + "[^a-z-]")) << "make docs draws it";
  }
}

}  // namespace
}  // namespace ridgeline
