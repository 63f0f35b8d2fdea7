#include "slurm/render.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/keys.h"
#include "common/text.h"
#include "ridgeline/job_dir.h"
#include "slurm/parse.h"
#include "slurm/script.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;

// Each task gets a copy of the script, which names every job of its array. Beyond this size, copies cost more than
// submissions.
constexpr int64_t kTasksAtOnce = 1000;
constexpr int64_t kExecMib = 64;         // for `ridgeline exec`, besides the trainer
constexpr int64_t kWarningMarginS = 60;  // Slurm warns up to a minute late
constexpr int64_t kMostLeadS = 65535;    // limit of --signal
constexpr int64_t kBytesPerMib = 1 << 20;
constexpr int64_t kImageS = 900;  // to fetch and unpack a container's image; not part of the points' time

struct Resources {
  int64_t nodes;
  int64_t cpus;
  int64_t memory_mib;
  int64_t time_minutes;
  int64_t save_time_s;
  auto operator<=>(const Resources&) const = default;
};

std::vector<std::string> AvoidedBy(const Json& job) { return job.value("avoid", std::vector<std::string>()); }

int64_t CeilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }

Resources ResourcesOf(const Json& job, const Options& options) {
  const auto get = [&](const char* name) { return job.value(name, int64_t{0}); };
  const int64_t memory_mib = get("memory_bytes") == 0 ? 0 : CeilDiv(get("memory_bytes"), kBytesPerMib) + kExecMib;
  const bool fetches = get("time_limit_s") > 0 && !options.container.empty();
  const int64_t time_limit_s = get("time_limit_s") + (fetches ? kImageS + kContainerStartsS : 0);
  return {options.nodes > 0 ? options.nodes : std::max<int64_t>(1, get("nodes")),
          options.cpus > 0 ? options.cpus : get("cpus"), options.memory_mib != 0 ? options.memory_mib : memory_mib,
          options.time_minutes > 0 ? options.time_minutes : CeilDiv(time_limit_s, 60), get("save_time_s")};
}

// A trainer that can save its state is warned in time. The signal must reach `ridgeline exec`, which is the batch
// script's process unless srun starts it.
Warning WarningFor(const Resources& resources, const Options& options) {
  if (!options.signal.empty()) return ParseWarning(options.signal);
  if (resources.save_time_s == 0) return {};
  const bool by_srun = StartedBySrun(resources.nodes, options);
  return {SIGUSR1, std::min(resources.save_time_s + kWarningMarginS, kMostLeadS), !by_srun};
}

// sbatch reads patterns in file names, and has no escape for a backslash.
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

std::string Joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : ",") + other;
}

BatchJob MakeBatchJob(const std::vector<const Json*>& jobs, const Resources& resources, const Options& options,
                      bool is_array, const std::string& work_dir, const std::string& log_dir, int64_t part) {
  const auto sweep = jobs.front()->value("sweep", std::string());
  BatchJob batch;
  batch.name = jobs.front()->at("key").get<std::string>();
  batch.job_name = fmt::format("{}.{}.{}", plugin::Label(sweep), part, batch.name);
  batch.file_name = plugin::FileNameOf(*jobs.front(), options.nodes);
  batch.comment = fmt::format("{} {}", batch.name, plugin::OneLine(sweep, 200));
  for (const Json* job : jobs) batch.keys.push_back(job->at("key").get<std::string>());
  batch.is_array = is_array;
  batch.throttle = is_array && options.throttle < static_cast<int64_t>(jobs.size()) ? options.throttle : 0;
  batch.work_dir = work_dir;
  batch.output = OutputPattern(log_dir, batch.name, is_array);
  batch.dependency = options.dependency;
  batch.avoid = AvoidedBy(*jobs.front());
  batch.options = options;
  batch.options.nodes = resources.nodes;
  batch.options.cpus = resources.cpus;
  batch.options.memory_mib = resources.memory_mib;
  batch.options.time_minutes = resources.time_minutes;
  batch.warning = WarningFor(resources, options);
  if (options.time_minutes == 0 && resources.time_minutes > 0) batch.image_limit_s = kImageS;
  batch.script = Script(jobs, batch);
  return batch;
}

// Quotes one word of an #SBATCH line.
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
                             const std::string& work_dir, const std::string& log_dir, int64_t parts) {
  const auto most = static_cast<size_t>(limit.arrays ? std::clamp<int64_t>(limit.tasks, 1, kTasksAtOnce) : 1);
  struct Group {
    const Options* options;
    Resources resources;
    std::vector<const Json*> members;
  };
  using Alike = std::tuple<const Options*, Resources, std::vector<std::string>>;
  std::vector<Group> groups;             // in order of their first jobs
  std::map<std::string, Options> known;  // by the jobs' `config`, as text, and by whether they run our own trainer
  std::map<Alike, size_t> open;          // the group of each kind that has room
  for (const Json& job : jobs) {
    const bool own_trainer = job.value("own_trainer", false);
    const std::string config = (job.contains("config") ? job.at("config").dump() : "") + (own_trainer ? "\n" : "");
    auto own = known.find(config);
    if (own == known.end()) {
      own = known.emplace(config, OptionsOf(job, options)).first;
      // Ridgeline's own trainer runs as installed, without a container.
      if (own_trainer) own->second.container.clear();
    }
    const Resources resources = ResourcesOf(job, own->second);
    const auto [it, is_new] = open.try_emplace({&own->second, resources, AvoidedBy(job)}, groups.size());
    if (!is_new && groups[it->second].members.size() == most) it->second = groups.size();
    if (it->second == groups.size()) groups.push_back({&own->second, resources, {}});
    groups[it->second].members.push_back(&job);
  }
  std::vector<BatchJob> batches;
  for (const Group& group : groups) {
    batches.push_back(
        MakeBatchJob(group.members, group.resources, *group.options, limit.arrays, work_dir, log_dir, ++parts));
  }
  return batches;
}

BatchJob MailJob(const BatchJob& batch, const std::vector<int64_t>& after) {
  BatchJob mail;
  mail.name = mail.job_name = batch.job_name.substr(0, batch.job_name.find('.')) + ".ended";
  mail.comment = batch.comment;
  mail.is_array = false;
  mail.work_dir = batch.work_dir;
  mail.output = "/dev/null";
  mail.script = "exit 0\n";
  if (!after.empty()) mail.dependency = fmt::format("afterany:{}", fmt::join(after, ":"));
  mail.options.partition = batch.options.partition;
  mail.options.account = batch.options.account;
  mail.options.qos = batch.options.qos;
  mail.options.cluster = batch.options.cluster;
  mail.options.nodes = mail.options.time_minutes = 1;
  mail.options.sbatch = {"--mail-type=END"};
  if (batch.options.mail != "true") mail.options.sbatch.push_back("--mail-user=" + batch.options.mail);
  return mail;
}

std::string ArrayText(const BatchJob& batch) {
  if (!batch.is_array) return {};
  return fmt::format("0-{}{}", batch.keys.size() - 1, batch.throttle > 0 ? fmt::format("%{}", batch.throttle) : "");
}

std::string ExcludeText(const BatchJob& batch) {
  const std::vector<std::string> wanted = HostsOf(batch.options.nodelist);
  std::vector<std::string> avoided;
  std::copy_if(batch.avoid.begin(), batch.avoid.end(), std::back_inserter(avoided),
               [&](const std::string& node) { return std::find(wanted.begin(), wanted.end(), node) == wanted.end(); });
  return Joined(batch.options.exclude, fmt::format("{}", fmt::join(avoided, ",")));
}

std::vector<std::string> SbatchOptions(const BatchJob& batch) {
  const Options& options = batch.options;
  std::vector<std::string> words = {"--job-name=" + batch.job_name, "--comment=" + batch.comment};
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
  text("exclude", ExcludeText(batch));
  text("clusters", options.cluster);
  number("nodes", options.nodes);
  const auto is_per_task = [](const std::string& given) { return given.starts_with("--gpus-per-task="); };
  // Sbatch accepts it only with a number of tasks.
  const bool counts_tasks = std::ranges::any_of(options.sbatch, is_per_task);
  number("ntasks", options.ntasks > 0 || !counts_tasks ? options.ntasks : options.nodes);
  if (options.nodes > 1 && options.ntasks == 0) number("ntasks-per-node", 1);
  number("cpus-per-task", options.cpus);
  if (options.memory_mib == kWholeNode) words.emplace_back("--mem=0");
  number("mem", options.memory_mib, "M");
  text("gpus-per-node", options.gpus);
  text("gpu-bind", options.gpu_bind);
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
