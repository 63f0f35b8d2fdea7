#include "engine/device/algorithm_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "ridgeline/sealed_json.h"
#include "tests/base/flips.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Use = AlgorithmFile::Use;

const std::string kBytes("\x00\xff\x10z", 4);

class AlgorithmFileTest : public ::testing::Test {
 protected:
  AlgorithmFile Open(const std::string& machine = "H200, driver 13.0", Use use = Use::kMeasure) {
    return {path_, machine, use, [this](const std::string& note) { notes_.push_back(note); }};
  }
  // Checks that the file's contents are left alone, with one note that says why.
  void ExpectRefused(const std::string& why) {
    AlgorithmFile file = Open();
    EXPECT_EQ(file.Find("x"), std::nullopt);
    ASSERT_THAT(notes_, ElementsAre(HasSubstr(why)));
    EXPECT_THAT(notes_[0], HasSubstr(path_.string()));
    EXPECT_THAT(notes_[0], HasSubstr("remove it"));
    file.Keep("x", kBytes);
    file.Save();
    EXPECT_EQ(file.Find("x"), kBytes) << "as long as the process lives";
    EXPECT_EQ(notes_.size(), 1U);
    notes_.clear();
  }

  TempDir dir_;
  fs::path path_ = dir_ / "new" / "folder" / "cublaslt.json";
  std::vector<std::string> notes_;
};

TEST_F(AlgorithmFileTest, KeepsWhatWasFoundForTheNextProcess) {
  AlgorithmFile first = Open();
  EXPECT_EQ(first.Find("x"), std::nullopt);
  first.Save();
  EXPECT_FALSE(fs::exists(path_)) << "nothing to write";
  first.Keep("x", kBytes);
  EXPECT_EQ(first.Find("x"), kBytes);
  first.Save();
  EXPECT_EQ(Open().Find("x"), kBytes);
  EXPECT_EQ(Open().Find("y"), std::nullopt);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(AlgorithmFileTest, HoldsForTheMachineItWasMadeOn) {
  AlgorithmFile file = Open();
  file.Keep("x", kBytes);
  file.Save();
  AlgorithmFile other = Open("H200, driver 13.1");
  EXPECT_EQ(other.Find("x"), std::nullopt);
  EXPECT_NE(other.Digest(), Open().Digest());
  other.Keep("x", "other");
  other.Save();
  EXPECT_EQ(Open().Find("x"), kBytes);
  EXPECT_EQ(Open("H200, driver 13.1").Find("x"), "other");
}

TEST_F(AlgorithmFileTest, WritesBesideWhatOthersWroteMeanwhile) {
  AlgorithmFile one = Open();
  AlgorithmFile two = Open();
  one.Keep("x", "1");
  one.Keep("y", "1");
  two.Keep("y", "2");
  two.Keep("z", "2");
  one.Save();
  two.Save();
  EXPECT_EQ(Open().Find("x"), "1");
  EXPECT_EQ(Open().Find("y"), "2");
  EXPECT_EQ(Open().Find("z"), "2");
}

TEST_F(AlgorithmFileTest, IsWholeAlthoughSeveralWriteAtOnce) {
  std::atomic<int> refused = 0;
  const auto write = [&](const std::string& name) {
    for (int i = 0; i < 50; ++i) {
      AlgorithmFile file(path_, "H200", Use::kMeasure, [&](const std::string&) { ++refused; });
      file.Keep(name + std::to_string(i), kBytes);
      file.Save();
    }
  };
  std::thread other(write, "a");
  write("b");
  other.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()), 1)
      << "nothing temporary is left";
}

TEST_F(AlgorithmFileTest, OnlyTakesWhereItIsNotToMeasure) {
  AlgorithmFile file = Open("H200", Use::kTakeOnly);
  EXPECT_FALSE(file.measures());
  file.Keep("x", kBytes);
  file.Save();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(AlgorithmFileTest, LeavesAloneWhatIsNotWhole) {
  MakeDirs(path_.parent_path());
  const std::string whole = EncodeAlgorithms({{"H200, driver 13.0: x", kBytes}});
  const auto sealed = [](const Json& document) { return SealedText(document) + "\n"; };
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "JSON"},
           {whole.substr(0, whole.size() / 2), "JSON"},
           {"{}", "has no kept algorithms"},
           {R"({"version": 1, "algorithms": {}})", "has no kept algorithms"},
           {"[1]", "has no kept algorithms"},
           {sealed({{"version", 2}}), "another version"},
           {sealed({{"version", "1"}}), "another version"},
           {sealed({{"version", 1}}), "has no kept algorithms"},
           {sealed({{"version", 1}, {"algorithms", {{"x", 7}}}}), "not made of hexadecimal digits"},
           {sealed({{"version", 1}, {"algorithms", {{"x", "0"}}}}), "not made of hexadecimal digits"},
           {sealed({{"version", 1}, {"algorithms", {{"x", "0g"}}}}), "not made of hexadecimal digits"},
           {std::string(AlgorithmFile::kMostBytes + 1, ' '), "and may have"}}) {
    SCOPED_TRACE(text.substr(0, 100));
    WriteFile(path_, text);
    ExpectRefused(why);
    EXPECT_EQ(ReadFile(path_), text);
  }
}

TEST_F(AlgorithmFileTest, LeavesAloneWhatIsNoFile) {
  MakeDirs(path_);
  ExpectRefused("is a folder");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused("is a named pipe");
  EXPECT_TRUE(fs::is_fifo(path_));
  fs::remove(path_);
  WriteFile(dir_ / "elsewhere", EncodeAlgorithms({}));
  fs::create_symlink(dir_ / "elsewhere", path_);
  ExpectRefused("is a symbolic link");
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(AlgorithmFileTest, FindsEveryBitThatIsAnother) {
  const KeptAlgorithms kept = {{"H200: a product", kBytes}, {"H200: another", std::string(64, 'a')}};
  testing::ExpectFlipsFound("kept algorithms", EncodeAlgorithms(kept), 500, [](const std::string& text) {
    try {
      return EncodeAlgorithms(DecodeAlgorithms(text, "cublaslt.json"));
    } catch (const Error& error) {
      return testing::kRefused + error.message();
    }
  });
}

TEST_F(AlgorithmFileTest, SaysWhereItCannotBeWrittenAndGoesOn) {
  WriteFile(dir_ / "file", "no folder");
  path_ = dir_ / "file" / "cublaslt.json";
  AlgorithmFile file = Open();
  EXPECT_TRUE(notes_.empty());
  file.Keep("x", kBytes);
  file.Save();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("are not kept")));
  EXPECT_EQ(file.Find("x"), kBytes);
}

TEST_F(AlgorithmFileTest, BeginsAnewWhereThereWouldBeTooMuch) {
  AlgorithmFile file = Open();
  file.Keep("x", std::string(AlgorithmFile::kMostBytes / 2 - 1000, 'x'));
  file.Save();
  EXPECT_NE(Open().Find("x"), std::nullopt);
  AlgorithmFile next = Open();
  next.Keep("y", std::string(1000, 'y'));
  next.Save();
  EXPECT_EQ(Open().Find("x"), std::nullopt);
  EXPECT_EQ(Open().Find("y"), std::string(1000, 'y'));
  EXPECT_TRUE(notes_.empty());
}

}  // namespace
}  // namespace ridgeline::engine
