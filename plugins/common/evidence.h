// Evidence of a job that means the same whichever launcher gives it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ridgeline::plugin {

using Evidence = std::map<std::string, std::string>;

// What the scheduler knows better than the job's own results. `end`: one of the contract's (run.h).
void AddEnd(const std::string& end, const std::string& message, const std::string& hint, Evidence& evidence);

// The end `infrastructure`: nothing that the point did. `reason`: one of the contract's (run.h).
void AddInfrastructure(const std::string& reason, const std::string& message, const std::string& hint,
                       Evidence& evidence);

// How a process ended: by `signal`, or where that is 0 with `exit_code`.
void AddExit(int exit_code, int signal, Evidence& evidence);

// How long it waited; nothing where either moment is not known (0).
void AddQueueWait(int64_t submitted_unix_s, int64_t started_unix_s, Evidence& evidence);

// "log_tail": the last of `log`, where that says anything.
void AddLogTail(const std::string& log, Evidence& evidence);

}  // namespace ridgeline::plugin
