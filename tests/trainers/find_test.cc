// The folders where definitions are found.
#include "trainers/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Find : public ::testing::Test {
 protected:
  fs::path Make(const std::string& folder, const std::string& file) {
    fs::create_directories(dir_ / folder);
    std::ofstream(dir_ / folder / file) << "x";
    return dir_ / folder / file;
  }

  TempDir dir_;
};

TEST_F(Find, TheFirstFolderWins) {
  const auto mine = Make("a", "one.yaml");
  Make("b", "one.yaml");
  const auto two = Make("b", "two.yaml");
  Make("b", "two.log");
  Make("b", ".hidden.yaml");
  fs::create_directories(dir_ / "b/folder.yaml");
  const std::vector<fs::path> folders = {dir_ / "none", dir_ / "a", dir_ / "b"};
  EXPECT_THAT(FindTrainers(folders), ElementsAre(mine, two));
  EXPECT_EQ(FindTrainer("one", folders), mine);
}

TEST_F(Find, AFileOfAnotherKindIsNoDefinition) {
  const auto write = [&](const std::string& file, const std::string& text) {
    const fs::path path = Make(fs::path(file).parent_path(), fs::path(file).filename());
    std::ofstream(path) << text;
    return path;
  };
  write("sweeps/torchtitan.yaml", "name: torchtitan\nmatrix: {trainer: torchtitan}\n");
  write("sweeps/framework.yaml", "name: framework\nabout: x\nsources: {s: x}\nmemory: {}\n");
  write("sweeps/nemo.yaml", "trainer: {devices: 8}\nmodel: {name: llama}\n");
  const auto broken = write("sweeps/mine.yaml", "name: mine\ncommand: [x\n");
  const auto near = write("sweeps/near.yaml", "name: near\ntested: log\nmetric: []\n");
  const auto shipped = write("ships/torchtitan.yaml", "name: torchtitan\nabout: x\ntested: log\n");
  const std::vector<fs::path> folders = {dir_ / "sweeps", dir_ / "ships"};
  EXPECT_EQ(FindTrainer("torchtitan", folders), shipped);
  EXPECT_EQ(FindTrainer("mine", folders), broken) << "its faults are said";
  EXPECT_EQ(FindTrainer("near", folders), near);
  EXPECT_THROW(FindTrainer("nemo", folders), Error);
  EXPECT_THROW(FindTrainer("framework", folders), Error);
}

TEST_F(Find, ANameThatIsNoneIsSaidWithTheNearest) {
  Make("a", "nanogpt.yaml");
  try {
    FindTrainer("nanogtp", {dir_ / "a"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_EQ(e.message(), "there is no trainer 'nanogtp', did you mean 'nanogpt'?");
    EXPECT_THAT(e.hint(), HasSubstr("they are looked for in " + (dir_ / "a").string()));
  }
  EXPECT_THROW(FindTrainer("../a/nanogpt", {dir_ / "a"}), Error);
}

TEST_F(Find, ANameWithoutAReleaseIsTheHighestNumberOfTheFirstFolderThatHasOne) {
  const auto two = Make("b", "titan@0.2.yaml");
  const auto ten = Make("b", "titan@0.10.yaml");
  const auto main = Make("b", "titan@main.yaml");
  Make("b", "titan@0.9.1.yaml");
  Make("b", "titan@0.11rc1.yaml");
  Make("b", "titanic@7.yaml");
  Make("c", "titan@0.12.yaml");
  const std::vector<fs::path> folders = {dir_ / "a", dir_ / "b", dir_ / "c"};
  EXPECT_EQ(FindTrainer("titan", folders), ten);
  EXPECT_EQ(FindTrainer("titan@0.2", folders), two);
  EXPECT_EQ(FindTrainer("titan@0.9", folders), dir_ / "b/titan@0.9.1.yaml") << "and not 0.10";
  EXPECT_THROW(FindTrainer("titan@0.1", folders), Error);
  EXPECT_THROW(FindTrainer("titan@mai", folders), Error);
  EXPECT_EQ(FindTrainer("titan@main", folders), main);
  const auto pinned = Make("a", "titan@0.1.yaml");
  EXPECT_EQ(FindTrainer("titan", folders), pinned) << "a folder that comes first decides";
  const auto plain = Make("a", "titan.yaml");
  EXPECT_EQ(FindTrainer("titan", folders), plain);
  const auto longer = Make("d", "titan@1.0.1.yaml");
  Make("d", "titan@1.0.yaml");
  EXPECT_EQ(FindTrainer("titan", {dir_ / "d"}), longer);
}

TEST_F(Find, AReleaseThatIsNoneIsSaidWithThoseThatThereAre) {
  Make("a", "titan@0.2.yaml");
  Make("a", "titan@main.yaml");
  Make("a", "nemo@main.yaml");
  const auto refusal = [&](const std::string& name) {
    try {
      FindTrainer(name, {dir_ / "a"});
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("was found");
  };
  EXPECT_EQ(refusal("titan@0.3"), "there is no trainer 'titan@0.3'; of titan there are titan@0.2, titan@main");
  EXPECT_EQ(refusal("nemo"), "nemo has no numbered release: name one of nemo@main");
  EXPECT_THAT(refusal("tital"), HasSubstr("there is no trainer 'tital'"));
  EXPECT_THAT(refusal("tital@0.2"), HasSubstr("did you mean 'titan@0.2'?"));
}

TEST_F(Find, OwnFoldersComeFirstThenTheCurrentOne) {
  const auto folders = TrainerFolders({"mine"});
  ASSERT_GE(folders.size(), 2U);
  EXPECT_EQ(folders[0], "mine");
  EXPECT_EQ(folders[1], "trainers");
}

}  // namespace
}  // namespace ridgeline::trainers
