#include "slurm/meaning.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridgeline/lines.h"
#include "slurm/render.h"

namespace ridgeline::slurm {
namespace {

constexpr std::string_view kTheirLimits =
    "`sacctmgr show qos` and `sacctmgr show association user=$USER` have the limits";
constexpr std::string_view kYours = "`sacctmgr show association user=$USER` lists yours";
constexpr std::string_view kPartitionsLimits = "`scontrol show partition` has the limits";

// slurmd's own numbers, whose lower bits look like a signal. There is no log then.
constexpr int kNoOutput = 53;
constexpr int kPrologFailed = 54;
int SignalOf(int exit_status) { return exit_status & 0x7f; }

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <typename Phrases>
bool ContainsAny(std::string_view text, const Phrases& phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) { return Contains(text, phrase); });
}

std::string LowerWithoutBlanks(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// Returns a line of Slurm's tools without the speaker: "words" for "sbatch: error: words".
std::string_view WithoutSpeaker(std::string_view line) {
  const size_t error = line.find(": error: ");
  if (error != std::string_view::npos && line.substr(0, error).find(' ') == std::string_view::npos) {
    line.remove_prefix(error + std::string_view(": error: ").size());
  }
  constexpr std::string_view kFailed = "Batch job submission failed: ";
  if (line.starts_with(kFailed)) line.remove_prefix(kFailed.size());
  return line;
}

// Slurm's words for a refusal without a number of its own, and also for no answer.
constexpr std::string_view kUnspecified = "Unspecified error";

// Returns the text between the two, unless that is too long; empty if they are missing.
std::string_view Between(std::string_view text, std::string_view before, std::string_view behind) {
  const size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  const size_t end = text.find(behind);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

// The cause according to our own script (render.h).
Cause OfOurScript(std::string_view line) {
  const std::string_view node = Between(line, kNotStartedBegin, kNotStartedMiddle);
  const std::string_view reason = Between(line, kNotStartedMiddle, kNotStartedEnd);
  if (!line.starts_with(kNotStartedBegin) || (reason != "start" && reason != "node" && reason != "image")) return {};
  const std::string_view words = line.substr(line.find(kNotStartedEnd) + kNotStartedEnd.size());
  return {std::string(reason), std::string(words), "the end of the job's log has more", std::string(node)};
}

// The cause according to Slurm, pyxis or Apptainer.
Cause OfSlurm(std::string_view line) {
  const std::string words(line);
  if (Contains(line, "execve(): ") && Contains(line, "/slurm_script: ")) {
    return {"node", "the node could not start the job's script: " + words, "see slurmd's log on that node"};
  }
  if (Contains(line, "Task launch for ") && Contains(line, " failed on node ")) {
    return {"node", words, "`sinfo -R` says why nodes are down", std::string(Between(line, " failed on node ", ":"))};
  }
  static constexpr std::array<std::string_view, 4> kNoStep = {"Unable to create step", "nable to confirm allocation",
                                                              "plugin name for mpi/", "context for mpi/"};
  if (line.starts_with("srun: error: ") && ContainsAny(line, kNoStep)) {
    return {"start", words, "see launch: slurm: srun, and the end of the job's log"};
  }
  if (Contains(line, "couldn't chdir to")) {
    return {"node", words, "the folder that the run was started in must be there on every node"};
  }
  if (Contains(line, "unrecognized option") && Contains(line, "container-image")) {
    return {"start", "srun knows no containers here: pyxis is not installed", "see launch: slurm: container_runtime"};
  }
  if (Contains(line, "pyxis: ") && Contains(line, "error: ")) {
    static constexpr std::array<std::string_view, 6> kOfTheImage = {"import",   "image",    "pull",
                                                                    "manifest", "download", "squashfs"};
    return {ContainsAny(line, kOfTheImage) ? "image" : "start", words, "see launch: slurm: container"};
  }
  if (line.starts_with("FATAL: ")) return {"image", words, "Apptainer's words; see launch: slurm: container"};
  if (Contains(line, "slurmstepd") && Contains(line, "execve(): ")) {
    return {"start", words, "the job's programs and files must exist on every node"};
  }
  return {};
}

}  // namespace

const std::vector<Meaning>& Meanings() {
  using enum plugin::Phase;
  static const std::vector<Meaning> kMeanings = {
      {"PENDING", kQueued, {}, "", ""},
      {"REQUEUED", kQueued, {}, "", ""},
      {"REQUEUE_FED", kQueued, {}, "", ""},
      {"REQUEUE_HOLD", kQueued, {}, "", ""},
      {"SPECIAL_EXIT", kQueued, {}, "", ""},
      {"RESV_DEL_HOLD", kQueued, {}, "", ""},
      {"CONFIGURING", kQueued, {}, "", ""},
      {"POWER_UP_NODE", kQueued, {}, "", ""},
      {"RUNNING", kRunning, {}, "", ""},
      {"COMPLETING", kRunning, {}, "", ""},
      {"SUSPENDED", kRunning, {}, "", ""},
      {"STOPPED", kRunning, {}, "", ""},
      {"SIGNALING", kRunning, {}, "", ""},
      {"STAGE_OUT", kRunning, {}, "", ""},
      {"RESIZING", kRunning, {}, "", ""},
      {"UPDATE_DB", kRunning, {}, "", ""},
      {"EXPEDITING", kRunning, {}, "", ""},
      {"COMPLETED", kEnded, {}, "", ""},
      // Is about the script: only `exec` knows whether a trainer is at fault, and then it ends well.
      {"FAILED", kEnded, {}, "the job's script failed", "see the end of its log"},
      {"LAUNCH_FAILED", kEnded, Infrastructure("start"), "Slurm could not start the job on its node",
       "see slurmd's log on that node; a prolog of the site's that fails is one cause"},
      {"RECONFIG_FAIL", kEnded, Infrastructure("node"), "the node could not be configured for the job",
       "see slurmd's log on that node"},
      {"BOOT_FAIL", kEnded, Infrastructure("node"), "the node could not be booted",
       "`sinfo -R` says why nodes are down"},
      {"NODE_FAIL", kEnded, Infrastructure("node"), "a node of the job failed", "`sinfo -R` says why nodes are down"},
      {"CANCELLED",
       kEnded,
       {"cancelled"},
       "the job was cancelled in Slurm",
       "`ridgeline run` with the same sweep runs it again"},
      {"REVOKED", kEnded, Infrastructure("lost"), "another cluster of the federation took the job",
       "name one as launch: slurm: clusters"},
      {"TIMEOUT",
       kEnded,
       {"timeout"},
       "the job ran past its time limit in Slurm",
       "raise launch: slurm: time, or time_limit"},
      {"DEADLINE", kEnded, {"timeout"}, "the job passed its deadline in Slurm", "raise the deadline"},
      {"PREEMPTED", kEnded, Infrastructure("preempted"), "Slurm gave the job's nodes to another job",
       "with checkpoint: {dir: …}, a point continues where it stopped"},
      {"OUT_OF_MEMORY",
       kEnded,
       {"oom_host"},
       "the job used more memory than Slurm gave it",
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
      Wait{"jobhelduser", "held by its owner", "`scontrol release` with its id lets it go"},
      Wait{"jobheldadmin", "held by an administrator", "ask who runs this cluster"},
      Wait{"partitiondown", "its partition is down", "`sinfo -s` lists partitions"},
      Wait{"partitioninactive", "its partition is inactive", "`sinfo -s` lists partitions"},
      Wait{"nodedown", "a node it asks for is down", "`sinfo -R` says why"},
      // Before a maintenance window, a shorter job may fit in. This one starts afterwards.
      Wait{"reqnodenotavailreservedformaintenance", "its nodes are reserved for maintenance",
           "it starts afterwards; a shorter launch: time_limit may fit in before"},
      // Drained, down or reserved. If a busy node would do for the job, Slurm says Resources instead.
      Wait{"reqnodenotavail", "the nodes it may go to are not available", "`sinfo -R` says why", {}, /*no_node=*/true},
      Wait{"nodesrequiredforjobaredown", "nodes it asks for are down, drained or reserved", "`sinfo -R` says why"},
      Wait{"reservationdeleted", "its reservation was deleted", "`scontrol show reservation` lists those there are",
           Infrastructure("rights"), /*no_node=*/false, /*in_any_partition=*/true},
      Wait{"reservation", "its reservation has not begun, or is full", "`scontrol show reservation` says when"},
      Wait{"licenses", "the licenses it asks for are in use", "`scontrol show licenses` has them"},
      Wait{"badconstraints", "no node can ever meet what it asks for",
           "see launch: slurm: constraint, gpus, gres, nodes, memory", Infrastructure("limit")},
      Wait{"partitionnodelimit", "it asks for more nodes than its partition gives", kPartitionsLimits,
           Infrastructure("limit")},
      Wait{"partitiontimelimit", "it asks for more time than its partition gives",
           "`scontrol show partition` has the limits; lower launch: slurm: time", Infrastructure("limit")},
      Wait{"partitionconfig", "it asks for what its partition does not give", kPartitionsLimits,
           Infrastructure("limit")},
      Wait{"maxmemperlimit", "it asks for more memory than its partition gives", kPartitionsLimits,
           Infrastructure("limit")},
      Wait{"dependencyneversatisfied", "it depends on a job that will not end as asked",
           "see launch: slurm: dependency", Infrastructure("start"), /*no_node=*/false, /*in_any_partition=*/true},
      Wait{"invalidaccount", "its account is not valid", kYours, Infrastructure("rights"), /*no_node=*/false,
           /*in_any_partition=*/true},
      Wait{"accountnotallowed", "its partition is not for its account", kYours, Infrastructure("rights")},
      Wait{"invalidqos", "its QOS is not valid", kYours, Infrastructure("rights"), /*no_node=*/false,
           /*in_any_partition=*/true},
      Wait{"qosnotallowed", "its partition or account is not for its QOS", kYours, Infrastructure("rights")},
      Wait{"launchfailedrequeuedheld", "it could not be started, and Slurm holds it",
           "see slurmd's log on its node; a prolog of the site's that fails is one cause", Infrastructure("start"),
           /*no_node=*/false, /*in_any_partition=*/true},
      Wait{"jobholdmaxrequeue", "it was requeued too often, and Slurm holds it", "see slurmd's log on its node",
           Infrastructure("start"), /*no_node=*/false, /*in_any_partition=*/true},
  };
  static constexpr Wait kLimitOfAJob = {"", "it asks for more than its QOS or association gives any job", kTheirLimits,
                                        Infrastructure("limit")};
  static constexpr Wait kLimit = {"", "its QOS or association gives no more at once", kTheirLimits};
  // These return as usage decays or an administrator gives more, but not when jobs end.
  static constexpr Wait kUsedUp = {"", "the minutes that its QOS or association may use are used up",
                                   "`sshare -l` says how many were used; ask who runs this cluster for more, or name "
                                   "another launch: slurm: account or qos"};
  static constexpr Wait kNotYours = {"", "its partition is not for this user",
                                     "ask who runs this cluster for leave to submit there; `sinfo -s` lists partitions",
                                     Infrastructure("rights")};
  const std::string plain = LowerWithoutBlanks(reason);
  if (Contains(plain, "permittedtousethispartition")) return &kNotYours;
  for (const Wait& wait : kWaits) {
    // Some reasons are followed by nodes' names and other details.
    if (plain == wait.reason || (plain.starts_with(wait.reason) && (Contains(wait.reason, "node")))) return &wait;
  }
  if (plain.starts_with("qos") || plain.starts_with("assoc") || plain == "accountingpolicy") {
    if (Contains(plain, "perjob") || plain.starts_with("qosmin")) return &kLimitOfAJob;
    return Contains(plain, "minutes") && !Contains(plain, "runminutes") ? &kUsedUp : &kLimit;
  }
  return nullptr;
}

bool IsHopeless(const Wait& wait, std::string_view partitions) {
  return !wait.end.empty() && (wait.in_any_partition || !Contains(partitions, ","));
}

Cause CauseOf(int exit_status, std::string_view reason, std::string_view log) {
  if (SignalOf(exit_status) == kNoOutput) {
    return {"node", "Slurm could not write the job's log on its node",
            "the folder that the database is in must be there on every node, and writable"};
  }
  std::vector<std::string_view> lines = SplitLines(log);
  std::reverse(lines.begin(), lines.end());
  for (const std::string_view line : lines) {
    if (Cause cause = OfOurScript(line); !cause.reason.empty()) return cause;
  }
  for (const std::string_view line : lines) {
    if (Cause cause = OfSlurm(line); !cause.reason.empty()) return cause;
  }
  // Output after these words is from a later attempt.
  const bool last_said = !lines.empty() && lines.front().starts_with("Error running slurm prolog");
  if (last_said || SignalOf(exit_status) == kPrologFailed) {
    return {"start", "a prolog of the site's failed on the job's node", "see slurmd's log there"};
  }
  if (LowerWithoutBlanks(reason) == "joblaunchfailure") {
    return {"start", "Slurm could not launch the job on its node", "see slurmd's log there"};
  }
  return {};
}

std::string SrunsWords(std::string_view log) {
  std::vector<std::string_view> lines = SplitLines(log);
  std::reverse(lines.begin(), lines.end());
  const auto said = std::ranges::find_if(lines, [](std::string_view line) {
    static constexpr std::array<std::string_view, 3> kOfTasks = {": task ", ": tasks ", "Terminating StepId="};
    return (line.starts_with("srun: error: ") || line.starts_with("srun: fatal: ")) && !ContainsAny(line, kOfTasks);
  });
  return said == lines.end() ? "" : std::string(*said);
}

bool IsOfNoScript(int exit_status) {
  return exit_status == 0 || SignalOf(exit_status) == kNoOutput || SignalOf(exit_status) == kPrologFailed;
}

Trouble TroubleOf(int64_t code, std::string_view words) {
  static constexpr std::array<std::string_view, 9> kBusy = {"temporarily unable to accept",
                                                            "Resource temporarily unavailable",
                                                            "Slurm job queue full",
                                                            "submissions are disabled",
                                                            "standby mode",
                                                            "MaxSubmitJob",
                                                            "GrpSubmitJob",
                                                            "Job limit",
                                                            "try again"};
  // After an error of the connection, the controller may have the job or not.
  static constexpr std::array<std::string_view, 22> kNoAnswer = {"Unable to contact slurm controller",
                                                                 "Unable to establish controller",
                                                                 "Socket timed out",
                                                                 "Zero Bytes were transmitted",
                                                                 "connection failure",
                                                                 "shutdown failure",
                                                                 "Message send failure",
                                                                 "Message receive failure",
                                                                 "Header lengths are longer",
                                                                 "missing socket",
                                                                 "Connection refused",
                                                                 "Connection reset",
                                                                 "Connection timed out",
                                                                 "No route to host",
                                                                 "Network is unreachable",
                                                                 "Broken pipe",
                                                                 "not connected",
                                                                 "transmit or rec",
                                                                 "Unexpected message",
                                                                 "Unspecified error",
                                                                 "authentication",
                                                                 "Interrupted system call"};
  // The job table is full, nodes or ports are busy, or the controller is on standby or takes no jobs.
  static constexpr std::array<int64_t, 7> kBusyCodes = {11, 2007, 2016, 2027, 2059, 2106, 2131};
  if (code == -1 || (code == 0 && Contains(words, kUnspecified))) {
    // The controller's own words, in particular those of a site's job_submit plugin, may contain anything.
    std::string said;
    for (const std::string_view line : SplitLines(words)) {
      if (Contains(line, ": error: ") && !Contains(line, kUnspecified)) said += std::string(line) + '\n';
    }
    return said.empty() || ContainsAny(said, kNoAnswer) ? Trouble::kNoAnswer : Trouble::kRefused;
  }
  if (std::find(kBusyCodes.begin(), kBusyCodes.end(), code) != kBusyCodes.end() || ContainsAny(words, kBusy)) {
    return Trouble::kBusy;
  }
  // These numbers are the controller's own refusals. Others come from the system and the connection.
  const bool refused =
      code != 0 ? (code >= 2000 && code < 5000) || code >= 7000 : !words.empty() && !ContainsAny(words, kNoAnswer);
  return refused ? Trouble::kRefused : Trouble::kNoAnswer;
}

std::string WordsOf(std::string_view lines) {
  std::vector<std::string_view> sentences;
  for (const std::string_view line : SplitLines(lines)) {
    const std::string_view sentence = WithoutSpeaker(line);
    if (!sentence.empty() && std::ranges::count(sentences, sentence) == 0) sentences.push_back(sentence);
  }
  if (sentences.size() > 1) std::erase(sentences, kUnspecified);
  return fmt::format("{}", fmt::join(sentences, "; "));
}

std::string_view MissingHere(std::string_view words) {
  if (Contains(words, "Munge encode failed")) {
    return "munged does not answer on this machine, and Slurm signs every call by it";
  }
  static constexpr std::array<std::string_view, 4> kNoConf = {"cannot read SLURM_CONF", "a configuration source",
                                                              "process configuration file", "cannot stat file"};
  if (ContainsAny(words, kNoConf)) return "there is no slurm.conf for this machine; SLURM_CONF may name one";
  return {};
}

bool IsLimitOfTheUsersJobs(std::string_view words) {
  return Contains(words, "MaxSubmitJobPerUser") || Contains(words, "AssocMaxSubmitJob");
}

const Refusal& RefusalOf(std::string_view words) {
  static constexpr std::array<Refusal, 12> kRefusals = {{
      {"nvalid partition", "rights", "`sinfo -s` lists partitions; name one as launch: slurm: partition", "partition"},
      {"nvalid account", "rights",
       "`sacctmgr show association user=$USER` lists yours; name one as launch: slurm: account", "account"},
      {"nvalid qos", "rights", "`sacctmgr show association user=$USER` lists yours; name one as launch: slurm: qos",
       "qos"},
      {"accounting/QOS policy", "limit", kTheirLimits},
      {"nvalid generic resource", "rights",
       "`sinfo -o '%P %G'` lists what nodes have; see launch: slurm: gpus and gres"},
      {"nvalid feature", "rights", "`sinfo -o '%P %f'` lists what nodes have; see launch: slurm: constraint",
       "constraint"},
      {"onfiguration", "limit", "ask for less: launch: slurm: nodes, cpus, memory, gpus, gres"},
      {"ermission", "rights", "ask who runs this cluster for leave to submit there"},
      {"not permitted", "rights", "ask who runs this cluster for leave to submit there; `sinfo -s` lists partitions"},
      {"reservation", "rights", "`scontrol show reservation` lists them; see launch: slurm: reservation",
       "reservation"},
      {"time limit", "limit", "`scontrol show partition` has the limits; lower launch: slurm: time"},
      {"", "start", ""},
  }};
  return *std::find_if(kRefusals.begin(), kRefusals.end(),
                       [&](const Refusal& refusal) { return Contains(words, refusal.part); });
}

}  // namespace ridgeline::slurm
