#include "slurm/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ridgeline/json_fault.h"
#include "slurm/agent/accounting.h"
#include "slurm/agent/failure.h"
#include "slurm/agent/rows.h"
#include "slurm/agent/submit.h"
#include "slurm/agent/versions.h"

namespace ridgeline::slurm_agent {
namespace {

// Deletes an object of libslurm's with its function for that.
template <auto Free>
struct Freed {
  void operator()(auto* message) const { Free(message); }
};

// Returns "22.05.8", as Slurm's own commands show it. (slurm_api_version() counts the library's interface instead.)
std::string LibraryVersion() {
  constexpr int kVersion = SLURM_VERSION_NUMBER;
  char text[32];
  std::snprintf(text, sizeof text, "%d.%02d.%d", SLURM_VERSION_MAJOR(kVersion), SLURM_VERSION_MINOR(kVersion),
                SLURM_VERSION_MICRO(kVersion));
  return text;
}

struct LocalConf {
  std::string cluster;
  std::string accounting_type;
  uint32_t controllers = 0;
};

// Reads slurm.conf as this machine has it, so that it is known while slurmctld is down.
LocalConf ReadLocalConf() {
  const slurm_conf_t* conf = slurm_conf_lock();
  LocalConf local{Text(conf->cluster_name), Text(conf->accounting_storage_type), conf->control_cnt};
  slurm_conf_unlock();
  return local;
}

bool HasAccounting(const LocalConf& conf) { return conf.accounting_type.ends_with("slurmdbd"); }

bool ControllerIsUp() {
  const uint32_t controllers = ReadLocalConf().controllers;
  for (uint32_t i = 0; i < controllers; ++i) {
    if (slurm_ping(static_cast<int>(i)) == SLURM_SUCCESS) return true;
  }
  return false;
}

// Other calls retry a dead slurmctld for seconds. A ping reports it at once.
void RequireController() {
  if (!ControllerIsUp()) throw Failure(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR);
}

}  // namespace

Agent::Agent() {
  // Without this check, libslurm would look for the file for a minute before it gives up.
  const char* conf = std::getenv("SLURM_CONF");
  if (conf != nullptr && ::access(conf, R_OK) != 0) {
    std::fprintf(stderr, "ridgeline-slurm-agent: cannot read SLURM_CONF=%s: %s\n", conf, std::strerror(errno));
    std::exit(1);
  }
  slurm_init(nullptr);
}

Agent::~Agent() { slurm_fini(); }

Json Agent::Answer(const std::string& line) {
  using Method = Json (Agent::*)(const Json&);
  static constexpr std::array<std::pair<std::string_view, Method>, 6> kRequests = {{{"facts", &Agent::Facts},
                                                                                    {"ping", &Agent::Ping},
                                                                                    {"submit", &Agent::Submit},
                                                                                    {"jobs", &Agent::Jobs},
                                                                                    {"finished", &Agent::Finished},
                                                                                    {"cancel", &Agent::Cancel}}};
  const auto error = [](int code, const char* text) -> Json { return {{"error", {{"code", code}, {"text", text}}}}; };
  try {
    const Json request = Json::parse(line);
    const auto& asked = request.at("ask").get_ref<const std::string&>();
    for (const auto& [name, method] : kRequests) {
      if (name == asked) return {{"ok", (this->*method)(request)}};
    }
    return error(0, ("no such request: " + asked).c_str());
  } catch (const Failure& e) {
    return error(e.code(), e.what());
  } catch (const Json::exception& e) {
    return error(0, ("a request it cannot read: " + JsonFault(e)).c_str());
  } catch (const std::exception& e) {
    return error(0, e.what());
  }
}

Json Agent::Facts(const Json&) {
  RequireController();
  slurm_conf_t* loaded = nullptr;
  if (slurm_load_ctl_conf(0, &loaded) != SLURM_SUCCESS) throw Failure::OfLastCall();
  const std::unique_ptr<slurm_conf_t, Freed<FreeControllerConf<slurm_conf_t>>> conf(loaded);
  return {{"client", LibraryVersion()},          {"controller", Text(conf->version)},
          {"cluster", Text(conf->cluster_name)}, {"max_array_size", conf->max_array_sz},
          {"max_job_count", conf->max_job_cnt},  {"message_timeout_s", conf->msg_timeout},
          {"min_job_age_s", conf->min_job_age},  {"accounting", HasAccounting(ReadLocalConf())}};
}

Json Agent::Ping(const Json&) { return {{"up", ControllerIsUp()}}; }

Json Agent::Submit(const Json& request) {
  JobDescription job(request);
  RequireController();
  submit_response_msg_t* response = nullptr;
  if (slurm_submit_batch_job(job.get(), &response) != SLURM_SUCCESS || response == nullptr) throw Failure::OfLastCall();
  const std::unique_ptr<submit_response_msg_t, Freed<slurm_free_submit_response_response_msg>> owned(response);
  std::string warning = response->error_code == 0 ? "" : slurm_strerror(static_cast<int>(response->error_code));
  if (response->job_submit_user_msg != nullptr) {
    if (!warning.empty()) warning += "; ";
    warning += response->job_submit_user_msg;
  }
  return {{"job_id", JobId(*response)}, {"warning", warning}};
}

Json Agent::Jobs(const Json&) {
  RequireController();
  job_info_msg_t* loaded = nullptr;
  if (slurm_load_jobs(jobs_as_of_, &loaded, SHOW_ALL | SHOW_LOCAL) != SLURM_SUCCESS) {
    if (errno == SLURM_NO_CHANGE_IN_DATA) return {{"changed", false}};
    throw Failure::OfLastCall();
  }
  const std::unique_ptr<job_info_msg_t, Freed<slurm_free_job_info_msg>> message(loaded);
  const uid_t we = ::getuid();
  Json rows = Json::array();
  for (uint32_t i = 0; i < message->record_count; ++i) {
    const slurm_job_info_t& job = message->job_array[i];
    if (job.user_id != we) continue;
    rows.push_back(RowOf(job).ToJson());
  }
  jobs_as_of_ = message->last_update;
  return {{"changed", true}, {"jobs", std::move(rows)}};
}

Json Agent::Finished(const Json& request) {
  const LocalConf conf = ReadLocalConf();
  if (!HasAccounting(conf)) throw Failure(ESLURM_NOT_SUPPORTED, "this cluster keeps no accounts (no slurmdbd)");
  Json rows = Json::array();
  for (const Row& row : JobsInAccounting(request.value("names", std::vector<std::string>()),
                                         request.value("ids", std::vector<uint32_t>()),
                                         request.at("since").get<time_t>(), conf.cluster)) {
    rows.push_back(row.ToJson());
  }
  return {{"jobs", std::move(rows)}};
}

Json Agent::Cancel(const Json& request) {
  const auto ids = request.at("ids").get<std::vector<std::string>>();
  RequireController();
  Json codes = Json::array();
  for (const std::string& id : ids) {
    errno = 0;
    const bool sent = slurm_kill_job2(id.c_str(), SIGKILL, 0, nullptr) == SLURM_SUCCESS;
    codes.push_back(sent ? 0 : Failure::OfLastCall().code());
    // If the controller died meanwhile, every other id would wait as long.
    if (!sent && !ControllerIsUp()) codes.insert(codes.end(), ids.size() - codes.size(), codes.back());
    if (codes.size() == ids.size()) break;
  }
  return {{"codes", std::move(codes)}};
}

void ForgetAmbientSettings() {
  constexpr std::string_view kKept[] = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"};
  std::vector<std::string> forgotten;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool kept = std::find(std::begin(kKept), std::end(kKept), name) != std::end(kKept);
    const bool ambient = name.starts_with("SLURM_") || name.starts_with("SBATCH_") || name.starts_with("SRUN_");
    if (ambient && !kept) forgotten.emplace_back(name);
  }
  for (const std::string& name : forgotten) ::unsetenv(name.c_str());
  ::setenv("SLURM_BITSTR_LEN", "0", 1);  // lists array tasks in full, not just in their first 64 characters
}

}  // namespace ridgeline::slurm_agent
