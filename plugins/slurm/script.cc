#include "slurm/script.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/shell.h"
#include "ridgeline/job_dir.h"
#include "slurm/render.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::ShellQuote;
namespace fs = std::filesystem;

std::string Quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuote(word);
  return line;
}

std::string NotThere(const std::string& folder) { return ShellQuote("the folder " + folder + " is not there"); }

// ---- before the job

constexpr const char* kBegin = R"(# sbatch prefers its variables to the options above, and so could run something else.
for name in "${!SBATCH_@}"; do
  echo "ridgeline: $name is set where this was submitted from: unset it, and submit again" >&2
  exit 2
done
# These were for sbatch: the job's own questions go to its own cluster, and a token is for nobody there.
unset SLURM_JWT SLURM_CLUSTERS SLURM_CONF_SERVER
# Why the job has not begun, for the launcher, which finds this line in the log; 5 is the exit code of a node at fault.
not_started() {
  echo "ridgeline: ${SLURMD_NODENAME:-${HOSTNAME:-?}}: not started ($1): ${2//$'\n'/ }" >&2
  [ "$1" = node ] && exit 5
  exit 1
}
)";

// If a job is submitted from a step of another job, it inherits that step's variables, which would pin the ranks to the
// step's cores. With SLURM_EXPORT_ENV=NONE, srun would find no program. Settings from the sweep's options stay.
std::string ForgetStepLines(const Options& options) {
  const auto sets = [&](std::string_view option) {
    return std::any_of(options.sbatch.begin(), options.sbatch.end(),
                       [&](const std::string& given) { return given.starts_with(option); });
  };
  std::string names = "\"${!SRUN_@}\" \"${!SLURM_CPU_BIND@}\" SLURM_EXPORT_ENV";
  if (!sets("--mem-bind=")) names += " \"${!SLURM_MEM_BIND@}\"";
  if (!sets("--distribution=")) names += " SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE";
  if (!sets("--hint=")) names += " SLURM_HINT";
  return fmt::format(
      "# Of a step that this was submitted from: they would pin the ranks to its cores, or take their environment.\n"
      "for name in {}; do unset \"$name\"; done\n",
      names);
}

// For Lmod and environment-modules, in all releases.
constexpr const char* kModules =
    R"(# What `module` returns differs from release to release, so what it has loaded is looked at.
load() {
  module load "$1" || return 1
  case ":$LOADEDMODULES:" in *":$1:"* | *":$1/"*) return 0 ;; esac
  module is-loaded "$1"
}
for file in "$MODULESHOME/init/bash" "$LMOD_PKG/init/bash" /etc/profile.d/*lmod*.sh /etc/profile.d/*modules*.sh; do
  type module >/dev/null 2>&1 && break
  # shellcheck disable=SC1090
  if [ -r "$file" ]; then . "$file"; fi
done
type module >/dev/null 2>&1 || not_started start 'there is no module command on this node'
)";

std::string ModuleLines(const std::vector<std::string>& modules) {
  if (modules.empty()) return {};
  return fmt::format(
      "{}for module in {}; do\n"
      "  words=$(load \"$module\" 2>&1) || not_started start \"the module $module does not load: ${{words:0:1000}}\"\n"
      "  load \"$module\" || not_started start \"the module $module does not load\"\n"
      "done\n",
      kModules, Quoted(modules));
}

std::string PrologLines(const std::vector<std::string>& prolog) {
  if (prolog.empty()) return {};
  return fmt::format(
      "# A line of the prolog that fails ends the job before it has begun; behind one that may, || true is written.\n"
      "trap 'not_started start \"the prolog ended with exit code $?, at: $BASH_COMMAND\"' EXIT\n"
      "set -e\n{}\nset +e\ntrap - EXIT\n",
      fmt::join(prolog, "\n"));
}

// The folders that hold jobs' folders: usually one.
std::set<std::string> FoldersOf(const std::vector<const Json*>& jobs) {
  std::set<std::string> folders;
  for (const Json* job : jobs) {
    const fs::path folder = fs::path(job->value("job_dir", std::string())).parent_path();
    if (!folder.empty()) folders.insert(folder.string());
  }
  return folders;
}

// Checks what a node must have, before a trainer on half of the nodes waits for the other half.
std::string CheckLines(const std::vector<const Json*>& jobs, const Options& options) {
  std::string checks;
  for (const std::string& folder : FoldersOf(jobs)) {
    checks += fmt::format("  [ -d {} ] || not_started node {}\n", ShellQuote(folder), NotThere(folder));
  }
  checks += "  [ -x \"$1\" ] || not_started start \"$1 is not there, or cannot be run\"\n";
  if (options.nodes < 2) return fmt::format("check() {{\n{}}}\ncheck \"$@\"\n", checks);
  return fmt::format(
      "check() {{\n{}}}\nexport -f not_started check\n"
      "# shellcheck disable=SC2016 # each node's own shell expands it\n"
      "srun --nodes={} --ntasks={} --ntasks-per-node=1 --mpi=none --wait=0 --kill-on-bad-exit=1 bash -c 'check \"$@\"' "
      "check "
      "\"$@\" "
      "|| exit\n",
      checks, options.nodes, options.nodes);
}

// ---- the trainers' container

// Returns an image such as "nvcr.io/nvidia/pytorch:26.09" in the form for `runtime`. A file, or a name with another
// scheme, stays unchanged.
std::string ImageFor(ContainerRuntime runtime, const std::string& image) {
  constexpr std::string_view kDocker = "docker://";
  if (image.starts_with('/') || image.starts_with('.')) return image;
  std::string_view rest = image;
  if (rest.starts_with(kDocker)) rest.remove_prefix(kDocker.size());
  if (rest.find("://") != std::string_view::npos) return image;
  const size_t end = std::min(rest.find_first_of("/#"), rest.size());
  const std::string_view first = rest.substr(0, end);
  const bool has_registry = end < rest.size() && (rest[end] == '#' || first == "localhost" ||
                                                  first.find_first_of(".:") != std::string_view::npos);
  const std::string registry(has_registry ? first : "");
  const std::string name(has_registry ? rest.substr(end + 1) : rest);
  if (runtime == ContainerRuntime::kPyxis) return registry.empty() ? name : registry + "#" + name;
  return std::string(kDocker) + (registry.empty() ? name : registry + "/" + name);
}

// Returns whether an option of srun says how pyxis starts a container.
bool IsOfContainer(const std::string& option) {
  return option.starts_with("--container-") || option.starts_with("--no-container-");
}

// The folders where the job works and leaves its results, and those that the sweep names.
std::string MountsOf(const std::vector<const Json*>& jobs, const BatchJob& batch) {
  std::vector<std::string> mounts = {batch.work_dir};
  for (const std::string& folder : FoldersOf(jobs)) {
    // Checkpoint files are beside the folder of the jobs.
    const std::string output = fs::path(folder).parent_path().string();
    const std::string wanted = output == "/" ? folder : output;
    const bool is_there = (wanted + "/").starts_with(batch.work_dir + "/");
    if (!is_there && std::find(mounts.begin(), mounts.end(), wanted) == mounts.end()) mounts.push_back(wanted);
  }
  for (std::string& mount : mounts) {
    if (!CanBeMounted(mount)) {
      throw Failure(
          Failure::Kind::kInvalidInput,
          fmt::format("the folder {} cannot be mounted into a container",
                      Json(mount).dump(-1, ' ', false, Json::error_handler_t::replace)),
          "pyxis and Apptainer take no folder whose name has , : \" $ ` \\ or a control character in it: name "
          "another folder with --to, or run from another one");
    }
    mount += ":" + mount;
  }
  const auto& own = batch.options.container_mounts;
  for (const std::string& mount : own) {
    mounts.push_back(mount.find(':') == std::string::npos ? mount + ":" + mount : mount);
  }
  return fmt::format("{}", fmt::join(mounts, ","));
}

std::vector<std::string> Srun(const Options& options, std::initializer_list<const char*> more) {
  std::vector<std::string> srun = {"srun", fmt::format("--nodes={}", options.nodes),
                                   fmt::format("--ntasks={}", options.nodes), "--ntasks-per-node=1", "--wait=0"};
  srun.insert(srun.end(), more.begin(), more.end());
  return srun;
}

bool HasGpus(const Options& options) {
  const auto names_them = [](const std::string& option) {
    return option.starts_with("--gpus") || option.starts_with("--ntasks-per-gpu");
  };
  return !options.gpus.empty() || options.gres.find("gpu") != std::string::npos ||
         std::any_of(options.sbatch.begin(), options.sbatch.end(), names_them);
}

// Sets `container`, the words that exec puts before a trainer's command, according to what the node has. Sets
// `prepare`, which makes the image ready on every node. So preparing costs no point its time, and no gang waits for a
// node without the image.
std::string ContainerLines(const std::vector<const Json*>& jobs, const BatchJob& batch) {
  const Options& options = batch.options;
  if (options.container.empty()) return {};
  const std::string mounts = MountsOf(jobs, batch);
  std::vector<std::string> more = {"--container-mounts=" + mounts, "--container-workdir=" + batch.work_dir};
  if (std::find(options.srun.begin(), options.srun.end(), "--container-mount-home") == options.srun.end()) {
    more.emplace_back("--no-container-mount-home");
  }
  std::copy_if(options.srun.begin(), options.srun.end(), std::back_inserter(more), IsOfContainer);
  // A container with a name is unpacked once for all points of the job, and exec removes it. Each step starts its own:
  // if pyxis attached a step to another's container, the step would have that one's mounts.
  const std::string pyxis = fmt::format(
      "if srun --help 2>&1 | grep -q -e --container-image; then\n"
      "  container=({} \"--container-name=ridgeline-$SLURM_JOB_ID:no_exec\" {})\n"
      "  prepare=({} \"${{container[@]}}\")\n",
      Quoted({"--container-image=" + ImageFor(ContainerRuntime::kPyxis, options.container)}), Quoted(more),
      Quoted(Srun(options, {"--mpi=none", "--overlap", "--mem=0", "--input=none", "--kill-on-bad-exit=1"})));
  std::vector<std::string> arguments = {"exec", "--bind", mounts, "--pwd", batch.work_dir};
  if (HasGpus(options)) arguments.emplace_back("--nv");
  arguments.push_back(ImageFor(ContainerRuntime::kApptainer, options.container));
  const std::string on_each =
      options.nodes < 2
          ? ""
          : Quoted(Srun(options, {"--mpi=none", "--overlap", "--mem=0", "--input=none", "--kill-on-bad-exit=1"})) + " ";
  const std::string apptainer = fmt::format(
      "if runtime=$(command -v apptainer || command -v singularity); then\n"
      "  container=(\"$runtime\" {})\n"
      "  prepare=({}\"${{container[@]}}\")\n",
      Quoted(arguments), on_each);
  const auto otherwise = [](const char* why) {
    return fmt::format("else\n  not_started start {}\nfi\n", ShellQuote(why));
  };
  std::string lines;
  switch (options.container_runtime) {
    case ContainerRuntime::kPyxis:
      lines = pyxis + otherwise("srun has no --container-image on this node: pyxis is not installed");
      break;
    case ContainerRuntime::kApptainer:
      lines = apptainer + otherwise("there is no apptainer on this node");
      break;
    case ContainerRuntime::kAuto:
      lines =
          pyxis + "el" + apptainer + otherwise("this node has neither pyxis nor apptainer to start a container with");
      break;
  }
  std::string within;
  std::string late;
  if (batch.image_limit_s > 0) {
    within = fmt::format("timeout --kill-after=60 {} ", batch.image_limit_s);
    late =
        fmt::format(" || [ $? -ne 124 ] || words=\"its image is not ready after {} s. $words\"", batch.image_limit_s);
  }
  return lines + "# Fetched and unpacked once on each node, before any point's time counts.\n" +
         fmt::format("words=$({}\"${{prepare[@]}}\" /bin/sh -c 'echo container-is-ready' 2>&1){}\n", within, late) +
         fmt::format("if [ \"$(grep -c '^container-is-ready' <<<\"$words\")\" -ne {} ]; then\n", options.nodes) +
         "  node=$(sed -n 's/^srun: error: \\([^ :]*\\): task.*/\\1/p' <<<\"$words\" | head -n 1)\n"
         "  [ ${#words} -le 1000 ] || words=${words: -1000}\n"
         "  SLURMD_NODENAME=${node:-${SLURMD_NODENAME-}} not_started image \"the container does not start: $words\"\n"
         "fi\n" +
         fmt::format("{0}=$(printf '%s\\n' \"${{container[@]}}\")\nexport {0}\n", kContainerVariable);
}

// ---- the job

// What starts "$@": the script's own process, or srun with one task for each node.
std::string StartLines(const Options& options) {
  if (!StartedBySrun(options.nodes, options)) return "exec \"$@\"\n";
  std::vector<std::string> srun = Srun(options, {"--kill-on-bad-exit=0"});
  // exec does not use MPI, and a site's default for it may be broken.
  const auto is_mpi = [](const std::string& given) { return given.starts_with("--mpi="); };
  if (std::none_of(options.srun.begin(), options.srun.end(), is_mpi)) srun.emplace_back("--mpi=none");
  if (options.cpus > 0) srun.push_back(fmt::format("--cpus-per-task={}", options.cpus));
  std::copy_if(options.srun.begin(), options.srun.end(), std::back_inserter(srun),
               [&](const std::string& option) { return options.container.empty() || !IsOfContainer(option); });
  if (options.nodes < 2) return fmt::format("exec {} \"$@\"\n", Quoted(srun));
  return "# The nodes find each other: node 0 by the address Slurm itself uses.\n"
         "first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
         "MASTER_ADDR=$(scontrol show node \"$first\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')\n"
         "export MASTER_ADDR=\"${MASTER_ADDR:-$first}\" MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
         "export RIDGELINE_NNODES=\"$SLURM_JOB_NUM_NODES\"\n"
         "# shellcheck disable=SC2016 # each node's own shell expands it\n"
         "exec " +
         Quoted(srun) + " sh -c 'RIDGELINE_NODE_RANK=$SLURM_NODEID exec \"$@\"' ridgeline \"$@\"\n";
}

}  // namespace

bool StartedBySrun(int64_t nodes, const Options& options) {
  return nodes > 1 || std::any_of(options.srun.begin(), options.srun.end(), [&](const std::string& option) {
           return options.container.empty() || !IsOfContainer(option);
         });
}

std::string Script(const std::vector<const Json*>& jobs, const BatchJob& batch) {
  std::string text = kBegin + ForgetStepLines(batch.options);
  // If the folder is missing on the node, Slurm would use /tmp instead.
  text += fmt::format("cd {} || not_started node {}\n", ShellQuote(batch.work_dir), NotThere(batch.work_dir));
  text += ModuleLines(batch.options.modules) + PrologLines(batch.options.prolog);
  text += "case ${SLURM_ARRAY_TASK_ID:-0} in\n";
  for (size_t task = 0; task < jobs.size(); ++task) {
    text += fmt::format("{}) set -- {} ;;\n", task, Quoted(jobs[task]->at("exec").get<std::vector<std::string>>()));
  }
  text += "*) echo \"ridgeline: this script has no task $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n";
  return text + CheckLines(jobs, batch.options) + ContainerLines(jobs, batch) + StartLines(batch.options);
}

}  // namespace ridgeline::slurm
