// What failures tell together: which nodes to leave out, and when to stop handing over jobs, for the infrastructure's
// sake or as the trainer fails on every point. A node is left out for as long as there are others: where there are
// none, giving up is what ends a run, and nothing else. Pure: ends go in, decisions come out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "driver/trainer_faults.h"

namespace ridgeline {

class FaultWatch {
 public:
  // give_up_after: as Launch has it. `trainer`: what all points came to so far; it must outlive this.
  FaultWatch(int64_t give_up_after, TrainerFaults& trainer) : give_up_after_(give_up_after), trainer_(trainer) {}

  // There is no other machine to which jobs could go: no node is blamed from here on.
  void HaveOneMachine() { one_machine_ = true; }

  struct Finding {
    std::string note;       // for people
    std::string withdrawn;  // what jobs that have not begun are withdrawn for
  };

  // How a point of a job ended, and what that tells beyond it. A job counts once, as its points share its fate; being
  // told to leave is no failure. A node is blamed for what is its own, reasons `node` and `lost`: images, folders and
  // programs are the sweep's, and fail on the next node too. Of several nodes nobody knows which it was.
  // `kept_off`: nodes that the job was to be kept off, separated by spaces. If it ran on one of these all the same,
  // there was no other node for it.
  std::vector<Finding> PointEnded(const std::string& job_key, const Collected& result,
                                  const std::string& kept_off = "");

  // Nodes on which two jobs failed, in the order in which that was seen, but for those that are used again.
  const std::vector<std::string>& avoid() const { return avoid_; }

  // The node of `avoid` that did well for longest is used again, for good, since no other can take its jobs: `why`, in
  // the scheduler's words. Where there is none, it is jobs of an earlier run that were kept off nodes.
  Finding UseAgain(const std::string& why);

  // The nodes that were ever set aside, with what failed there, for people: of many the first. Empty: none was.
  std::string SetAside() const;

  // Why no more jobs are handed over; empty: they are. One reason is that jobs failed alike `give_up_after` times in a
  // row. A node that is blamed counts once, however many jobs it failed, until it is used again for want of others; a
  // job that no node is blamed for counts for itself. Any end that is not the infrastructure's begins a new row; a job
  // that vanished is not of any. The other reason is that each of the first so many points crashed or was refused
  // alike.
  const std::string& given_up() const { return given_up_; }
  // Whether that is the trainer's own fault.
  bool is_trainers_fault() const { return is_trainers_fault_; }

 private:
  // The node that is to blame; empty: none is, or nobody knows which.
  std::string Blamed(const Collected& result) const;
  bool IsOneTooMany(const Collected& result);
  std::vector<Finding> OwnFault(const Collected& result);
  Finding GiveUp(std::string why);
  bool IsToBeAvoided(const Collected& result);

  struct OfANode {
    int64_t jobs = 0;  // that failed on it
    std::string last;  // what the last of them said
  };

  int64_t give_up_after_;
  bool one_machine_ = false;
  TrainerFaults& trainer_;
  std::set<std::string> failed_jobs_;
  std::map<std::string, OfANode> failed_on_;  // by node
  std::vector<std::string> avoid_;
  std::string kind_;                       // of the last failure
  int64_t alike_ = 0;                      // failures in a row that count
  std::set<std::string> failed_alike_on_;  // the nodes of these
  std::set<std::string> used_again_;
  std::string given_up_;
  bool is_trainers_fault_ = false;
};

}  // namespace ridgeline
