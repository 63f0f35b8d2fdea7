#include "slurm/agent/submit.h"

#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <string_view>

#include "slurm/agent/failure.h"

namespace ridgeline::slurm_agent {
namespace {

struct Limit {
  const char* name;
  __rlimit_resource resource;
};
constexpr Limit kLimits[] = {{"CPU", RLIMIT_CPU},     {"FSIZE", RLIMIT_FSIZE},   {"DATA", RLIMIT_DATA},
                             {"STACK", RLIMIT_STACK}, {"CORE", RLIMIT_CORE},     {"RSS", RLIMIT_RSS},
                             {"NPROC", RLIMIT_NPROC}, {"NOFILE", RLIMIT_NOFILE}, {"MEMLOCK", RLIMIT_MEMLOCK},
                             {"AS", RLIMIT_AS}};

// Returns a number of the request; 0 if it is not given.
template <typename Integer>
Integer Number(const Json& request, const char* key) {
  const int64_t value = request.value(key, int64_t{0});
  if (value < 0 || static_cast<uint64_t>(value) > std::numeric_limits<Integer>::max()) {
    throw Failure(0, std::string("'") + key + "' is out of range: " + std::to_string(value));
  }
  return static_cast<Integer>(value);
}

// Returns whether a list of resource limits ("ALL", "NONE", "CORE,MEMLOCK") has this one.
bool Names(const char* list, std::string_view limit) {
  const std::string_view text = list;
  const char* separators = ", \t\n";
  for (size_t at = text.find_first_not_of(separators); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    std::string_view word = text.substr(at, end - at);
    if (word.starts_with("RLIMIT_")) word.remove_prefix(7);
    const std::string name(word);
    if (::strcasecmp(name.c_str(), "ALL") == 0 || ::strcasecmp(name.c_str(), std::string(limit).c_str()) == 0) {
      return true;
    }
    at = text.find_first_not_of(separators, end);
  }
  return false;
}

// Sets the variables that sbatch sets: slurmd and slurmstepd read them, and a job's script expects them. All others
// come from slurmd.
void AddWhatSbatchSets(std::map<std::string, std::string>& environment, const job_desc_msg_t& message) {
  if (message.work_dir != nullptr) environment["SLURM_SUBMIT_DIR"] = message.work_dir;
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) == 0) environment["SLURM_SUBMIT_HOST"] = host;
  environment["SLURM_PRIO_PROCESS"] = std::to_string(::getpriority(PRIO_PROCESS, 0));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  char octal[8];
  std::snprintf(octal, sizeof octal, "0%03o", static_cast<unsigned>(mask & 0777));
  environment["SLURM_UMASK"] = octal;
  if (message.name != nullptr) environment["SLURM_JOB_NAME"] = message.name;
  if (message.open_mode == OPEN_MODE_APPEND) environment["SLURM_OPEN_MODE"] = "a";
  if (message.num_tasks != NO_VAL) {
    environment["SLURM_NTASKS"] = environment["SLURM_NPROCS"] = std::to_string(message.num_tasks);
  }
  if (message.ntasks_per_node != NO_VAL16) {
    environment["SLURM_NTASKS_PER_NODE"] = std::to_string(message.ntasks_per_node);
  }
  if (message.cpus_per_task != NO_VAL16) {
    environment["SLURM_CPUS_PER_TASK"] = std::to_string(message.cpus_per_task);
  }
  const slurm_conf_t* conf = slurm_conf_lock();
  for (const Limit& limit : kLimits) {
    rlimit value{};
    if (Propagates(limit.name, conf->propagate_rlimits, conf->propagate_rlimits_except) &&
        ::getrlimit(limit.resource, &value) == 0) {
      environment[std::string("SLURM_RLIMIT_") + limit.name] = std::to_string(value.rlim_cur);
    }
  }
  slurm_conf_unlock();
}

}  // namespace

std::string TresPerNode(const std::string& gres) {
  std::string tres;
  for (size_t at = 0; at < gres.size();) {
    const size_t end = std::min(gres.find(',', at), gres.size());
    const std::string_view word = std::string_view(gres).substr(at, end - at);
    if (!word.empty()) {
      if (!tres.empty()) tres += ',';
      if (!word.starts_with("gres:")) tres += "gres:";
      tres += word;
    }
    at = end + 1;
  }
  return tres;
}

bool Propagates(const std::string& limit, const char* only, const char* except) {
  if (only != nullptr) return Names(only, limit);
  return except == nullptr || !Names(except, limit);
}

JobDescription::JobDescription(const Json& request) : request_(request) {
  slurm_init_job_desc_msg(&message_);
  if (!request.at("script").get_ref<const std::string&>().starts_with("#!")) {
    throw Failure(0, "the job's script does not start with '#!' and an interpreter");
  }
  message_.script = Text("script");
  message_.name = Text("name");
  message_.comment = Text("comment");
  message_.work_dir = Text("work_dir");
  if (message_.work_dir == nullptr) throw Failure(0, "'work_dir' is not said: Slurm would run the job in /tmp");
  message_.std_out = Text("output");
  message_.array_inx = Text("array");
  message_.dependency = Text("dependency");
  message_.partition = Text("partition");
  message_.account = Text("account");
  message_.qos = Text("qos");
  message_.reservation = Text("reservation");
  message_.features = Text("constraint");
  message_.req_nodes = Text("nodelist");
  message_.exc_nodes = Text("exclude");
  message_.std_in = Keep("/dev/null");
  message_.open_mode = OPEN_MODE_APPEND;
  message_.user_id = ::getuid();
  message_.group_id = ::getgid();
  message_.requeue = request.value("requeue", false) ? 1 : 0;
  if (const auto minutes = Number<uint32_t>(request, "time_minutes")) message_.time_limit = minutes;
  if (const auto signal = Number<uint16_t>(request, "signal")) {
    message_.warn_signal = signal;
    message_.warn_time = Number<uint16_t>(request, "signal_lead_s");
    message_.warn_flags = request.value("signal_batch_only", false) ? KILL_JOB_BATCH : 0;
  }
  FillSize();
  FillEnvironment();
}

char* JobDescription::Text(const char* key) {
  const auto found = request_.find(key);
  if (found == request_.end()) return nullptr;
  const auto& text = found->get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) throw Failure(0, std::string("'") + key + "' holds a NUL");
  if (text.empty()) return nullptr;
  return Keep(text);
}

char* JobDescription::Keep(const std::string& text) {
  return texts_.emplace_back(text.c_str(), text.c_str() + text.size() + 1).data();
}

void JobDescription::FillSize() {
  const auto nodes = Number<uint32_t>(request_, "nodes");
  const auto tasks_per_node = Number<uint16_t>(request_, "tasks_per_node");
  const auto cpus_per_task = Number<uint16_t>(request_, "cpus_per_task");
  auto tasks = Number<uint32_t>(request_, "tasks");
  if (tasks == 0) tasks = nodes * tasks_per_node;
  if (nodes != 0) message_.min_nodes = message_.max_nodes = nodes;
  if (tasks_per_node != 0) message_.ntasks_per_node = tasks_per_node;
  if (cpus_per_task != 0) {
    message_.cpus_per_task = cpus_per_task;
    message_.bitflags |= JOB_CPUS_SET;
  }
  if (tasks != 0) {
    message_.num_tasks = tasks;
    message_.bitflags |= JOB_NTASKS_SET;
  }
  if (tasks != 0 || cpus_per_task != 0) {
    message_.min_cpus = std::max(tasks, 1U) * std::max<uint32_t>(cpus_per_task, 1);
  }
  if (const auto memory_mib = Number<uint32_t>(request_, "memory_mib")) message_.pn_min_memory = memory_mib;
  if (request_.value("whole_memory", false)) message_.pn_min_memory = 0;
  if (request_.value("exclusive", false)) message_.shared = JOB_SHARED_NONE;
  const std::string tres = TresPerNode(request_.value("gres", ""));
  if (!tres.empty()) message_.tres_per_node = Keep(tres);
}

void JobDescription::FillEnvironment() {
  std::map<std::string, std::string> environment;
  for (const Json& entry : request_.value("environment", Json::array())) {
    const auto& text = entry.get_ref<const std::string&>();
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || text.find('\0') != std::string::npos) {
      throw Failure(0, "'environment' holds what is not NAME=VALUE: " + text);
    }
    environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  AddWhatSbatchSets(environment, message_);
  for (const auto& [name, value] : environment) {
    environment_.push_back(Keep(name + "=" + value));
  }
  message_.env_size = static_cast<uint32_t>(environment_.size());
  environment_.push_back(nullptr);
  message_.environment = environment_.data();
}

}  // namespace ridgeline::slurm_agent
