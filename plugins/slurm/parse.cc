#include "slurm/parse.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

#include <fmt/format.h>

namespace ridgeline::slurm {
namespace {

using plugin::Json;

constexpr int64_t kMostTasks = 4'000'000;  // Slurm's own limit

// The text up to `separator`, which is taken off; all of it where there is none.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "N/A", "Unknown" and "None" stand for a time that is not known.
int64_t Time(std::string_view text) { return Number(text).value_or(0); }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) words.push_back(Take(text, separator));
  return words;
}

std::string LowerWithoutBlanks(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "3:0" (code:signal) -> a wait status.
int ExitStatus(std::string_view text) {
  const int64_t code = Number(Take(text, ':')).value_or(0);
  const int64_t signal = Number(text).value_or(0);
  return static_cast<int>(signal > 0 ? signal : code << 8);
}

}  // namespace

std::optional<std::vector<int64_t>> ParseTasks(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  text = Take(text, '%');
  if (text.ends_with(']')) text.remove_suffix(1);
  std::vector<int64_t> tasks;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::string_view part = Take(text, ',');
    std::string_view range = Take(part, ':');
    const std::optional<int64_t> step = part.empty() ? 1 : Number(part);
    const bool is_range = Contains(range, "-");
    const std::optional<int64_t> first = Number(Take(range, '-'));
    const std::optional<int64_t> last = is_range ? Number(range) : first;
    if (!first || !last || !step || *step < 1 || *last < *first || *last > kMostTasks) return std::nullopt;
    for (int64_t task = *first; task <= *last; task += *step) tasks.push_back(task);
  }
  return tasks;
}

std::string FormatTasks(const std::vector<int64_t>& tasks) {
  std::string text;
  for (size_t i = 0; i < tasks.size();) {
    size_t last = i;
    while (last + 1 < tasks.size() && tasks[last + 1] == tasks[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? std::to_string(tasks[i]) : fmt::format("{}-{}", tasks[i], tasks[last]);
    i = last + 1;
  }
  return text;
}

const char* const kSqueueFormat =
    "ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,RestartCnt:|,SubmitTime:|,StartTime:|,EndTime:|,NodeList:|,"
    "Reason:|,Name:|";

std::vector<Row> ParseSqueue(std::string_view text) {
  constexpr size_t kColumns = 11;
  std::vector<Row> rows;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Split(Take(text, '\n'), '|');
    if (words.size() != kColumns || !words[10].starts_with("rl-")) continue;
    const std::optional<int64_t> id = Number(words[0]);
    if (!id) continue;
    Row row;
    row.job_id = *id;
    if (words[1] != "N/A") {
      row.tasks = ParseTasks(words[1]);
      if (!row.tasks) continue;
    }
    row.state = words[2];
    row.exit_status = static_cast<int>(Number(words[3]).value_or(0));
    row.restarts = Number(words[4]).value_or(0);
    row.submitted_s = Time(words[5]);
    row.started_s = Time(words[6]);
    row.ended_s = Time(words[7]);
    row.nodes = words[8];
    row.reason = words[9];
    row.name = words[10];
    rows.push_back(std::move(row));
  }
  return rows;
}

const char* const kSacctFormat = "JobID,State,ExitCode,Submit,Start,End,NodeList,JobName";

std::vector<Row> ParseSacct(std::string_view text) {
  constexpr size_t kColumns = 8;
  std::vector<Row> rows;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Split(Take(text, '\n'), '|');
    if (words.size() != kColumns || !words[7].starts_with("rl-")) continue;
    std::string_view id = words[0];  // "12", "12_3", "12_[4-9%2]"
    Row row;
    const std::optional<int64_t> number = Number(Take(id, '_'));
    if (!number) continue;
    row.job_id = *number;
    if (!id.empty()) {
      row.tasks = ParseTasks(id);
      if (!row.tasks) continue;
    }
    std::string_view state = words[1];  // "CANCELLED by 1000"
    row.state = Take(state, ' ');
    row.exit_status = ExitStatus(words[2]);
    row.submitted_s = Time(words[3]);
    row.started_s = Time(words[4]);
    row.ended_s = Time(words[5]);
    row.nodes = words[6];
    row.name = words[7];
    rows.push_back(std::move(row));
  }
  return rows;
}

Row RowFromJson(const Json& row) {
  Row result;
  row.at(0).get_to(result.name);
  row.at(1).get_to(result.job_id);
  if (const auto tasks = row.at(2).get<std::string>(); !tasks.empty()) result.tasks = ParseTasks(tasks);
  row.at(3).get_to(result.state);
  row.at(4).get_to(result.reason);
  row.at(5).get_to(result.exit_status);
  row.at(6).get_to(result.restarts);
  row.at(7).get_to(result.submitted_s);
  row.at(8).get_to(result.started_s);
  row.at(9).get_to(result.ended_s);
  row.at(10).get_to(result.nodes);
  return result;
}

Facts ParseConfig(std::string_view scontrol_show_config) {
  Facts facts;
  while (!scontrol_show_config.empty()) {
    std::string_view value = Take(scontrol_show_config, '\n');
    const std::string_view name = Trim(Take(value, '='));
    value = Trim(value);
    std::string_view number = value;  // "10 sec"
    number = Take(number, ' ');
    if (name == "SLURM_VERSION") facts.version = value;
    if (name == "ClusterName") facts.cluster = value;
    if (name == "MaxArraySize") facts.max_array_size = Number(number).value_or(facts.max_array_size);
    if (name == "MaxJobCount") facts.max_job_count = Number(number).value_or(facts.max_job_count);
    if (name == "MessageTimeout") facts.message_timeout_s = Number(number).value_or(facts.message_timeout_s);
    if (name == "AccountingStorageType") facts.accounting = value == "accounting_storage/slurmdbd";
  }
  return facts;
}

const std::vector<Meaning>& Meanings() {
  using enum plugin::Phase;
  static const std::vector<Meaning> kMeanings = {
      {"PENDING", kQueued, "", "", ""},
      {"REQUEUED", kQueued, "", "", ""},
      {"REQUEUE_FED", kQueued, "", "", ""},
      {"REQUEUE_HOLD", kQueued, "", "", ""},
      {"SPECIAL_EXIT", kQueued, "", "", ""},
      {"RESV_DEL_HOLD", kQueued, "", "", ""},
      {"CONFIGURING", kQueued, "", "", ""},
      {"POWER_UP_NODE", kQueued, "", "", ""},
      {"RUNNING", kRunning, "", "", ""},
      {"COMPLETING", kRunning, "", "", ""},
      {"SUSPENDED", kRunning, "", "", ""},
      {"STOPPED", kRunning, "", "", ""},
      {"SIGNALING", kRunning, "", "", ""},
      {"STAGE_OUT", kRunning, "", "", ""},
      {"RESIZING", kRunning, "", "", ""},
      {"UPDATE_DB", kRunning, "", "", ""},
      {"EXPEDITING", kRunning, "", "", ""},
      {"COMPLETED", kEnded, "", "", ""},
      {"FAILED", kEnded, "crashed", "the job's script failed", "see the end of its log"},
      {"LAUNCH_FAILED", kEnded, "node_failed", "Slurm could not start the job on its node",
       "see slurmd's log on that node"},
      {"RECONFIG_FAIL", kEnded, "node_failed", "the node could not be configured for the job",
       "see slurmd's log on that node"},
      {"BOOT_FAIL", kEnded, "node_failed", "the node could not be booted", "`sinfo -R` says why nodes are down"},
      {"NODE_FAIL", kEnded, "node_failed", "a node of the job failed", "`sinfo -R` says why nodes are down"},
      {"CANCELLED", kEnded, "cancelled", "the job was cancelled in Slurm",
       "`ridgeline run` with the same sweep runs it again; where nobody did it, slurmd's log on its node says why"},
      {"REVOKED", kEnded, "cancelled", "another cluster of the federation took the job", ""},
      {"TIMEOUT", kEnded, "timeout", "the job ran past its time limit in Slurm",
       "raise launch: slurm: time, or time_limit"},
      {"DEADLINE", kEnded, "timeout", "the job passed its deadline in Slurm", "raise the deadline"},
      {"PREEMPTED", kEnded, "preempted", "Slurm gave the job's nodes to another job",
       "checkpoint: {dir: …} lets a point go on where it was"},
      {"OUT_OF_MEMORY", kEnded, "oom_host", "the job used more memory than Slurm gave it",
       "raise launch: slurm: memory, use more activation checkpointing, or a smaller batch"},
  };
  return kMeanings;
}

const Meaning& MeaningOf(std::string_view state) {
  const std::vector<Meaning>& meanings = Meanings();
  const auto find = [&](std::string_view name) {
    return std::find_if(meanings.begin(), meanings.end(),
                        [&](const Meaning& meaning) { return meaning.state == name; });
  };
  const auto it = find(state);
  return it == meanings.end() ? *find("RUNNING") : *it;
}

const Wait* WaitOf(std::string_view reason) {
  static constexpr std::array kWaits = {
      Wait{"jobhelduser", "held by its owner", "`scontrol release` with its id lets it go", ""},
      Wait{"jobheldadmin", "held by an administrator", "ask who runs this cluster", ""},
      Wait{"partitiondown", "its partition is down", "`sinfo -s` lists partitions", ""},
      Wait{"partitioninactive", "its partition is inactive", "`sinfo -s` lists partitions", ""},
      Wait{"nodedown", "a node it asks for is down", "`sinfo -R` says why", ""},
      Wait{"reqnodenotavail", "a node it asks for is not available", "`sinfo -R` says why", ""},
      Wait{"reservation", "its reservation has not begun", "`scontrol show reservation` says when", ""},
      Wait{"reservationdeleted", "its reservation was deleted", "", "cancelled"},
      Wait{"badconstraints", "no node can ever meet what it asks for",
           "see launch: slurm: constraint, gres, nodes, memory", "invalid"},
      Wait{"partitionnodelimit", "it asks for more nodes than its partition gives",
           "`scontrol show partition` has the limits", "invalid"},
      Wait{"partitiontimelimit", "it asks for more time than its partition gives",
           "`scontrol show partition` has the limits; lower launch: slurm: time", "invalid"},
      Wait{"partitionconfig", "it asks for what its partition does not give",
           "`scontrol show partition` has the limits", "invalid"},
      Wait{"dependencyneversatisfied", "it depends on a job that will not end as asked", "", "cancelled"},
      Wait{"invalidaccount", "its account is not valid", "`sacctmgr show association user=$USER` lists yours",
           "invalid"},
      Wait{"invalidqos", "its QOS is not valid", "`sacctmgr show association user=$USER` lists yours", "invalid"},
      Wait{"launchfailedrequeuedheld", "it could not be started, and Slurm holds it", "see slurmd's log on its node",
           "node_failed"},
      Wait{"jobholdmaxrequeue", "it was requeued too often, and Slurm holds it", "see slurmd's log on its node",
           "node_failed"},
  };
  const std::string plain = LowerWithoutBlanks(reason);
  if (plain.starts_with("nodesrequiredforjobaredown") || plain.starts_with("reqnodenotavail")) {
    return &*std::find_if(kWaits.begin(), kWaits.end(),
                          [](const Wait& wait) { return wait.reason == "reqnodenotavail"; });
  }
  const auto it = std::find_if(kWaits.begin(), kWaits.end(), [&](const Wait& wait) { return wait.reason == plain; });
  return it == kWaits.end() ? nullptr : &*it;
}

Trouble TroubleOf(int64_t code, std::string_view words) {
  // Errors of the connection leave open whether the controller has the job.
  static constexpr std::array<int64_t, 22> kConnection = {32,   104,  107,  110,  111,  1000, 1001, 1002,
                                                          1003, 1004, 1008, 1013, 1800, 1801, 1802, 1803,
                                                          5000, 5001, 5002, 5003, 5004, 5005};
  static constexpr std::array<std::string_view, 14> kNoAnswer = {"Unable to contact slurm controller",
                                                                 "Socket timed out",
                                                                 "Zero Bytes were transmitted",
                                                                 "connection failure",
                                                                 "Message send failure",
                                                                 "Message receive failure",
                                                                 "missing socket",
                                                                 "Connection refused",
                                                                 "Connection reset",
                                                                 "Connection timed out",
                                                                 "Broken pipe",
                                                                 "not connected",
                                                                 "transmit or rec",
                                                                 "Unexpected message"};
  static constexpr std::array<std::string_view, 5> kBusy = {
      "temporarily unable to accept", "Resource temporarily unavailable", "job submit limit", "Job limit", "try again"};
  constexpr int64_t kTableFull = 11;
  const auto said = [&](const auto& phrases) {
    return std::any_of(phrases.begin(), phrases.end(),
                       [&](std::string_view phrase) { return Contains(words, phrase); });
  };
  if (code == kTableFull || said(kBusy)) return Trouble::kBusy;
  if (std::find(kConnection.begin(), kConnection.end(), code) != kConnection.end() || said(kNoAnswer)) {
    return Trouble::kNoAnswer;
  }
  return Trouble::kRefused;
}

std::string HintFor(std::string_view words) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kHints = {{
      {"nvalid partition", "`sinfo -s` lists partitions; name one as launch: slurm: partition"},
      {"nvalid account", "`sacctmgr show association user=$USER` lists yours; name one as launch: slurm: account"},
      {"nvalid qos", "`sacctmgr show association user=$USER` lists yours; name one as launch: slurm: qos"},
      {"nvalid generic resource", "`sinfo -o '%P %G'` lists what nodes have; see launch: slurm: gres"},
      {"nvalid feature", "`sinfo -o '%P %f'` lists what nodes have; see launch: slurm: constraint"},
      {"node configuration is not available", "ask for less: launch: slurm: nodes, cpus, memory, gres"},
      {"ermission", "ask who runs this cluster for leave to submit there"},
      {"not permitted", "ask who runs this cluster for leave to submit there; `sinfo -s` lists partitions"},
      {"reservation", "`scontrol show reservation` lists them; see launch: slurm: reservation"},
      {"time limit", "`scontrol show partition` has the limits; lower launch: slurm: time"},
  }};
  for (const auto& [part, hint] : kHints) {
    if (Contains(words, part)) return std::string(hint);
  }
  return {};
}

}  // namespace ridgeline::slurm
