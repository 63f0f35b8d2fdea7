#include "slurm/render.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/shell.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::ShellQuote;

// Each task gets a copy of the script, which names every job of its array: beyond this, copies cost more than
// submissions.
constexpr int64_t kMostTasks = 1000;
constexpr int64_t kExecMib = 64;         // `ridgeline exec` beside the trainer
constexpr int64_t kWarningMarginS = 60;  // Slurm warns up to a minute late
constexpr int64_t kMostLeadS = 65535;    // of --signal
constexpr int64_t kMib = 1 << 20;

struct Resources {
  int64_t nodes;
  int64_t cpus;
  int64_t memory_mib;
  int64_t time_minutes;
  int64_t save_time_s;
  auto operator<=>(const Resources&) const = default;
};

int64_t CeilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }

Resources ResourcesOf(const Json& job, const Options& options) {
  const auto get = [&](const char* name) { return job.value(name, int64_t{0}); };
  const int64_t memory_mib = get("memory_bytes") == 0 ? 0 : CeilDiv(get("memory_bytes"), kMib) + kExecMib;
  return {options.nodes > 0 ? options.nodes : std::max<int64_t>(1, get("nodes")),
          options.cpus > 0 ? options.cpus : get("cpus"), options.memory_mib > 0 ? options.memory_mib : memory_mib,
          options.time_minutes > 0 ? options.time_minutes : CeilDiv(get("time_limit_s"), 60), get("save_time_s")};
}

// A trainer that can save its state is told in time. The signal must reach `ridgeline exec`, which is the batch
// script's process where srun does not start it.
Warning WarningFor(const Resources& resources, const Options& options) {
  if (!options.signal.empty()) return ParseWarning(options.signal);
  if (resources.save_time_s == 0) return {};
  const bool by_srun = resources.nodes > 1 || !options.container_image.empty() || !options.srun.empty();
  return {SIGUSR1, std::min(resources.save_time_s + kWarningMarginS, kMostLeadS), !by_srun};
}

// sbatch takes patterns in file names, and knows no escape for a backslash.
std::string OutputPattern(const std::string& log_dir, const std::string& name, bool is_array) {
  std::string pattern;
  for (const char c : log_dir) {
    if (c == '\\' || std::iscntrl(static_cast<unsigned char>(c)) != 0) {
      throw Failure(Failure::Kind::kInvalidInput,
                    fmt::format("Slurm cannot write into the folder {}", Json(log_dir).dump()),
                    "its name has a backslash or a control character in it: name another folder with --to or --db");
    }
    pattern += c == '%' ? "%%" : std::string(1, c);
  }
  return fmt::format("{}/{}{}.log", pattern, name, is_array ? ".%a" : ".0");
}

std::string OneLine(const std::string& text, size_t most) {
  std::string line;
  for (const char c : text.substr(0, most)) line += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
  return line;
}

std::string Quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuote(word);
  return line;
}

// What starts "$@": nothing but the script's own process, or srun, once a node.
std::string StartLines(const Options& options, int64_t cpus) {
  const bool several = options.nodes > 1;
  if (!several && options.container_image.empty() && options.srun.empty()) return "exec \"$@\"\n";
  std::vector<std::string> srun = {"srun",
                                   fmt::format("--nodes={}", options.nodes),
                                   fmt::format("--ntasks={}", options.nodes),
                                   "--ntasks-per-node=1",
                                   "--wait=0",
                                   "--kill-on-bad-exit=0"};
  if (cpus > 0) srun.push_back(fmt::format("--cpus-per-task={}", cpus));
  if (!options.container_image.empty()) srun.push_back("--container-image=" + options.container_image);
  srun.insert(srun.end(), options.srun.begin(), options.srun.end());
  if (!several) return "exec " + Quoted(srun) + " \"$@\"\n";
  return "# The nodes find each other: node 0 by the address Slurm itself uses.\n"
         "first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
         "MASTER_ADDR=$(scontrol show node \"$first\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')\n"
         "export MASTER_ADDR=\"${MASTER_ADDR:-$first}\" MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
         "export RIDGELINE_NNODES=\"$SLURM_JOB_NUM_NODES\"\n"
         "# shellcheck disable=SC2016 # each node's own shell expands it\n"
         "exec " +
         Quoted(srun) + " sh -c 'RIDGELINE_NODE_RANK=$SLURM_NODEID exec \"$@\"' ridgeline \"$@\"\n";
}

std::string Script(const std::vector<const Json*>& jobs, const BatchJob& batch) {
  std::string text =
      "# sbatch prefers its variables to the options above, and so could run something else.\n"
      "for name in \"${!SBATCH_@}\"; do\n"
      "  echo \"ridgeline: $name is set where this was submitted from: unset it, and submit again\" >&2\n"
      "  exit 2\n"
      "done\n";
  // A folder that is missing on the node would be replaced by /tmp.
  text += fmt::format("cd {} || exit 3\n", ShellQuote(batch.work_dir));
  for (const std::string& line : batch.options.prolog) text += line + "\n";
  text += "case ${SLURM_ARRAY_TASK_ID:-0} in\n";
  for (size_t task = 0; task < jobs.size(); ++task) {
    text += fmt::format("{}) set -- {} ;;\n", task, Quoted(jobs[task]->at("exec").get<std::vector<std::string>>()));
  }
  text += "*) echo \"ridgeline: this script has no task $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n";
  return text + StartLines(batch.options, batch.options.cpus);
}

BatchJob MakeBatchJob(const std::vector<const Json*>& jobs, const Resources& resources, const Options& options,
                      bool is_array, const std::string& work_dir, const std::string& log_dir) {
  BatchJob batch;
  batch.name = jobs.front()->at("key").get<std::string>();
  batch.comment = fmt::format("{} {}", batch.name, OneLine(jobs.front()->value("sweep", std::string()), 200));
  for (const Json* job : jobs) batch.keys.push_back(job->at("key").get<std::string>());
  batch.is_array = is_array;
  batch.throttle = is_array && options.throttle < static_cast<int64_t>(jobs.size()) ? options.throttle : 0;
  batch.work_dir = work_dir;
  batch.output = OutputPattern(log_dir, batch.name, is_array);
  batch.options = options;
  batch.options.nodes = resources.nodes;
  batch.options.cpus = resources.cpus;
  batch.options.memory_mib = resources.memory_mib;
  batch.options.time_minutes = resources.time_minutes;
  batch.warning = WarningFor(resources, options);
  batch.script = Script(jobs, batch);
  return batch;
}

// One word of an #SBATCH line.
std::string OptionQuote(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/-_.=:,@%+[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "\"";
  for (const char c : word) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "\"";
}

std::string SignalOption(const Warning& warning) {
  return fmt::format("--signal={}{}@{}", warning.batch_only ? "B:" : "", warning.signal, warning.lead_s);
}

}  // namespace

std::vector<BatchJob> Bundle(const Json& jobs, const Options& options, const ArrayLimit& limit,
                             const std::string& work_dir, const std::string& log_dir) {
  const auto most = static_cast<size_t>(limit.arrays ? std::clamp<int64_t>(limit.tasks, 1, kMostTasks) : 1);
  struct Group {
    const Options* options;
    Resources resources;
    std::vector<const Json*> members;
  };
  std::vector<Group> groups;                                    // as they come
  std::map<std::string, Options> known;                         // by the jobs' `config`, as text
  std::map<std::pair<const Options*, Resources>, size_t> open;  // the group of it that has room
  for (const Json& job : jobs) {
    const std::string config = job.contains("config") ? job.at("config").dump() : "";
    auto own = known.find(config);
    if (own == known.end()) own = known.emplace(config, OptionsOf(job, options)).first;
    const Resources resources = ResourcesOf(job, own->second);
    const auto [it, is_new] = open.try_emplace({&own->second, resources}, groups.size());
    if (!is_new && groups[it->second].members.size() == most) it->second = groups.size();
    if (it->second == groups.size()) groups.push_back({&own->second, resources, {}});
    groups[it->second].members.push_back(&job);
  }
  std::vector<BatchJob> batches;
  for (const Group& group : groups) {
    batches.push_back(MakeBatchJob(group.members, group.resources, *group.options, limit.arrays, work_dir, log_dir));
  }
  return batches;
}

std::string ArrayText(const BatchJob& batch) {
  if (!batch.is_array) return {};
  return fmt::format("0-{}{}", batch.keys.size() - 1, batch.throttle > 0 ? fmt::format("%{}", batch.throttle) : "");
}

std::vector<std::string> SbatchOptions(const BatchJob& batch) {
  const Options& options = batch.options;
  std::vector<std::string> words = {"--job-name=" + batch.name, "--comment=" + batch.comment};
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", name, value));
  };
  const auto number = [&](const char* name, int64_t value, const char* unit = "") {
    if (value > 0) words.push_back(fmt::format("--{}={}{}", name, value, unit));
  };
  text("array", ArrayText(batch));
  text("dependency", batch.dependency);
  text("output", batch.output);
  words.insert(words.end(), {"--open-mode=append", "--chdir=" + batch.work_dir, "--export=ALL"});
  text("partition", options.partition);
  text("account", options.account);
  text("qos", options.qos);
  text("reservation", options.reservation);
  text("constraint", options.constraint);
  text("nodelist", options.nodelist);
  number("nodes", options.nodes);
  number("ntasks", options.ntasks);
  if (options.nodes > 1 && options.ntasks == 0) number("ntasks-per-node", 1);
  number("cpus-per-task", options.cpus);
  number("mem", options.memory_mib, "M");
  text("gres", options.gres);
  number("time", options.time_minutes);
  if (options.exclusive) words.emplace_back("--exclusive");
  words.emplace_back(options.requeue ? "--requeue" : "--no-requeue");
  if (batch.warning.signal > 0) words.push_back(SignalOption(batch.warning));
  words.insert(words.end(), options.sbatch.begin(), options.sbatch.end());
  return words;
}

std::string SbatchFile(const BatchJob& batch) {
  std::string file = "#!/bin/bash\n";
  for (const std::string& option : SbatchOptions(batch)) file += "#SBATCH " + OptionQuote(option) + "\n";
  return file + batch.script;
}

std::string LogFile(const std::string& log_dir, const std::string& name, size_t task) {
  return fmt::format("{}/{}.{}.log", log_dir, name, task);
}

}  // namespace ridgeline::slurm
