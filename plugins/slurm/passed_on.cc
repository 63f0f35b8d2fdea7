#include "slurm/passed_on.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::Option;

// Options that the launcher sets itself. The text says which setting to use instead; empty: there is none.
const std::map<std::string, std::string, std::less<>>& Ours() {
  static const std::map<std::string, std::string, std::less<>> kOurs = {
      {"account", "say account:"},
      {"array", "max_parallel is the array's throttle"},
      {"chdir", ""},
      {"clusters", "say clusters:"},
      {"comment", ""},
      {"constraint", "say constraint:"},
      {"container-image", "say container:"},
      {"container-mounts", "say container_mounts:"},
      {"container-name", ""},
      {"container-workdir", ""},
      {"cpus-per-task", "say cpus:"},
      {"dependency", "say dependency:"},
      {"error", ""},
      {"exclude", "say exclude:"},
      {"exclusive", "say exclusive:"},
      {"export", ""},
      {"export-file", ""},
      {"gpu-bind", "say gpu_bind:"},
      {"gpus-per-node", "say gpus:"},
      {"gres", "say gres: or gpus:"},
      {"help", ""},
      {"ignore-pbs", ""},
      {"input", ""},
      {"job-name", ""},
      {"jobid", ""},
      {"kill-on-bad-exit", ""},
      {"mem", "say memory:"},
      {"multi-prog", ""},
      {"no-requeue", "say requeue:"},
      {"nodefile", "say nodelist:"},
      {"nodelist", "say nodelist:"},
      {"nodes", "say nodes:"},
      {"ntasks", "say ntasks:"},
      {"ntasks-per-node", ""},
      {"open-mode", ""},
      {"output", ""},
      {"parsable", ""},
      {"partition", "say partition:"},
      {"pty", ""},
      {"qos", "say qos:"},
      {"quiet", ""},
      {"requeue", "say requeue:"},
      {"reservation", "say reservation:"},
      {"signal", "say signal:"},
      {"test-only", ""},
      {"time", "say time:"},
      {"usage", ""},
      {"version", ""},
      {"wait", ""},
      {"workdir", ""},
      {"wrap", ""},
  };
  return kOurs;
}

// All other options of releases 22.05 to 25.05 that take a value or none, so that abbreviations of them are recognized.
// An option in neither list belongs to a later release, or to a plugin of the site's.
constexpr auto kWithValue = std::to_array<std::string_view>({
    "accel-bind",
    "acctg-freq",
    "batch",
    "bb",
    "bbf",
    "bcast-exclude",
    "begin",
    "cluster-constraint",
    "container",
    "container-id",
    "core-spec",
    "cores-per-socket",
    "cpu-bind",
    "cpu-freq",
    "cpus-per-gpu",
    "deadline",
    "delay-boot",
    "distribution",
    "epilog",
    "extra",
    "extra-node-info",
    "gid",
    "gpu-freq",
    "gpus",
    "gpus-per-socket",
    "gpus-per-task",
    "gres-flags",
    "het-group",
    "hint",
    "kill-on-invalid-dep",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "mpi",
    "msg-timeout",
    "network",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "oom-kill-step",
    "pack-group",
    "power",
    "prefer",
    "priority",
    "profile",
    "prolog",
    "relative",
    "segment",
    "slurmd-debug",
    "sockets-per-node",
    "switches",
    "task-epilog",
    "task-prolog",
    "thread-spec",
    "threads",
    "threads-per-core",
    "time-min",
    "tmp",
    "treewidth",
    "tres-bind",
    "tres-per-task",
    "uid",
    "wait-all-nodes",
    "wckey",
});
constexpr auto kWithOrWithout = std::to_array<std::string_view>({
    "bcast",
    "compress",
    "consolidate-segments",
    "contiguous",
    "disable-status",
    "exact",
    "get-user-env",
    "hold",
    "immediate",
    "interactive",
    "label",
    "nice",
    "no-allocate",
    "no-kill",
    "overcommit",
    "overlap",
    "oversubscribe",
    "preserve-env",
    "propagate",
    "quit-on-interrupt",
    "reboot",
    "resv-ports",
    "send-libs",
    "share",
    "spread-job",
    "spread-segments",
    "stepmgr",
    "unbuffered",
    "use-min-nodes",
    "verbose",
    "whole",
    "x11",
});

bool IsKnown(std::string_view option) {
  const auto is = [&](std::string_view known) { return known == option; };
  return Ours().contains(option) || std::any_of(kWithValue.begin(), kWithValue.end(), is) ||
         std::any_of(kWithOrWithout.begin(), kWithOrWithout.end(), is);
}

// Returns the option that begins with these letters; empty: none.
std::string_view AbbreviatedBy(std::string_view letters) {
  for (const auto& [name, why] : Ours()) {
    if (name.starts_with(letters)) return name;
  }
  for (const std::string_view name : kWithValue) {
    if (name.starts_with(letters)) return name;
  }
  for (const std::string_view name : kWithOrWithout) {
    if (name.starts_with(letters)) return name;
  }
  return {};
}

[[noreturn]] void Refuse(const Option& setting, const std::string& option, const std::string& why) {
  throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: {}: {} cannot be set here", setting.name(), option),
                why);
}

std::string PassedOn(const Option& setting, const std::string& option, const Json& argument) {
  const bool plain =
      !option.empty() && option.front() != '-' && std::all_of(option.begin(), option.end(), [](unsigned char c) {
        return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
      });
  if (!plain) Option(setting.name(), option).Refuse("a long option, without its dashes");
  if (const auto ours = Ours().find(option); ours != Ours().end()) {
    Refuse(setting, option,
           ours->second.empty() ? "it is set by the launcher, which starts its jobs and finds them again by it"
                                : ours->second);
  }
  if (const std::string_view whole = AbbreviatedBy(option); !whole.empty() && !IsKnown(option)) {
    Refuse(setting, option, fmt::format("it stands for {}: write an option in full", whole));
  }
  if (argument != true) {
    return fmt::format("--{}={}", option, Option(setting.name() + ": " + option, argument).Text());
  }
  // Without a value it would take the next word for one.
  if (std::find(kWithValue.begin(), kWithValue.end(), option) != kWithValue.end()) {
    Option(setting.name() + ": " + option, argument).Refuse("a value", "this option of Slurm's takes one");
  }
  return "--" + option;
}

}  // namespace

std::vector<std::string> PassedOn(const Option& setting) {
  std::vector<std::string> options;
  for (const auto& [option, argument] : setting.Mapping().items()) {
    options.push_back(PassedOn(setting, option, argument));
  }
  return options;
}

}  // namespace ridgeline::slurm
