#include "common/evidence.h"

#include <algorithm>

#include "ridgeline/job_dir.h"

namespace ridgeline::plugin {

void AddEnd(const std::string& end, const std::string& message, const std::string& hint, Evidence& evidence) {
  evidence["end"] = end;
  evidence["message"] = message;
  if (!hint.empty()) evidence["hint"] = hint;
}

void AddInfrastructure(const std::string& reason, const std::string& message, const std::string& hint,
                       Evidence& evidence) {
  AddEnd("infrastructure", message, hint, evidence);
  evidence["reason"] = reason;
}

void AddExit(int exit_code, int signal, Evidence& evidence) {
  if (signal != 0) {
    evidence["signal"] = std::to_string(signal);
  } else {
    evidence["exit_code"] = std::to_string(exit_code);
  }
}

void AddBill(int64_t nodes, int64_t seconds, int64_t may_come_s, Evidence& evidence) {
  evidence["billed_nodes"] = std::to_string(nodes);
  evidence["billed_s"] = std::to_string(seconds);
  if (may_come_s > 0) evidence["may_bill_s"] = std::to_string(may_come_s);
}

void AddQueueWait(int64_t submitted_unix_s, int64_t started_unix_s, Evidence& evidence) {
  if (submitted_unix_s <= 0 || started_unix_s <= 0) return;
  evidence["queue_wait_s"] = std::to_string(std::max<int64_t>(started_unix_s - submitted_unix_s, 0));
}

void AddLogTail(const std::string& log, Evidence& evidence) {
  if (!log.empty()) evidence["log_tail"] = log.substr(log.size() - std::min(log.size(), kLogTailBytes));
}

}  // namespace ridgeline::plugin
