// What a sweep's jobs cost: what they were billed, as their launchers say (launcher.h: billed_s, …), at the price of a
// node that the sweep gives; and whether another job may pass the sweep's `max_cost`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "driver/driver.h"
#include "driver/job_table.h"
#include "driver/sweep_points.h"
#include "run/job.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::driver {

// What a launcher says that an ended job is billed, for each of its nodes.
struct Bill {
  double nodes = 1;
  double seconds = 0;
  double may_come_s = 0;  // at most so much more
  double used_s = 0;      // how long the job had the nodes, if that was billed at a discount; 0: not said
};
// Nothing if the evidence does not say, or says it in no numbers.
std::optional<Bill> BillIn(const std::map<std::string, std::string>& evidence);

// Evidence of an ended job in the store, in dollars: what it was billed, and a JSON list of what was predicted for each
// of its points, in the order of its points. A number that is not known is null.
inline constexpr const char* kBilledUsd = "billed_usd";
inline constexpr const char* kPredictedUsd = "predicted_usd";

// Adds to the evidence of a job that has ended what it cost, if its launcher says what it was billed and the sweep says
// what a node costs; and what was predicted for its points. `predicted_usd`: as in DriverOptions; if it is empty, what
// the store has of the job's prediction stays.
void AddCost(const sweep::SweepPrice& price, const std::map<std::string, double>& predicted_usd,
             collect::JobToCollect& job);

// The costs of ended jobs.
struct Costs {
  int64_t jobs = 0;                           // that say what they were billed
  std::vector<std::filesystem::path> silent;  // folders of jobs that do not, although they were submitted
  double usd = 0;
  bool other_prices = false;  // a part of `usd` is at another price than the sweep gives now
  double may_come_usd = 0;    // at most so much more
  double node_hours = 0;
  double used_node_hours = 0;           // of jobs that were billed at a discount
  double discounted_node_hours = 0;     // what these were billed
  double failed_usd = 0;                // part of `usd`, of jobs of which no point ended ok
  std::optional<double> predicted_usd;  // for the jobs that were billed; nothing if one of them has no prediction
};
Costs CostsOf(store::Store& store, const std::vector<SweepCampaign>& of, const sweep::SweepPrice& price);

// What CostsOf found, in lines for people. Empty if no job was billed.
std::vector<std::string> CostLines(const Costs& costs, const sweep::SweepPrice& price);

// Returns what a job of the dearest point may cost; 0 without a `max_cost`. Throws Error(kInvalidInput) if there is one
// and the launcher does not say what a job may cost.
double DearestUsd(const sweep::Sweep& sweep, const std::vector<Point>& points, const launch::Launcher& launcher);

// Decides before each job whether it may begin. Without a `max_cost`, each may.
class CostLimit {
 public:
  // Throws as DearestUsd does. The arguments must outlive this object.
  CostLimit(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts,
            const SweepPoints& points);

  // Returns whether what was billed, what the live jobs may cost, and what this job may cost, do not pass the limit
  // together. Live jobs may cost less in the end, so a refused job may have room later. If no job is live, it has none,
  // and the run stops.
  bool HasRoomFor(const Job& next, JobTable& live);
  // Adds what they cost to the evidence of jobs that have ended.
  void AddTo(std::vector<collect::JobToCollect>& jobs);
  // Why no more jobs are submitted; empty: they are.
  const std::string& stopped() const { return stopped_; }

 private:
  double MostUsd(const Job& job) const;
  double MostUsd(const std::filesystem::path& job_dir, const std::optional<Job>& job = std::nullopt);

  const sweep::Sweep& sweep_;
  const DriverOptions& options_;
  const DriverParts& parts_;
  const SweepPoints& points_;
  const std::vector<SweepCampaign> of_;  // whose costs count
  std::optional<Costs> costs_;
  std::map<std::filesystem::path, double> most_usd_;  // what jobs may cost, by their folders
  double dearest_usd_;                                // what the dearest job so far may cost
  std::string stopped_;
};

}  // namespace ridgeline::driver
