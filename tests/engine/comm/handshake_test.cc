// Who knows a secret, and how it is proved.
#include "engine/comm/gloo/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "base/error.h"
#include "base/files.h"
#include "base/secret_file.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/strangers.h"

namespace ridgeline::engine {
namespace {

using ::testing::HasSubstr;
using testing::Hear;
using testing::Overhear;
using testing::Overheard;
using testing::Say;

// Two ends of one connection.
struct Connection {
  Connection() {
    const Socket listener = Listen("127.0.0.1", 0);
    caller = *TryConnect("127.0.0.1", LocalPort(listener));
    pollfd fd{listener.fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    listens = Accept(listener);
  }
  Socket caller;
  Socket listens;
};

Answer::State AnswerUntilItEnds(const Socket& socket, const Terms& terms) {
  Answer answer;
  for (;;) {
    pollfd fd{socket.fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    const Answer::State state = answer.GoOn(socket, terms);
    if (state != Answer::State::kGoesOn) return state;
  }
}

class Handshake : public ::testing::Test {
 protected:
  Secret Of(const std::string& text) const {
    WritePrivateFile(dir_ / "secret", text);
    return Secret::Read(dir_ / "secret").value();
  }
  const TempDir dir_;
  const Terms terms_{Of(std::string(64, 's')), "a test"};
};

TEST_F(Handshake, BothEndsLearnThatTheOtherKnowsTheSecret) {
  for (const Terms& terms : {terms_, Terms{Secret(), "without one"}}) {
    Connection ends;
    auto proof = std::async(std::launch::async, [&] { return Prove(ends.caller, terms); });
    EXPECT_EQ(AnswerUntilItEnds(ends.listens, terms), Answer::State::kProved);
    EXPECT_EQ(proof.get(), Proof::kTaken);
    Say(ends.caller, "what comes next");
    EXPECT_EQ(Hear(ends.listens, 15), "what comes next") << "a byte too many was read";
  }
}

TEST_F(Handshake, AnotherSecretOrPurposeProvesNothingToEither) {
  for (const Terms& other :
       {Terms{Of(std::string(64, 't')), "a test"}, Terms{Secret(), "a test"}, Terms{terms_.secret, "another"}}) {
    Connection ends;
    auto proof = std::async(std::launch::async, [&] {
      const Proof proof = Prove(ends.caller, other);
      ends.caller = Socket();  // as a caller does that is not believed
      return proof;
    });
    EXPECT_EQ(AnswerUntilItEnds(ends.listens, terms_), Answer::State::kRefused);
    EXPECT_EQ(proof.get(), Proof::kWrong);
  }
}

TEST_F(Handshake, AnOverheardProofIsUseless) {
  const Overheard heard = Overhear(terms_);
  ASSERT_EQ(heard.proof.size(), testing::kProofBytes);
  Connection to_listener;
  Say(to_listener.caller, heard.call + heard.proof);
  EXPECT_EQ(AnswerUntilItEnds(to_listener.listens, terms_), Answer::State::kRefused);
  Connection to_caller;
  Say(to_caller.listens, heard.answer);
  EXPECT_EQ(Prove(to_caller.caller, terms_), Proof::kWrong);
}

TEST_F(Handshake, TheListenersOwnProofIsNotTheCallers) {
  Connection ends;
  auto state = std::async(std::launch::async, [&] { return AnswerUntilItEnds(ends.listens, terms_); });
  Say(ends.caller, Overhear(terms_).call);
  Say(ends.caller, Hear(ends.caller, testing::kAnswerBytes).substr(testing::kAnswerBytes - testing::kProofBytes));
  EXPECT_EQ(state.get(), Answer::State::kRefused);
}

TEST_F(Handshake, ACallerThatClosesOrSaysSomethingElseIsRefusedAtOnce) {
  for (const std::string& said : {std::string("G"), std::string("ridgeline ranks?"), std::string(100'000, 'x')}) {
    Connection ends;
    Say(ends.caller, said);
    EXPECT_EQ(AnswerUntilItEnds(ends.listens, terms_), Answer::State::kRefused) << said.substr(0, 20);
  }
  Connection ends;
  ends.caller = Socket();
  EXPECT_EQ(AnswerUntilItEnds(ends.listens, terms_), Answer::State::kRefused);
  Connection others;
  others.listens = Socket();
  EXPECT_EQ(Prove(others.caller, terms_), Proof::kNoAnswer);
}

// ---- the secret's file

TEST_F(Handshake, ASecretIsItsFilesBytes) {
  EXPECT_EQ(Of(std::string(32, 'a')).MacOf("x"), Of(std::string(32, 'a')).MacOf("x"));
  EXPECT_NE(Of(std::string(32, 'a')).MacOf("x"), Of(std::string(33, 'a')).MacOf("x"));
  EXPECT_NE(Of(std::string(32, 'a')).MacOf("x"), Of(std::string(32, 'a')).MacOf("y"));
  EXPECT_FALSE(Secret::Read(dir_ / "none"));
}

TEST(SecretFile, BelongsToItsOwnerAlone) {
  const auto known = [](uid_t owner, mode_t mode) {
    struct stat info {};
    info.st_uid = owner;
    info.st_mode = S_IFREG | mode;
    return WhoElseKnows(info, 1000);
  };
  EXPECT_EQ(known(1000, 0600), "");
  EXPECT_EQ(known(0, 0440), "") << "as Kubernetes mounts a pod's secrets";
  EXPECT_EQ(known(65534, 0600), "") << "as a user namespace shows an owner it does not know";
  EXPECT_EQ(known(1001, 0600), "belongs to another user (number 1001)");
  EXPECT_EQ(known(1001, 0640), "belongs to another user (number 1001)");
  EXPECT_EQ(known(1000, 0640), "is open to its group (mode 0640)");
  EXPECT_EQ(known(0, 0660), "is open to its group (mode 0660)");
  EXPECT_EQ(known(1000, 0604), "can be read by all (mode 0604)");
}

TEST_F(Handshake, SaysWhyAFileIsNoSecret) {
  const std::filesystem::path file = dir_ / "file";
  const auto refused = [&](const std::filesystem::path& path) -> std::string {
    try {
      Secret::Read(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
      EXPECT_THAT(e.hint(), HasSubstr("RIDGELINE_SECRET_FILE"));
      return e.message();
    }
    return "taken";
  };
  for (const size_t bytes : {0, 31, 4097}) {
    WritePrivateFile(file, std::string(bytes, 'x'));
    EXPECT_THAT(refused(file), HasSubstr("has " + std::to_string(bytes) + " bytes"));
  }
  WritePrivateFile(file, std::string(32, 'x'));
  EXPECT_EQ(refused(file), "taken");
  for (const mode_t mode : {0604, 0602, 0644}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_THAT(refused(file), HasSubstr("can be read by all (mode 06"));
  }
  ASSERT_EQ(::chmod(file.c_str(), 0440), 0);
  EXPECT_EQ(refused(file), "taken") << "a group's, as Kubernetes mounts it";
  EXPECT_THAT(refused(dir_.path()), HasSubstr("is not a regular file"));
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused(dir_ / "pipe"), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace ridgeline::engine
