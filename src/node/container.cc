#include "node/container.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/lines.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kNsPerS = 1'000'000'000;
constexpr int64_t kRemoveNs = 60 * kNsPerS;
constexpr int64_t kEachStartNs = 15 * kNsPerS;  // half of a job's time for each point to start and stop
constexpr size_t kMostWords = 600;              // bytes of a container's message
constexpr std::string_view kName = "--container-name=";

// $1, $2: the files of Inside; $3: the folder; then the command.
constexpr const char* kEnter =
    R"sh(: >"$1" || exit 127
begun=$2
cd "$3" || exit 127
shift 3
command -v "$1" >/dev/null 2>&1 || { echo "ridgeline: there is no program '$1' in the container" >&2; exit 127; }
: >"$begun" || exit 127
exec "$@")sh";

bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// The message of pyxis, enroot or Apptainer about a failure; else the last line that is not srun's report of an exit
// code.
std::string WordsOfFailure(std::string_view log) {
  std::string words;
  std::string_view last;
  for (std::string_view line : SplitLines(log)) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!ContainsAny(line, {"Exited with exit code", "Waiting up to"})) last = line;
    const size_t pyxis = line.find("pyxis: ");
    if (pyxis == std::string_view::npos && !ContainsAny(line, {"FATAL:", "[ERROR]", "srun: error: Unable"})) continue;
    if (pyxis != std::string_view::npos) line.remove_prefix(pyxis);
    words += (words.empty() ? "" : "; ") + std::string(line);
  }
  if (words.empty()) words = last;
  return ShortenToBytes(PrintableLine(words), kMostWords);
}

// Options for a step within the job, beside exec's own: one process per node, with all the job's cores, memory and GPUs
// there.
std::vector<std::string> StepOn(int64_t nodes) {
  return {"srun",
          "--overlap",
          "--mem=0",
          "--cpu-bind=none",
          "--mpi=none",
          "--input=none",
          fmt::format("--nodes={}", nodes),
          fmt::format("--ntasks={}", nodes),
          "--ntasks-per-node=1"};
}

// Launchers refuse the same paths in a sweep: enroot lets a shell read the path in double quotes.
bool CanBeMounted(const std::string& path) {
  return path.find_first_of(",:\"$`\\") == std::string::npos && PrintableLine(path) == path;
}

// Adds the nearest folder of a point's file, if the node has it.
void AddFolder(const std::string& path, std::set<std::string>& folders) {
  std::error_code ec;
  if (!path.starts_with('/') || !CanBeMounted(path)) return;
  if (fs::is_directory(path, ec)) {
    folders.insert(path);
  } else if (const fs::path parent = fs::path(path).parent_path(); parent != "/" && fs::is_directory(parent, ec)) {
    folders.insert(parent);
  }
}

}  // namespace

std::optional<Container> Container::OfThisJob(const Nodes& nodes) {
  const char* said = std::getenv(kContainerVariable);
  if (said == nullptr) return std::nullopt;
  std::vector<std::string> words;
  for (const std::string_view word : SplitLines(said)) words.emplace_back(word);
  ::unsetenv(kContainerVariable);
  if (words.empty() || words.front().empty()) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} names no container", kContainerVariable),
                "options of srun, or a program and its arguments, a word a line");
  }
  const char* node = std::getenv("SLURMD_NODENAME");
  return std::optional<Container>(std::in_place, std::move(words), nodes, node == nullptr ? "" : node);
}

Container::Container(std::vector<std::string> words, const Nodes& nodes, std::string node)
    : words_(std::move(words)), nodes_(nodes), node_(std::move(node)) {}

Container::~Container() {
  const auto name =
      std::find_if(words_.begin(), words_.end(), [](const std::string& word) { return word.starts_with(kName); });
  if (name == words_.end() || nodes_.rank > 0) return;
  try {
    const std::string_view given = std::string_view(*name).substr(kName.size());
    std::vector<std::string> words = nodes_.count > 1 ? StepOn(nodes_.count) : std::vector<std::string>();
    // Uses pyxis's name for the container, unless the site makes pyxis remove containers itself. Clears
    // ENROOT_DATA_PATH, so that enroot searches where pyxis keeps them, whatever the job's environment says.
    words.insert(words.end(), {"env", "-u", "ENROOT_DATA_PATH", "enroot", "remove", "--force",
                               fmt::format("pyxis_{}", given.substr(0, given.find(':')))});
    Run(words, kRemoveNs);
  } catch (const Error&) {
    // The site cleans up anything left, as after a job that was killed.
  }
}

bool Container::IsStep() const { return words_.front().starts_with("--"); }

std::vector<std::string> Container::Words(const std::vector<std::string>& srun, const RunSpec& spec) const {
  std::set<std::string> folders;
  for (const std::string& path : {spec.data, spec.init_from, spec.checkpoint_dir}) AddFolder(path, folders);
  std::string mounts;
  for (const std::string& folder : folders) mounts += fmt::format("{}{}:{}", mounts.empty() ? "" : ",", folder, folder);

  std::vector<std::string> words = srun;
  if (IsStep() && srun.empty()) {
    words = StepOn(1);
    if (!node_.empty()) words.push_back("--nodelist=" + node_);
  }
  if (IsStep()) {
    words.insert(words.end(), words_.begin(), words_.end());
    const auto mounted = std::find_if(words.begin(), words.end(),
                                      [](const std::string& word) { return word.starts_with("--container-mounts="); });
    if (!mounts.empty() && mounted != words.end()) *mounted += ',' + mounts;
    if (!mounts.empty() && mounted == words.end()) words.push_back("--container-mounts=" + mounts);
    return words;
  }
  words.insert(words.end(), words_.begin(), words_.end() - 1);
  if (!mounts.empty()) words.insert(words.end(), {"--bind", mounts});
  words.push_back(words_.back());
  return words;
}

std::vector<std::string> Container::Command(const Inside& inside) {
  std::vector<std::string> command = {"/usr/bin/env"};
  for (const auto& [name, value] : inside.environment) command.push_back(fmt::format("{}={}", name, value));
  const std::string folder = inside.directory.empty() ? "." : inside.directory.string();
  command.insert(command.end(), {"/bin/sh", "-c", kEnter, "ridgeline", inside.entered, inside.begun, folder});
  command.insert(command.end(), inside.argv.begin(), inside.argv.end());
  return command;
}

int64_t ContainerStarts::LimitNs() const { return kEachStartNs + left_ns_; }

void ContainerStarts::Took(int64_t ns) {
  left_ns_ = std::max<int64_t>(left_ns_ - std::max<int64_t>(ns - kEachStartNs, 0), 0);
}

Unfit WhyNotBegun(std::string_view log, bool entered, int64_t late_ns) {
  const std::string words = WordsOfFailure(log);
  const std::string said = words.empty() ? "" : ": " + words;
  if (entered) {
    return {InfrastructureReason::kStart, "the trainer cannot be started in its container" + said,
            "the image and its mounts must have the trainer's program and its folder"};
  }
  if (late_ns > 0) {
    return {InfrastructureReason::kStart,
            fmt::format("its container had not begun after {} s{}", late_ns / kNsPerS, said),
            "an image that is a file on a fast disk starts soonest"};
  }
  const bool of_image = ContainsAny(
      words, {"failed to import docker image", "failed to create container filesystem", "could not open image",
              "While making image", "While pulling", "image format", "Unable to handle docker"});
  return {of_image ? InfrastructureReason::kImage : InfrastructureReason::kStart,
          "its container could not be started" + said, "see launch: slurm: container, and container_mounts"};
}

bool SaysKilledForMemory(std::string_view log) {
  const auto lines = SplitLines(log);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    return line.find("slurmstepd: error: Detected ") != std::string_view::npos &&
           ContainsAny(line, {"oom_kill event", "oom-kill event"});
  });
}

}  // namespace ridgeline::node
