#include "run/sagemaker.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostHostsBytes = size_t{1} << 20;
constexpr size_t kMostSecretBytes = 4096;
constexpr size_t kMostFailureBytes = 1024;
constexpr const char* kMasterPort = "29501";
constexpr std::chrono::seconds kResolvePatience{300};
constexpr std::chrono::seconds kResolvePause{1};
constexpr const char* kCheckpoints = "opt/ml/checkpoints";

// The toolkit in SageMaker's images sets SM_… variables; the service itself sets this one.
bool OnSageMaker() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("SM_") || text.starts_with("TRAINING_JOB_NAME=")) return true;
  }
  return false;
}

// The service's own variable. Images of other makers may set SM_… too.
bool IsTrainingJob() { return std::getenv("TRAINING_JOB_NAME") != nullptr; }

// The number at a name's end: 10 for "algo-10".
int64_t NumberOf(const std::string& name) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t begin = last == std::string::npos ? 0 : last + 1;
  int64_t number = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return number;
}

bool IsKnown(const std::string& host) {
  addrinfo* found = nullptr;
  const bool known = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found) == 0;
  if (known) ::freeaddrinfo(found);
  return known;
}

// Whether the container has devices of EFA, the network between AWS's larger instances. libfabric, by which NCCL uses
// it, may choose another provider unless it is told (fi_efa(7)).
bool HasEfa(const fs::path& root) {
  std::error_code ec;
  for (fs::directory_iterator at(root / "dev/infiniband", ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with("uverbs")) return true;
  }
  return false;
}

// Whether this type's EFA reads and writes GPUs' memory. libfabric before 1.18 does so only if it is told
// (github.com/aws/aws-ofi-nccl/issues/313), and ends the process if the device cannot
// (github.com/ofiwg/libfabric/pull/8661).
bool HasEfaRdma(std::string_view instance_type) {
  constexpr std::string_view kFamilies[] = {"ml.p4d.", "ml.p4de.", "ml.p5.", "ml.p5e.", "ml.p5en.", "ml.p6-"};
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](std::string_view family) { return instance_type.starts_with(family); });
}

// Ranks take no secret that others may read.
void UseOwnSecret(const fs::path& root) {
  const char* given = std::getenv("RIDGELINE_SECRET_FILE");
  if (given == nullptr) return;
  const fs::path file(given);
  const std::string inside = (root / "opt/ml/input").string();
  if (!file.string().starts_with(inside)) return;
  const std::optional<std::string> secret = ReadForeignFile(file, kMostSecretBytes, ForeignFile::Links::kFollowed);
  if (!secret) return;
  std::string dir = (root / "tmp/ridgeline-XXXXXX").string();
  if (::mkdtemp(dir.data()) == nullptr) ThrowErrno("cannot make a folder for the ranks' secret");
  const fs::path own = fs::path(dir) / "ranks.secret";
  WritePrivateFile(own, *secret);
  ::setenv("RIDGELINE_SECRET_FILE", own.c_str(), 1);
}

}  // namespace

std::optional<SageMakerHosts> ParseSageMakerHosts(std::string_view text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  SageMakerHosts hosts;
  std::string here;
  try {
    document.at("hosts").get_to(hosts.names);
    document.at("current_host").get_to(here);
    hosts.interface = document.value("network_interface_name", "");
    hosts.instance_type = document.value("current_instance_type", "");
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  std::sort(hosts.names.begin(), hosts.names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(NumberOf(a), a) < std::pair(NumberOf(b), b);
  });
  const auto found = std::find(hosts.names.begin(), hosts.names.end(), here);
  if (found == hosts.names.end()) return std::nullopt;
  hosts.here = static_cast<size_t>(found - hosts.names.begin());
  return hosts;
}

void UseSageMakerNodes(const fs::path& root) {
  if (!IsTrainingJob() || std::getenv("RIDGELINE_NNODES") != nullptr) return;
  const fs::path file = root / "opt/ml/input/config/resourceconfig.json";
  const std::optional<std::string> text = ReadForeignFile(file, kMostHostsBytes, ForeignFile::Links::kFollowed);
  if (!text) return;
  const std::optional<SageMakerHosts> hosts = ParseSageMakerHosts(*text);
  if (!hosts) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} does not name the job's hosts and this one", file.string()),
                "SageMaker writes it; set RIDGELINE_NNODES, RIDGELINE_NODE_RANK, MASTER_ADDR and MASTER_PORT yourself");
  }
  ::setenv("RIDGELINE_NODE", hosts->names[hosts->here].c_str(), 0);
  if (hosts->names.size() == 1) return;
  ::setenv("RIDGELINE_NNODES", std::to_string(hosts->names.size()).c_str(), 1);
  ::setenv("RIDGELINE_NODE_RANK", std::to_string(hosts->here).c_str(), 1);
  ::setenv("MASTER_ADDR", hosts->names.front().c_str(), 1);
  ::setenv("MASTER_PORT", kMasterPort, 0);
  if (!hosts->interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", hosts->interface.c_str(), 0);
  if (HasEfa(root)) {
    ::setenv("FI_PROVIDER", "efa", 0);
    if (HasEfaRdma(hosts->instance_type)) ::setenv("FI_EFA_USE_DEVICE_RDMA", "1", 0);
  }
  UseOwnSecret(root);
  const auto until = std::chrono::steady_clock::now() + kResolvePatience;
  while (!IsKnown(hosts->names.front()) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kResolvePause);
  }
}

void WriteSageMakerFailure(std::string_view why, const fs::path& root) {
  const fs::path dir = root / "opt/ml/output";
  std::error_code ec;
  if (!IsTrainingJob() || !fs::is_directory(dir, ec)) return;
  try {
    WriteFile(dir / "failure", std::string(why.substr(0, kMostFailureBytes)));
  } catch (const Error&) {
    return;  // it only explains
  }
}

fs::path SageMakerCheckpointDir(std::string_view folder, const fs::path& dir, const fs::path& root) {
  if (folder.empty() || !OnSageMaker()) return {};
  const fs::path chosen = root / kCheckpoints / folder;
  return dir == chosen ? chosen : fs::path();
}

int64_t SageMakerPlanEndUnixS() {
  const char* text = std::getenv("SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP");
  if (text == nullptr || !IsTrainingJob()) return 0;
  int64_t milliseconds = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), milliseconds);
  return error == std::errc() && end == view.data() + view.size() ? milliseconds / 1000 : 0;
}

void UseSageMakerCheckpointDir(std::string_view folder, RunSpec& spec, const fs::path& root) {
  if (!spec.checkpoint_dir.empty() || spec.device == "meta" || spec.communicator == "virtual") return;
  const fs::path dir = root / kCheckpoints;
  std::error_code ec;
  if (!OnSageMaker() || !fs::is_directory(dir, ec)) return;
  spec.checkpoint_dir = folder.empty() ? dir : dir / folder;
}

}  // namespace ridgeline
