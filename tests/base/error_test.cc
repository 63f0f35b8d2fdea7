#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>

namespace ridgeline {
namespace {

TEST(Error, CarriesKindMessageAndHint) {
  const Error error(ErrorKind::kInvalidInput, "sweep.yaml:3:5: unknown key 'batchsize'", "did you mean 'batch_size'?");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
  EXPECT_EQ(error.message(), "sweep.yaml:3:5: unknown key 'batchsize'");
  EXPECT_EQ(error.hint(), "did you mean 'batch_size'?");
  EXPECT_STREQ(error.what(), "sweep.yaml:3:5: unknown key 'batchsize'\n  did you mean 'batch_size'?");
}

TEST(Error, WithoutAHintIsItsMessageAlone) {
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no sweep given").what(), "no sweep given");
}

TEST(Error, ACopyKeepsItsText) {
  const char* text = nullptr;
  std::exception_ptr kept;
  try {
    throw Error(ErrorKind::kInternal, "first", "second");
  } catch (const std::exception&) {
    kept = std::current_exception();
  }
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception& e) {
    text = e.what();
    EXPECT_STREQ(text, "first\n  second");
  }
}

TEST(Error, ExitCodesAreTheDocumentedOnes) {
  EXPECT_EQ(ExitCode(ErrorKind::kUsage), 2);
  EXPECT_EQ(ExitCode(ErrorKind::kInvalidInput), 2);
  EXPECT_EQ(ExitCode(ErrorKind::kInfrastructure), 3);
  EXPECT_EQ(ExitCode(ErrorKind::kOutOfMemory), 3);
  EXPECT_EQ(ExitCode(ErrorKind::kInternal), 3);
}

TEST(Error, ThrowErrnoSaysWhatTheSystemSaid) {
  errno = ENOSPC;
  try {
    ThrowErrno("cannot write a.json", "free some space");
    FAIL() << "it returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_EQ(error.message(), "cannot write a.json: No space left on device");
    EXPECT_EQ(error.hint(), "free some space");
  }
  for (const auto& [code, word] :
       {std::pair(ENOSPC, "df -i"), {EROFS, "read-only"}, {EACCES, "another user"}, {EMFILE, "ulimit -n"}}) {
    errno = code;
    try {
      ThrowErrno("cannot");
      FAIL() << "it returned";
    } catch (const Error& error) {
      EXPECT_NE(error.hint().find(word), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace ridgeline
