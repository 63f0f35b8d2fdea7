// Decides from failures which nodes to avoid, and when to stop submitting jobs: because the infrastructure keeps
// failing, or because the trainer fails on every point. A node is avoided only while there are others. Without others,
// only giving up ends a run. Pure: ends go in, decisions come out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "driver/trainer_faults.h"

namespace ridgeline::driver {

class FaultWatch {
 public:
  // `give_up_after` as in Launch. `trainer`: how all points have ended so far; it must outlive this object.
  FaultWatch(int64_t give_up_after, TrainerFaults& trainer) : give_up_after_(give_up_after), trainer_(trainer) {}

  // Says that jobs cannot go to another machine. From here on no node is blamed.
  void HaveOneMachine() { one_machine_ = true; }

  struct Finding {
    std::string note;       // for people
    std::string withdrawn;  // the reason given to jobs that are withdrawn before they begin
  };

  // Takes how a point of a job ended, and returns what follows from it. A job counts once, because its points share its
  // fate. A job that was told to leave has not failed. A node is blamed for reasons of its own, `node` and `lost`.
  // Images, folders and programs belong to the sweep, and fail on the next node too. In a job on several nodes, no node
  // is blamed, because nobody knows which one failed. `kept_off`: nodes that the job had to avoid, separated by spaces.
  // If it ran on one of them, there was no other node for it.
  std::vector<Finding> PointEnded(const std::string& job_key, const collect::Collected& result,
                                  const std::string& kept_off = "");

  // Nodes on which two jobs failed, in the order in which that was seen, without those that are used again.
  const std::vector<std::string>& avoid() const { return avoid_; }

  // Uses a node of `avoid` again, for good, because no other can take its jobs: the one set aside last. `why` is in
  // the scheduler's words. If `avoid` is empty, jobs of an earlier run were kept off nodes.
  Finding UseAgain(const std::string& why);

  // The nodes that were ever set aside, with what failed there, for people. Names the first few. Empty if there are
  // none.
  std::string SetAside() const;

  // Why no more jobs are submitted; empty: they are. One reason is that `give_up_after` jobs in a row failed alike. A
  // blamed node counts once, however many jobs it failed, until it is used again for want of others. A job for which no
  // node is blamed counts by itself. An end with a result of the point begins a new row, and a job that vanished counts
  // in no row. The other reason is that each of the first `give_up_after` points crashed or was refused alike.
  const std::string& given_up() const { return given_up_; }
  // Returns whether the trainer is the reason.
  bool is_trainers_fault() const { return is_trainers_fault_; }

 private:
  // The node to blame; empty: none is to blame, or it is not known which.
  std::string Blamed(const collect::Collected& result) const;
  bool IsOneTooMany(const collect::Collected& result);
  std::vector<Finding> OwnFault(const collect::Collected& result);
  Finding GiveUp(std::string why);
  bool IsToBeAvoided(const collect::Collected& result);

  struct OfANode {
    int64_t jobs = 0;  // jobs that failed on it
    std::string last;  // the message of the last of them
  };

  int64_t give_up_after_;
  bool one_machine_ = false;
  TrainerFaults& trainer_;
  std::set<std::string> failed_jobs_;
  std::map<std::string, OfANode> failed_on_;  // by node
  std::vector<std::string> avoid_;
  std::string kind_;                       // kind of the last failure
  int64_t alike_ = 0;                      // failures in a row that count
  std::set<std::string> failed_alike_on_;  // the nodes of these failures
  std::set<std::string> used_again_;
  std::string given_up_;
  bool is_trainers_fault_ = false;
};

}  // namespace ridgeline::driver
