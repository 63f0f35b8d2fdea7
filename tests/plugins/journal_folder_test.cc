// What the launchers' journals share: each of them meets the same faults.
#include "common/journal_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "kubernetes/journal.h"
#include "slurm/journal.h"
#include "tests/base/flips.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using plugin::Failure;
using plugin::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Launching {
  std::string folder;                                             // folder of entries, in the state folder
  std::function<void(const std::filesystem::path& state)> write;  // writes an entry rl-1
  std::function<bool(const std::filesystem::path& state)> knows;  // whether it knows rl-1, and all of it
};

std::vector<Launching> Launchers() {
  return {{"arrays",
           [](const auto& state) {
             slurm::Journal journal(state);
             journal.AddCancelled(journal.Record({"rl-1", {"rl-1", "rl-2"}, true, 17, 5}), {1});
           },
           [](const auto& state) {
             slurm::Journal journal(state);
             const slurm::Array* array = journal.FindArray("rl-1");
             return array != nullptr && array->keys.size() == 2 && array->is_array && array->id == 17 &&
                    array->recorded_unix_s == 5 && array->cancelled.contains(1);
           }},
          {"jobs",
           [](const auto& state) {
             kubernetes::Journal(state).Write({.key = "rl-1",
                                               .hash = "h",
                                               .kind = "job",
                                               .uid = "u",
                                               .job_dir = "/d",
                                               .points = {"p"},
                                               .created_unix_s = 5,
                                               .cancelled = true,
                                               .ended = true,
                                               .evidence = {{"end", "lost"}},
                                               .started_unix_s = 6});
           },
           [](const auto& state) {
             kubernetes::Journal journal(state);
             const kubernetes::Record* record = journal.Find("rl-1");
             return record != nullptr && record->hash == "h" && record->uid == "u" && record->job_dir == "/d" &&
                    record->points.size() == 1 && record->created_unix_s == 5 && record->cancelled && record->ended &&
                    record->evidence.contains("end") && record->started_unix_s == 6;
           }}};
}

std::string Refusal(const Launching& launcher, const std::filesystem::path& state) {
  try {
    launcher.knows(state);
    return "taken";
  } catch (const Error& e) {
    return std::string(e.what()) + " / " + e.hint();
  }
}

TEST(JournalFolder, KeepsAnEntryAndItsVersion) {
  for (const Launching& launcher : Launchers()) {
    const TempDir state;
    launcher.write(state.path());
    EXPECT_TRUE(launcher.knows(state.path())) << launcher.folder;
    const Json document = Json::parse(ReadFile(state / launcher.folder / "rl-1.json"));
    EXPECT_EQ(document.value("version", 0), 1) << launcher.folder;
  }
}

TEST(JournalFolder, RefusesANewerVersion) {
  for (const Launching& launcher : Launchers()) {
    const TempDir state;
    launcher.write(state.path());
    const std::filesystem::path file = state / launcher.folder / "rl-1.json";
    const std::string newer = R"({"version": 2, "what": "nobody knows"})";
    WriteFileAtomic(file, newer);
    EXPECT_THAT(Refusal(launcher, state.path()),
                AllOf(HasSubstr(file.string() + " is of version 2"), HasSubstr("use the Ridgeline that wrote it"),
                      HasSubstr("by hand")));
    EXPECT_EQ(ReadFile(file), newer);
  }
}

TEST(JournalFolder, RefusesWhatIsDamaged) {
  for (const Launching& launcher : Launchers()) {
    for (const char* text :
         {"", "{\"key\": ", "[]", "3", "{}", R"({"version": "one"})", R"({"version": 1, "key": "rl-1"})"}) {
      const TempDir state;
      launcher.write(state.path());
      const std::filesystem::path file = state / launcher.folder / "rl-1.json";
      WriteFileAtomic(file, text);
      EXPECT_THAT(Refusal(launcher, state.path()),
                  AllOf(HasSubstr(file.string() + " cannot be read"), HasSubstr("by hand")))
          << text;
    }
  }
}

TEST(JournalFolder, RefusesWhatIsNoFile) {
  for (const Launching& launcher : Launchers()) {
    const TempDir state;
    launcher.write(state.path());
    const std::filesystem::path file = state / launcher.folder / "rl-1.json";
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(Refusal(launcher, state.path()),
                AllOf(HasSubstr(file.string() + " cannot be read: it is a named pipe"), HasSubstr("by hand")));
  }
}

TEST(JournalFolder, FindsEveryBitThatIsAnother) {
  for (const Launching& launcher : Launchers()) {
    const TempDir state;
    launcher.write(state.path());
    const std::filesystem::path file = state / launcher.folder / "rl-1.json";
    testing::ExpectFlipsFound(launcher.folder, ReadFile(file), 200, [&](const std::string& flipped) -> std::string {
      WriteFile(file, flipped);
      try {
        return launcher.knows(state.path()) ? "all of it" : "something else";
      } catch (const Error& e) {
        return testing::kRefused + std::string(e.what());
      }
    });
  }
}

TEST(JournalFolder, TheMarkOfKubernetesJobsIsCheckedToo) {
  const TempDir state;
  const std::string store = kubernetes::Journal(state.path()).store();
  testing::ExpectFlipsFound("store", ReadFile(state / "store"), 200, [&](const std::string& flipped) -> std::string {
    WriteFile(state / "store", flipped);
    try {
      return kubernetes::Journal(state.path()).store();
    } catch (const Error& e) {
      return testing::kRefused + std::string(e.what());
    }
  });
}

}  // namespace
}  // namespace ridgeline
