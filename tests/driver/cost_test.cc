// What jobs cost, and the limit of that.
#include "driver/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A world of jobs that are billed: each for two machines, an hour at most, and half an hour in the end. A machine costs
// 10 USD an hour, so a job costs 20 USD at most, and 10 USD in the end.
class BilledJobs : public ::testing::Test {
 protected:
  BilledJobs() { Limit("max_cost: 1000 USD"); }
  void Limit(const std::string& limit) {
    world_.yaml = kSweep + "price: {node: 10 USD/h, date: 2026-11" + (limit.empty() ? "" : ", " + limit) + "}\n";
    world_.launcher.max_jobs = 4;
    world_.launcher.bill = true;
    world_.describe = [this](const sweep::Launch&, const std::string&) {
      sweep::JobDescription job;
      job.billed_nodes = 2;
      job.most_billed_s = says_ ? 3600 : 0;
      return job;
    };
    world_.launcher.on_poll = [this](FakeLauncher::Entry& entry) {
      most_live_ = std::max(most_live_, Live());
      if (entry.polls < 3) return;
      world_.Finish(entry, status_);
      entry.evidence = bill_;
    };
  }
  int64_t Live() const {
    return std::count_if(world_.launcher.jobs.begin(), world_.launcher.jobs.end(),
                         [](const auto& job) { return job.second.phase != launch::JobPhase::kEnded; });
  }
  Costs Found() {
    store::Store store = world_.OpenStore();
    return CostsOf(store, {{"test", kDefaultCampaign}}, sweep::ParseSweep(world_.yaml, "test.yaml").price);
  }

  const std::string kSweep =
      "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2, 3, 4, 5]}\n"
      "launch: {launcher: fake}\n";
  World world_;
  bool says_ = true;
  RunStatus status_ = RunStatus::kOk;
  std::map<std::string, std::string> bill_ = {{"billed_nodes", "2"}, {"billed_s", "1800"}};
  int64_t most_live_ = 0;
};

TEST_F(BilledJobs, StopBeforeTheLimitAndGoOnWithALargerOne) {
  Limit("max_cost: 45 USD");
  const RunSummary first = world_.Run();
  // Two jobs may cost 40 USD. When they have cost 20, one more may begin, then another, but not the fifth.
  EXPECT_EQ(most_live_, 2);
  EXPECT_EQ(first.ok, 3);
  EXPECT_EQ(first.no_result, 2);
  EXPECT_THAT(first.given_up, HasSubstr("another job could pass max_cost, 45.00 USD: 30.00 USD are or may be billed"));
  EXPECT_THAT(first.given_up, HasSubstr("may cost 20.00 USD"));
  EXPECT_EQ(world_.Count("SELECT count(*) FROM results"), 3) << "points that were left have no result";
  EXPECT_DOUBLE_EQ(Found().usd, 30);
  EXPECT_EQ(world_.Run().ok, 3) << "the same limit takes no more";
  Limit("max_cost: 60 USD");
  const RunSummary more = world_.Run();
  EXPECT_EQ(more.ok, 5);
  EXPECT_EQ(more.given_up, "");
  EXPECT_DOUBLE_EQ(Found().usd, 50);
}

TEST_F(BilledJobs, NeverPassTheLimitWhateverTheyAreBilled) {
  for (const char* billed_s : {"3600", "0", "1"}) {
    world_.launcher.jobs.clear();
    bill_["billed_s"] = billed_s;
    Limit("max_cost: 65 USD");
    world_.options.campaign = std::string("of-") + billed_s;
    world_.Run();
    store::Store store = world_.OpenStore();
    const Costs costs =
        CostsOf(store, {{"test", world_.options.campaign}}, sweep::ParseSweep(world_.yaml, "test.yaml").price);
    EXPECT_LE(costs.usd, 65);
    EXPECT_GE(costs.jobs, 3);
  }
}

TEST_F(BilledJobs, CostAlsoIfTheyFail) {
  Limit("max_cost: 45 USD");
  status_ = RunStatus::kCrashed;
  const RunSummary summary = world_.Run();
  EXPECT_EQ(summary.failed, 3);
  EXPECT_DOUBLE_EQ(Found().failed_usd, 30);
}

TEST_F(BilledJobs, ThatSayNothingCountAsTheDearest) {
  Limit("max_cost: 45 USD");
  bill_.clear();
  EXPECT_EQ(world_.Run().ok, 2);
  EXPECT_THAT(Found().silent, SizeIs(2));
  EXPECT_EQ(Found().usd, 0);
  bill_ = {{"billed_nodes", "2"}, {"billed_s", "a lot"}};
  EXPECT_FALSE(BillIn(bill_));
  EXPECT_FALSE(BillIn({{"billed_s", "5"}}));
  EXPECT_FALSE(BillIn({{"billed_s", "-5"}, {"billed_nodes", "2"}}));
}

TEST_F(BilledJobs, CountTheTimeForWhichMachinesAreKept) {
  Limit("max_cost: 45 USD");
  bill_["may_bill_s"] = "1800";
  EXPECT_EQ(world_.Run().ok, 2);
  EXPECT_DOUBLE_EQ(Found().usd, 20);
  EXPECT_DOUBLE_EQ(Found().may_come_usd, 20);
}

TEST_F(BilledJobs, CountBesideThoseOfAnotherSweep) {
  const auto as = [&](const std::string& name, const std::string& seeds) {
    Limit("max_cost: 45 USD");
    world_.yaml.replace(world_.yaml.find("test"), 4, name);
    world_.yaml.replace(world_.yaml.find("1, 2, 3, 4, 5"), 13, seeds);
  };
  as("before", "1");
  EXPECT_EQ(world_.Run().ok, 1);
  as("test", "2, 3, 4, 5");
  world_.options.costs_of = {{"test", kDefaultCampaign}, {"before", kDefaultCampaign}};
  const RunSummary summary = world_.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_THAT(summary.given_up, HasSubstr("45.00 USD: 30.00 USD are or may be billed"));
  store::Store store = world_.OpenStore();
  EXPECT_DOUBLE_EQ(CostsOf(store, world_.options.costs_of, sweep::ParseSweep(world_.yaml, "test.yaml").price).usd, 30);
  world_.options.costs_of.pop_back();
  EXPECT_EQ(world_.Run().ok, 3);
}

TEST_F(BilledJobs, NeedALauncherThatSaysWhatTheyMayCost) {
  says_ = false;
  try {
    world_.Run();
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(), HasSubstr("does not say what a job may be billed at most"));
  }
  says_ = true;
  world_.launcher.bill = false;
  EXPECT_THROW(world_.Run(), Error) << "a launcher whose jobs are not billed";
  EXPECT_THAT(world_.launcher.jobs, IsEmpty());
  Limit("");
  EXPECT_EQ(world_.Run().ok, 5) << "without a limit, nothing is asked";
}

TEST_F(BilledJobs, KeepTheirCostAndItsPredictionInTheStore) {
  for (const Point& point : sweep::Expand(sweep::ParseSweep(world_.yaml, "test.yaml")))
    world_.options.predicted_usd[point.id] = 9.5;
  world_.Run();
  EXPECT_EQ(world_.Count("SELECT count(*) FROM runs WHERE billed_usd = 10 AND predicted_usd = 9.5"), 5);
  const Costs costs = Found();
  EXPECT_EQ(costs.jobs, 5);
  EXPECT_DOUBLE_EQ(costs.node_hours, 5);
  EXPECT_DOUBLE_EQ(costs.predicted_usd.value_or(0), 47.5);
  const sweep::SweepPrice price = sweep::ParseSweep(world_.yaml, "test.yaml").price;
  EXPECT_THAT(CostLines(costs, price),
              ElementsAre("billed: 5 node-hours for 5 jobs, 50.00 USD at 10.00 USD an hour and node (2026-11, as the "
                          "sweep says); predicted for these jobs: 47.50 USD"));
}

// The second job is left, and ended without its driver.
TEST_F(BilledJobs, KeepTheirCostAndItsPredictionIfTheyAreCancelled) {
  for (const Point& point : sweep::Expand(sweep::ParseSweep(world_.yaml, "test.yaml")))
    world_.options.predicted_usd[point.id] = 9.5;
  world_.launcher.max_jobs = 1;
  world_.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.evidence = bill_; };
  int asked = 0;
  world_.interrupts = [&] { return asked++ > 5 ? 1 : 0; };
  EXPECT_TRUE(world_.Run().interrupted);
  EXPECT_EQ(world_.Count("SELECT count(*) FROM runs WHERE billed_usd = 10 AND predicted_usd = 9.5"), 1);
  asked = 0;
  world_.interrupts = [&] { return asked++ > 5 ? 2 : 0; };
  EXPECT_TRUE(world_.Run().left);
  store::Store store = world_.OpenStore();
  const auto live = store.LiveJobs("test");
  ASSERT_THAT(live, SizeIs(1));
  store.SetJobState(live[0].key, live[0].state, {{kPredictedUsd, "[8.5]"}}, 1);
  FakeClock clock;
  const sweep::SweepPrice price = sweep::ParseSweep(world_.yaml, "test.yaml").price;
  EXPECT_EQ(CancelJobs(store.LiveJobs("test"), store, world_.launcher, clock, price, {}, [] { return false; }).live, 0);
  EXPECT_EQ(world_.Count("SELECT count(*) FROM runs WHERE billed_usd = 10 AND predicted_usd = 8.5"), 1);
}

TEST(CostLines, SayDiscountsFailuresAndWhatIsNotKnown) {
  sweep::SweepPrice price;
  EXPECT_THAT(CostLines(Costs(), price), IsEmpty());
  Costs costs;
  costs.jobs = 1;
  costs.silent = {"a", "b"};
  costs.node_hours = 2;
  costs.used_node_hours = 4;
  costs.discounted_node_hours = 1;
  EXPECT_THAT(CostLines(costs, price), ElementsAre("billed: 2 node-hours for 1 job",
                                                   "discounted jobs had 4 node-hours, and were billed 75 % less",
                                                   "what 2 jobs were billed is not known, and is in no sum"));
  price.node_usd_per_hour = 3;
  price.date = "2026";
  costs.usd = 6;
  costs.failed_usd = 1.5;
  costs.may_come_usd = 1;
  EXPECT_THAT(CostLines(costs, price),
              Contains(HasSubstr("6.00 USD at 3.00 USD an hour and node (2026, as the sweep says); 1.50 USD of it")));
  EXPECT_THAT(CostLines(costs, price), Contains(HasSubstr("at most 1.00 USD more may be billed")));
  costs.other_prices = true;
  EXPECT_THAT(CostLines(costs, price), Contains(HasSubstr("6.00 USD at the prices that the sweep had at their ends;")));
  EXPECT_THAT(CostLines(costs, price), SizeIs(4));
  EXPECT_THAT(CostLines(costs, price), Not(Contains(HasSubstr("predicted"))));
}

}  // namespace
}  // namespace ridgeline::driver
