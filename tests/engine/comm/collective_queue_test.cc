#include "engine/comm/gloo/collective_queue.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

#include "base/error.h"
#include "engine/comm/communicator.h"

namespace ridgeline::engine {
namespace {

struct Seen {
  std::vector<int> order;
  std::latch* gate = nullptr;
};

// A call with a number as its attributes, and a run whose slab is a record of what was seen.
struct NumberedOperands {
  struct {
    Tensor none;
  } reads;
};
const Op<NumberedOperands, int> kNumbered{OpDef::Pass("numbered", BesideBudget("a test's"))};
OpCall CallOf(int number) { return {kNumbered, {}, number, {}}; }
CpuRun RunOver(Seen& seen) {
  CpuRun run;
  run.slab = reinterpret_cast<std::byte*>(&seen);
  return run;
}
Seen& SeenOf(const CpuRun& run) { return *reinterpret_cast<Seen*>(run.slab); }

void Note(const OpCall& call, const CpuRun& run, Communicator&) { SeenOf(run).order.push_back(call.attrs(kNumbered)); }
void NoteWhenOpen(const OpCall& call, const CpuRun& run, Communicator& communicator) {
  SeenOf(run).gate->wait();
  Note(call, run, communicator);
}
void Fail(const OpCall&, const CpuRun&, Communicator&) {
  throw Error(ErrorKind::kInfrastructure, "rank 7 closed the connection");
}

TEST(CollectiveQueue, RunsInTheOrderTheyWereBegunWhateverIsWaitedForFirst) {
  const auto communicator = MakeSelfCommunicator();
  CollectiveQueue queue(*communicator);
  Seen seen;
  std::vector<OpCall> calls;
  for (int i = 0; i < 200; ++i) calls.push_back(CallOf(i));
  for (int i = 0; i < 200; ++i) queue.Begin(i, Note, calls[static_cast<size_t>(i)], RunOver(seen));
  queue.Wait(199);
  queue.Wait(0);
  ASSERT_EQ(seen.order.size(), 200U);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(seen.order[static_cast<size_t>(i)], i);
}

TEST(CollectiveQueue, FliesWhileTheProgramGoesOn) {
  const auto communicator = MakeSelfCommunicator();
  std::latch gate(1);
  Seen seen;
  seen.gate = &gate;
  const OpCall one = CallOf(1);
  CollectiveQueue queue(*communicator);
  queue.Begin(0, NoteWhenOpen, one, RunOver(seen));
  gate.count_down();  // if Begin waited, this would never be reached
  queue.Wait(0);
  EXPECT_EQ(seen.order, std::vector<int>{1});
}

TEST(CollectiveQueue, AFlightIsFlownAgainEveryStep) {
  const auto communicator = MakeSelfCommunicator();
  CollectiveQueue queue(*communicator);
  Seen seen;
  const OpCall call = CallOf(5);
  for (int step = 0; step < 100; ++step) {
    queue.Begin(3, Note, call, RunOver(seen));
    queue.Wait(3);
    EXPECT_EQ(seen.order.size(), static_cast<size_t>(step) + 1);
  }
}

TEST(CollectiveQueue, ThrowsWhereItIsWaitedForWhatACollectiveThrew) {
  const auto communicator = MakeSelfCommunicator();
  CollectiveQueue queue(*communicator);
  Seen seen;
  const OpCall call = CallOf(0);
  queue.Begin(0, Fail, call, RunOver(seen));
  EXPECT_THROW(queue.Wait(0), Error);
  EXPECT_THROW(queue.Begin(1, Note, call, RunOver(seen)), Error);
  EXPECT_TRUE(seen.order.empty());
}

}  // namespace
}  // namespace ridgeline::engine
