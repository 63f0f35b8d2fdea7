// Evidence about a job that means the same from every launcher.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ridgeline::plugin {

using Evidence = std::map<std::string, std::string>;

// Adds what the scheduler knows better than the job's own results. `end`: one of the contract's (run.h).
void AddEnd(const std::string& end, const std::string& message, const std::string& hint, Evidence& evidence);

// Adds the end `infrastructure`, which the point did not cause. `reason`: one of the contract's (run.h).
void AddInfrastructure(const std::string& reason, const std::string& message, const std::string& hint,
                       Evidence& evidence);

// Adds how a process ended: by `signal`, or with `exit_code` if `signal` is 0.
void AddExit(int exit_code, int signal, Evidence& evidence);

// Adds what the job is billed: so many nodes for so many seconds each, and at most so many more seconds.
void AddBill(int64_t nodes, int64_t seconds, int64_t may_come_s, Evidence& evidence);

// Adds how long the job waited, unless one of the times is unknown (0).
void AddQueueWait(int64_t submitted_unix_s, int64_t started_unix_s, Evidence& evidence);

// Adds "log_tail", the last of `log`, unless that is empty.
void AddLogTail(const std::string& log, Evidence& evidence);

}  // namespace ridgeline::plugin
