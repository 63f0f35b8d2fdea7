// How ranks find each other, and what each learns if one of them fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/machine.h"
#include "engine/comm/gloo/rendezvous.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/comm/strangers.h"

namespace ridgeline::engine {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OnThreads;
using testing::PlaceOf;
using testing::Stranger;

// Short enough to wait for, long enough for a busy machine.
constexpr double kShortLimitS = 4;

void AllReduceOnce(Communicator& c) {
  double value = 1;
  c.AllReduce(std::span(&value, 1), Reduction::kSum);
}

TEST(Rendezvous, ExchangesTextsInRankOrderAgainAndAgain) {
  const ReservedPort port;
  const auto errors = OnThreads(4, [&](int64_t rank) {
    Rendezvous rendezvous(PlaceOf(rank, 4, port), [] {});
    for (int round = 0; round < 5; ++round) {
      const std::string suffix = std::string(static_cast<size_t>(round) * 20000, '\n') + "x";
      const auto texts = rendezvous.Exchange(std::to_string(rank) + suffix);
      ASSERT_EQ(texts.size(), 4U);
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(texts[i], std::to_string(i) + suffix);
    }
    EXPECT_FALSE(rendezvous.lost());
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Rendezvous, RanksThatDisagreeLearnWhoDiffersInWhat) {
  const ReservedPort port;
  std::atomic<int> invalid = 0;
  const auto errors = OnThreads(3, [&](int64_t rank) {
    const std::string rate = rank == 2 ? "0.1" : "0.3";
    try {
      ConnectGloo(PlaceOf(rank, 3, port), {{"learning_rate", rate}, {"trainer", "1"}});
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kInvalidInput) ++invalid;
      throw;
    }
  });
  EXPECT_EQ(invalid, 3);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("the ranks do not agree"), HasSubstr("rank 2 on "),
                                 HasSubstr("has learning_rate 0.1 (rank 0: 0.3)"), Not(HasSubstr("trainer")))));
}

TEST(Rendezvous, RanksOfDifferentWorldsAreInvalidOnEach) {
  const ReservedPort port;
  const auto errors = OnThreads(2, [&](int64_t rank) { ConnectGloo(PlaceOf(rank, 2 + rank, port), {}); });
  EXPECT_THAT(errors, Each(HasSubstr("rank 1 on ")));
  EXPECT_THAT(errors, Each(HasSubstr("has WORLD_SIZE 3, and rank 0 has 2")));
}

TEST(Rendezvous, TwoProcessesOfOneRankAreInvalidOnEach) {
  const ReservedPort port;
  const auto errors = OnThreads(3, [&](int64_t rank) { ConnectGloo(PlaceOf(rank == 2 ? 1 : rank, 3, port), {}); });
  EXPECT_THAT(errors, Each(HasSubstr("two processes are rank 1")));
}

TEST(Rendezvous, ARankThatDoesNotComeIsNamed) {
  const ReservedPort port;
  const auto errors = OnThreads(2, [&](int64_t rank) { ConnectGloo(PlaceOf(rank, 4, port, kShortLimitS), {}); });
  EXPECT_THAT(errors, Each(HasSubstr("ranks 2, 3 of 4 did not come within 4 s")));
}

TEST(Rendezvous, RankZeroThatDoesNotComeIsNamed) {
  const ReservedPort port;
  RankEnvironment place = PlaceOf(1, 2, port, 0.2);
  const auto errors = OnThreads(1, [&](int64_t) { ConnectGloo(place, {}); });
  EXPECT_THAT(errors[0], HasSubstr("rank 0 did not answer at 127.0.0.1:"));
}

TEST(Rendezvous, ARankThatAbandonsTheRunSaysWhyToAll) {
  const ReservedPort port;
  std::atomic<int> out_of_memory = 0;
  const auto errors = OnThreads(4, [&](int64_t rank) {
    const auto c = ConnectGloo(PlaceOf(rank, 4, port), {});
    try {
      AllReduceOnce(*c);
      if (rank == 2) return c->Abandon({ErrorKind::kOutOfMemory, "the plan needs 5 GB", "a hint"});
      for (;;) AllReduceOnce(*c);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kOutOfMemory && e.hint() == "a hint") ++out_of_memory;
      throw;
    }
  });
  EXPECT_EQ(out_of_memory, 3);
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("rank 2 on "), HasSubstr(" ended: the plan needs 5 GB")));
  }
}

TEST(Rendezvous, ARankThatKeepsTheOthersWaitingIsNamedByAll) {
  const ReservedPort port;
  std::latch others(3);
  const auto errors = OnThreads(4, [&](int64_t rank) {
    const auto c = ConnectGloo(PlaceOf(rank, 4, port, kShortLimitS), {});
    AllReduceOnce(*c);
    if (rank == 1) return others.wait();  // it lives, and computes forever
    try {
      AllReduceOnce(*c);
    } catch (...) {
      others.count_down();
      throw;
    }
  });
  for (const size_t rank : {0, 2, 3}) {
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("rank 1 on "), HasSubstr("did not answer within 4 s")));
  }
}

TEST(Rendezvous, ReadsItsSecretUntilItIsRankZeros) {
  const TempDir dir;
  WritePrivateFile(dir / "right", std::string(64, 'r'));
  for (const bool stale : {false, true}) {
    if (stale) WritePrivateFile(dir / "late", std::string(64, 's'));
    const ReservedPort port;
    const auto errors = OnThreads(3, [&](int64_t rank) {
      RankEnvironment place = PlaceOf(rank, 2, port);
      if (rank == 2) {  // node 0, which is late
        ::usleep(300'000);
        return WritePrivateFile(dir / "late", std::string(64, 'r'));
      }
      place.secret_file = dir / (rank == 0 ? "right" : "late");
      AllReduceOnce(*ConnectGloo(place, {}));
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    std::filesystem::remove(dir / "late");
  }
}

TEST(Rendezvous, ARankWithAnotherSecretIsToldSoAndCounted) {
  const TempDir dir;
  WritePrivateFile(dir / "0", std::string(64, '0'));
  WritePrivateFile(dir / "1", std::string(64, '1'));
  for (const char* other : {"1", "none", ""}) {
    const ReservedPort port;
    const auto errors = OnThreads(2, [&](int64_t rank) {
      RankEnvironment place = PlaceOf(rank, 2, port, kShortLimitS);
      if (rank == 0) place.secret_file = dir / "0";
      if (rank == 1 && *other != '\0') place.secret_file = dir / other;
      ConnectGloo(place, {});
    });
    EXPECT_THAT(errors[0], HasSubstr("rank 1 of 2 did not come within 4 s"));
    if (other == std::string("none")) {
      EXPECT_THAT(errors[1], AllOf(HasSubstr("/none did not come within 4 s")));
      continue;
    }
    EXPECT_THAT(errors[0], HasSubstr(" did not know the job's secret"));
    EXPECT_THAT(errors[1],
                AllOf(HasSubstr("a process at 127.0.0.1:"), HasSubstr(" answered with another secret than ")));
  }
}

TEST(Rendezvous, ARankWithAnotherSecretIsNamedEvenAfterItLeft) {
  const Socket listener = Listen("127.0.0.1", 0);
  std::atomic<bool> done = false;
  std::thread other([&] {
    bool answered = false;
    while (!done) {
      pollfd fd{listener.fd(), POLLIN, 0};
      if (::poll(&fd, 1, 20) <= 0) continue;
      const Socket caller = Accept(listener);
      if (answered) continue;  // closes the connection
      testing::Hear(caller, testing::kCallBytes);
      testing::Say(caller, testing::RandomBytes(testing::kAnswerBytes));
      answered = true;
    }
  });
  std::string error;
  try {
    Rendezvous({1, 2, "127.0.0.1", LocalPort(listener), 1.0}, [] {});
  } catch (const Error& e) {
    error = e.message();
  }
  done = true;
  other.join();
  EXPECT_THAT(error, HasSubstr(" answered with another secret than none"));
}

TEST(Rendezvous, WithoutASecretRanksMeetOnTheLoopbackInterfaceAlone) {
  const ReservedPort port;
  RankEnvironment place = PlaceOf(0, 2, port, kShortLimitS);
  place.master_address = "192.0.2.1";  // an address that nobody has (RFC 5737)
  try {
    Rendezvous rendezvous(place, [] {});
    ADD_FAILURE() << "it listens";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(), HasSubstr("without a secret"));
    EXPECT_THAT(e.hint(), HasSubstr("RIDGELINE_SECRET_FILE"));
  }
  place.secret_file = "/there is none";
  const auto errors = OnThreads(1, [&](int64_t) { Rendezvous(place, [] {}); });
  EXPECT_THAT(errors[0], HasSubstr("the ranks' secret /there is none is not there"));
}

// Reads the socket's own address. A call to another address may reach a program that has the same port there.
TEST(Rendezvous, ListensAtNoOtherAddressThanIsNamed) {
  const Socket second = Listen("127.0.0.2", 0);
  EXPECT_EQ(LocalAddress(second), "127.0.0.2");
  EXPECT_TRUE(TryConnect("127.0.0.2", LocalPort(second)));
  const Socket local = Listen("localhost", 0);
  EXPECT_THAT(LocalAddress(local), AnyOf("127.0.0.1", "::1"));
  EXPECT_TRUE(TryConnect("localhost", LocalPort(local)));
}

TEST(Rendezvous, IsClosedToAllWhenEveryRankHasCome) {
  const ReservedPort port;
  const auto errors = OnThreads(2, [&](int64_t rank) {
    const auto c = ConnectGloo(PlaceOf(rank, 2, port), {});
    AllReduceOnce(*c);
    EXPECT_FALSE(TryConnect("127.0.0.1", port.number()));
    AllReduceOnce(*c);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Rendezvous, StrangersAtARanksDataPortChangeNothing) {
  const ReservedPort port;
  const auto errors = OnThreads(2, [&](int64_t rank) {
    if (rank == 1) {
      const auto c = ConnectGloo(PlaceOf(rank, 2, port), {{"spec", "the same"}});
      EXPECT_GE(c->refused_connections(), 2 * (Stranger::kWays - 2));
      return;
    }
    // Rank 0 is the test, so it has all the time that it needs between learning the port and connecting to it.
    Rendezvous rendezvous(PlaceOf(rank, 2, port), [] {});
    rendezvous.Exchange(DumpJson({{"host", HostName()},
                                  {"address", "127.0.0.1"},
                                  {"first_address", "127.0.0.1"},
                                  {"identity", {{"spec", "the same"}}}}));
    const std::string place = rendezvous.Exchange("").at(1);
    std::string_view body = place;
    EXPECT_EQ(TakeText(body), "127.0.0.1");
    const int64_t data_port = TakeNumber(body);
    const Terms terms{rendezvous.secret(), "data from rank 0 to rank 1"};
    Stranger stranger(testing::Overhear(terms));
    for (int way = 0; way < 2 * Stranger::kWays; ++way) EXPECT_TRUE(stranger.Visit(data_port, way));
    const auto socket = TryConnect("127.0.0.1", data_port);
    EXPECT_EQ(Prove(*socket, terms), Proof::kTaken);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Rendezvous, StrangersBeforeTheRanksHaveMetChangeNothing) {
  const ReservedPort port;
  std::latch visited(2);
  const auto errors = OnThreads(3, [&](int64_t rank) {
    if (rank == 2) {
      Stranger stranger(testing::Overhear({Secret(), MeetingPlace::kPurpose}));
      while (!stranger.Visit(port.number(), 0)) ::usleep(1000);
      for (int way = 1; way < Stranger::kWays; ++way) EXPECT_TRUE(stranger.Visit(port.number(), way));
      visited.count_down();
      return;
    }
    if (rank == 1) visited.arrive_and_wait();
    const auto c = ConnectGloo(PlaceOf(rank, 2, port), {});
    for (int i = 0; i < 50; ++i) AllReduceOnce(*c);
    EXPECT_GE(c->refused_connections(), rank == 0 ? Stranger::kWays - 2 : 0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(RankEnvironment, ReadsTorchrunsVariables) {
  const std::map<std::string, std::string> good = {
      {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto set = [](const std::map<std::string, std::string>& variables) {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RIDGELINE_COMM_TIMEOUT_S",
                             "TORCHELASTIC_USE_AGENT_STORE", "LOCAL_WORLD_SIZE", "RIDGELINE_SECRET_FILE"}) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  };
  set({});
  EXPECT_FALSE(ReadRankEnvironment());
  EXPECT_TRUE(IsFirstRank());
  set(good);
  const auto place = ReadRankEnvironment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->world, 4);
  EXPECT_EQ(place->master_address, "node1");
  EXPECT_EQ(place->master_port, 29500);
  EXPECT_EQ(place->timeout_s, 300);
  EXPECT_TRUE(place->secret_file.empty());
  EXPECT_FALSE(IsFirstRank());
  ::setenv("RIDGELINE_SECRET_FILE", "/a/secret", 1);
  EXPECT_EQ(ReadRankEnvironment()->secret_file, "/a/secret");
  ::setenv("LOCAL_WORLD_SIZE", "2", 1);
  EXPECT_EQ(ReadRankEnvironment()->master_address, "node1");
  ::setenv("LOCAL_WORLD_SIZE", "4", 1);
  EXPECT_EQ(ReadRankEnvironment()->master_address, "127.0.0.1") << "all ranks are on this machine";
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_EQ(ReadRankEnvironment()->master_port, 29501);
  for (const auto& [name, value] : std::map<std::string, std::string>{{"RANK", "4"},
                                                                      {"WORLD_SIZE", "x"},
                                                                      {"MASTER_ADDR", ""},
                                                                      {"MASTER_PORT", "0"},
                                                                      {"RIDGELINE_COMM_TIMEOUT_S", "-1"}}) {
    auto bad = good;
    bad[name] = value;
    set(bad);
    try {
      ReadRankEnvironment();
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      EXPECT_THAT(e.message(), HasSubstr(name));
    }
  }
  set({});
}

}  // namespace
}  // namespace ridgeline::engine
