#include "slurm/agent/accounting.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "slurm/agent/failure.h"

namespace ridgeline::slurm_agent {
namespace {

struct ListDestroyer {
  void operator()(std::remove_pointer_t<SlurmList>* list) const { slurm_list_destroy(list); }
};
using OwnedList = std::unique_ptr<std::remove_pointer_t<SlurmList>, ListDestroyer>;

// Returns a list that points at the caller's strings.
OwnedList ListOf(std::vector<std::string>& words) {
  OwnedList list(slurm_list_create(nullptr));
  for (std::string& word : words) slurm_list_append(list.get(), word.data());
  return list;
}

std::vector<slurm_selected_step_t> WholeJobs(const std::vector<uint32_t>& ids) {
  std::vector<slurm_selected_step_t> jobs;
  for (const uint32_t id : ids) {
    slurm_selected_step_t& job = jobs.emplace_back();
    job.array_task_id = job.het_job_offset = NO_VAL;
    job.step_id.job_id = id;
    job.step_id.step_id = job.step_id.step_het_comp = NO_VAL;
  }
  return jobs;
}

class Connection {
 public:
  Connection() : connection_(slurmdb_connection_get(nullptr)) {
    if (connection_ == nullptr) throw Failure::OfLastCall();
  }
  ~Connection() { slurmdb_connection_close(&connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void* get() const { return connection_; }

 private:
  void* connection_;
};

// slurmdbd keeps one record for each run, so a requeued job has several.
std::vector<Row> LatestRuns(SlurmList records) {
  std::vector<Row> rows;
  std::map<std::tuple<uint32_t, std::string, std::string>, size_t> places;
  auto* const at = slurm_list_iterator_create(records);
  while (const void* record = slurm_list_next(at)) {
    Row row = RowOf(*static_cast<const slurmdb_job_rec_t*>(record));
    const auto [place, is_new] = places.try_emplace({row.array_job_id, row.tasks, row.name}, rows.size());
    if (is_new) {
      rows.push_back(std::move(row));
      continue;
    }
    Row& known = rows[place->second];
    row.restarts = known.restarts = known.restarts + 1;
    if (std::pair(row.submit_s, row.start_s) >= std::pair(known.submit_s, known.start_s)) known = std::move(row);
  }
  slurm_list_iterator_destroy(at);
  return rows;
}

}  // namespace

std::vector<Row> JobsInAccounting(const std::vector<std::string>& names, const std::vector<uint32_t>& ids, time_t since,
                                  const std::string& cluster) {
  if (names.empty() && ids.empty()) return {};  // libslurm takes an empty list for "any name"
  std::vector<std::string> names_text = names;
  std::vector<std::string> user = {std::to_string(::getuid())};
  std::vector<std::string> clusters = {cluster};
  const OwnedList name_list = ListOf(names_text);
  const OwnedList user_list = ListOf(user);
  const OwnedList cluster_list = ListOf(clusters);
  std::vector<slurm_selected_step_t> jobs = WholeJobs(ids);
  const OwnedList id_list(slurm_list_create(nullptr));
  for (slurm_selected_step_t& job : jobs) slurm_list_append(id_list.get(), &job);
  slurmdb_job_cond_t condition{};
  if (!names.empty()) condition.jobname_list = name_list.get();
  if (!ids.empty()) condition.step_list = id_list.get();
  condition.userid_list = user_list.get();
  condition.cluster_list = cluster_list.get();
  condition.usage_start = since;
  condition.flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_TRUNC;
  condition.db_flags = NO_VAL;
  const Connection connection;
  errno = 0;
  const OwnedList records(slurmdb_jobs_get(connection.get(), &condition));
  if (records == nullptr) throw Failure::OfLastCall();
  return LatestRuns(records.get());
}

}  // namespace ridgeline::slurm_agent
