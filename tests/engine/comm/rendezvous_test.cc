// How ranks find each other, and what each learns where one of them fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>

#include "engine/comm/gloo/rendezvous.h"
#include "tests/engine/comm/ranks.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OnThreads;
using testing::PlaceOf;

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
    if (rank == 1) return others.wait();  // it lives, and computes for ever
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

TEST(Rendezvous, AStrangersConnectionChangesNothing) {
  const ReservedPort port;
  std::latch connected(2);
  const auto errors = OnThreads(3, [&](int64_t rank) {
    if (rank == 2) {
      connected.wait();
      const auto stranger = TryConnect("127.0.0.1", port.number());
      ASSERT_TRUE(stranger);
      Send(*stranger, MessageKind::kLeave, "GET / HTTP/1.1");
      return;
    }
    const auto c = ConnectGloo(PlaceOf(rank, 2, port), {});
    connected.count_down();
    for (int i = 0; i < 50; ++i) AllReduceOnce(*c);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(RankEnvironment, ReadsTorchrunsVariables) {
  const std::map<std::string, std::string> good = {
      {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto set = [](const std::map<std::string, std::string>& variables) {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RIDGELINE_COMM_TIMEOUT_S",
                             "TORCHELASTIC_USE_AGENT_STORE"}) {
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
  EXPECT_FALSE(IsFirstRank());
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
}  // namespace ridgeline
