#include "driver/display.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace ridgeline::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The output of a display.
class Output {
 public:
  Output() : file_(::open_memstream(&text_, &size_)) {}
  ~Output() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

RunProgress Half() {
  RunProgress progress;
  progress.total = 2;
  progress.done = 1;
  return progress;
}

TEST(RunDisplay, SaysHowMuchAnotherMachineOrBuildMeasured) {
  Output out;
  RunDisplay display(out.file(), {"s", false, 80});
  display.Started({6, 4, 0, 0, 0, 3});
  EXPECT_EQ(out.text(), "s: 6 points, 4 were already measured, 3 of them by another machine or build\n");
}

TEST(RunDisplay, ShowsWhatItDoesBeforeTheFirstJob) {
  Output out;
  RunDisplay display(out.file(), {"s", true, 20});
  display.Working("planning 7 of 9000 points, about 3 s left");
  display.Working("planning 9 of 9000 points, about 3 s left");
  display.Working("");
  EXPECT_EQ(out.text(), "\r\x1b[Kplanning 7 of 9000…\r\x1b[Kplanning 9 of 9000…\r\x1b[K");
  Output plain;
  RunDisplay(plain.file(), {"s", false, 80}).Working("planning 7 of 9000 points");
  EXPECT_EQ(plain.text(), "");
}

TEST(RunDisplay, PlainOutputIsLinesAndNothingElse) {
  Output out;
  RunDisplay display(out.file(), {"s", false, 80});
  display.Started({6, 2, 0, 1, 1, 0, "memory_limit 8.00 GB"});
  EXPECT_FALSE(display.WantsProgress(1'000'000'000));
  display.PointEnded("batch_size=8", "ok  12 tokens/s", Half());
  display.Note("a note");
  EXPECT_EQ(out.text(),
            "s: 6 points, 2 were already measured, 1 predicted not to fit (skipped: memory_limit 8.00 GB), 1 job of an "
            "earlier run adopted\n[1/2] batch_size=8: ok  12 tokens/s\na note\n");
}

TEST(RunDisplay, TheLiveLineIsRedrawnAndNeverMixedWithOthers) {
  Output out;
  {
    RunDisplay display(out.file(), {"s", true, 80});
    EXPECT_TRUE(display.WantsProgress(1'000'000'000));
    EXPECT_FALSE(display.WantsProgress(1'000'000'001)) << "ten times a second is enough";
    EXPECT_TRUE(display.WantsProgress(1'200'000'000));
    display.Progress(Half());
    EXPECT_EQ(out.text(), "\r\x1b[K[1/2]");
    display.PointEnded("p", "ok", Half());
    EXPECT_EQ(out.text(), "\r\x1b[K[1/2]\r\x1b[K[1/2] p: ok\n");
    display.Progress(Half());
  }
  EXPECT_TRUE(out.text().ends_with("\r\x1b[K")) << "it leaves a clean line behind";
}

TEST(RunDisplay, HowAPointEndedIsColouredWhereThatIsAskedFor) {
  Output out;
  RunDisplay display(out.file(), {"s", false, 80, true});
  for (const char* outcome : {"ok  12 tokens/s", "oom_host  too much", "crashed"}) {
    display.PointEnded("p", outcome, Half());
  }
  EXPECT_EQ(out.text(),
            "[1/2] p: \x1b[32mok\x1b[0m  12 tokens/s\n[1/2] p: \x1b[33moom_host\x1b[0m  too much\n"
            "[1/2] p: \x1b[31mcrashed\x1b[0m\n");
}

TEST(RunDisplay, TheLineFollowsTheTerminalsWidth) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master), 0);
  ASSERT_EQ(::unlockpt(master), 0);
  std::FILE* terminal = std::fopen(::ptsname(master), "w");
  ASSERT_NE(terminal, nullptr);
  const auto shown = [&](unsigned short columns, int64_t done) {
    const winsize size{24, columns, 0, 0};
    EXPECT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
    RunProgress progress;
    progress.total = done;
    progress.live = {{std::string(300, 'x'), {}}};
    return progress;
  };
  {
    RunDisplay display(terminal, {"s", true, 80});
    std::string read(4096, '\0');
    for (const unsigned short columns : {60, 30, 120}) {
      display.Progress(shown(columns, columns));
      const auto bytes = ::read(master, read.data(), read.size());
      const std::string line = read.substr(0, static_cast<size_t>(bytes));
      EXPECT_EQ(line.size() - std::string("\r\x1b[K").size(), columns - 1u);
    }
  }
  std::fclose(terminal);
  ::close(master);
}

TEST(RunDisplay, ASweepsNameCannotCommandTheTerminal) {
  Output out;
  RunDisplay display(out.file(), {"\x1b]0;x\x07", false, 80});
  display.Started({1, 0, 0, 0, 0});
  EXPECT_THAT(out.text(), Not(HasSubstr("\x1b")));
}

TEST(DisplayOptions, AFileIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(DisplayOptions(file, "s").live);
  EXPECT_FALSE(DisplayOptions(file, "s").colour);
  std::fclose(file);
}

}  // namespace
}  // namespace ridgeline::driver
