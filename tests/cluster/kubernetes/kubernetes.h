// A real Kubernetes (its nodes are doubles, see ../kubernetes-node), and sweeps that run on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "tests/cluster/cluster_cli.h"

namespace ridgeline::testing {

inline std::filesystem::path KubernetesBinaries() { return std::filesystem::path(RIDGELINE_BINARY_DIR) / "kubernetes"; }

// Returns why there is no Kubernetes to test on; empty if there is one.
inline std::string WhyNoKubernetes() {
  const std::filesystem::path shared = std::filesystem::path(RIDGELINE_BINARY_DIR) / "k8s/kubeconfig";
  return std::filesystem::exists(shared) ? "" : "there is no Kubernetes; the tests k8s_build and k8s_up say why";
}

// Either the one that the tests of a run share, or a test's own, which is gone with this object.
class Kubernetes {
 public:
  static Kubernetes Shared() { return At(std::filesystem::path(RIDGELINE_BINARY_DIR) / "k8s"); }
  static Kubernetes At(const std::filesystem::path& dir) { return Kubernetes(dir); }
  static Kubernetes Own(const std::vector<std::string>& options = {}) {
    auto folder = std::make_unique<TempDir>();
    Kubernetes own(folder->path() / "cluster");
    own.folder_ = std::move(folder);
    std::vector<std::string> start = {"--bin=" + KubernetesBinaries().string(), fmt::format("--until={}", ::getpid())};
    start.insert(start.end(), options.begin(), options.end());
    own.Script("start", start);
    return own;
  }
  Kubernetes(Kubernetes&&) = default;
  ~Kubernetes() {
    if (folder_) Script("remove", {});
  }

  std::filesystem::path Config(const std::string& user) const { return dir_ / (user + ".kubeconfig"); }
  std::filesystem::path dir() const { return dir_; }

  // A user without rights. `name_space`: what is chosen for the user's commands.
  void User(const std::string& name, const std::string& name_space) const { Script("user", {name, name_space}); }
  void ApiServer(const std::string& what) const { Script("apiserver", {what}); }
  void Etcd(const std::string& what) const { Script("etcd", {what}); }
  // The node's image contains the programs under test.
  void StartNode(const std::string& name, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {name, "start", "--image=" RIDGELINE_BINARY_DIR "/bin=/opt/ridgeline/bin",
                                          "--image=" RIDGELINE_BINARY_DIR "/tests/fakes=/opt/ridgeline/fakes",
                                          "--image-path=/opt/ridgeline/bin"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Script("node", arguments);
  }
  // Doubles of the controllers of other kinds than Kubernetes' own.
  void StartControllers() const { Script("controllers", {}); }
  void KillNode(const std::string& name) const { Script("node", {name, "kill"}); }
  void OrphanNode(const std::string& name) const { Script("node", {name, "orphan"}); }

  // As the cluster's administrator.
  Captured TryKubectl(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {KubernetesBinaries() / "kubectl",
                                     "--kubeconfig=" + (dir_ / "kubeconfig").string()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return ridgeline::Run(argv);
  }
  std::string Kubectl(const std::vector<std::string>& arguments) const {
    const Captured done = TryKubectl(arguments);
    EXPECT_TRUE(done.status.ok()) << fmt::format("{}", fmt::join(arguments, " ")) << ": " << done.stderr_text;
    return done.stdout_text;
  }
  // Creates an object from a manifest, in any namespace.
  void Create(const Json& object, const std::string& name_space) const {
    const TempDir dir;
    WriteFileAtomic(dir / "object.json", DumpJson(object));
    Kubectl(
        {"create", "--validate=false", "--namespace=" + name_space, "--filename=" + (dir / "object.json").string()});
  }

 private:
  explicit Kubernetes(std::filesystem::path dir) : dir_(std::move(dir)) {}

  void Script(const std::string& action, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {RIDGELINE_SOURCE_DIR "/tests/cluster/kubernetes-cluster", action, dir_};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const Captured done = ridgeline::Run(argv);
    EXPECT_TRUE(done.status.ok()) << done.stdout_text << done.stderr_text;
  }

  std::unique_ptr<TempDir> folder_;
  std::filesystem::path dir_;
};

// A sweep with the fake trainer.
struct KubernetesSweep {
  int points = 1;
  std::string trainer = "ok";   // its modes, or one for each seed from 0
  std::string kubernetes = {};  // more of `launch: kubernetes:`
  std::string launch = {};      // more of `launch:`
  std::string more = {};        // more of the sweep
  std::string script = {};      // shell words that the trainer runs first
};

// The real `ridgeline`, as a user in a namespace of its own who has only the rights that ship with it.
class KubernetesCli : public ClusterCli {
 public:
  // `kind`: what its jobs become, as sweeps call it. The user has the rights for that.
  explicit KubernetesCli(const Kubernetes& cluster, bool with_rights = true, std::string kind = "job")
      : cluster_(cluster), kind_(std::move(kind)) {
    std::filesystem::permissions(dir.path(),
                                 std::filesystem::perms(0777));  // pods write into it as an unprivileged user
    std::random_device random;
    name_space = fmt::format("test-{:08x}", random());
    const std::string user = "driver-" + name_space;
    cluster_.User(user, name_space);  // so that the sweep need not name it
    std::string objects = fmt::format("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", name_space);
    if (with_rights) objects += Role("") + (kind_ == "job" ? "" : Role("-" + kind_));
    Create(objects);
    if (with_rights && kind_ == "trainjob") {  // another test may have applied it
      cluster_.Kubectl({"apply", "--validate=false",
                        "--filename=" RIDGELINE_SOURCE_DIR "/plugins/kubernetes/deploy/training-runtime.yaml"});
    }
    EXPECT_TRUE(Eventually([&] {
      return cluster_.TryKubectl({"get", "--namespace=" + name_space, "serviceaccount", "default"}).status.ok();
    }));
    ::setenv("KUBECONFIG", cluster_.Config(user).c_str(), 1);
    const char* path = std::getenv("PATH");
    ::setenv("PATH", fmt::format("{}:{}", KubernetesBinaries().string(), path == nullptr ? "" : path).c_str(), 1);
  }
  ~KubernetesCli() {
    if (::testing::Test::HasFailure()) {
      const std::string in = "--namespace=" + name_space;
      const std::string kinds = Kinds("jobs,pods");
      ADD_FAILURE() << cluster_.TryKubectl({"get", in, kinds + ",events"}).stdout_text
                    << cluster_.TryKubectl({"get", in, kinds, "--output=yaml"}).stdout_text;
    }
    cluster_.TryKubectl({"delete", "namespace", name_space, "--wait=false"});
  }
  KubernetesCli(const KubernetesCli&) = delete;
  KubernetesCli& operator=(const KubernetesCli&) = delete;

  std::string Kubectl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "--namespace=" + name_space);
    return cluster_.Kubectl(arguments);
  }

  std::filesystem::path Write(const KubernetesSweep& sweep) const {
    std::vector<int> seeds;
    for (int seed = 0; seed < sweep.points; ++seed) seeds.push_back(seed);
    const std::string script =
        fmt::format("echo start >>/test/starts; {} exec /opt/ridgeline/fakes/fake_trainer \"$@\"", sweep.script);
    return WriteText(fmt::format(
        "name: test\n"
        "defaults: {{model: llama-5m, seq_length: 64}}\n"
        "matrix: {{seed: [{}]}}\n"
        "launch:\n  launcher: kubernetes\n  cpus: 1\n  trainer: [/bin/sh, -c, {}, fake, {}]\n"
        "  kubernetes: {{{}}}\n  {}\n{}",
        fmt::join(seeds, ", "), DumpJson(script), sweep.trainer, Settings(sweep.kubernetes), sweep.launch, sweep.more));
  }
  std::filesystem::path WriteReal(const std::string& matrix, const std::string& kubernetes = "",
                                  const std::string& more = "", int steps = 3) const {
    return WriteTiny("kubernetes", Settings(kubernetes), matrix, more, steps);
  }
  // `image`, unless `more` has one, and the test's folder mounted at /test.
  std::string Settings(const std::string& more) const {
    return fmt::format("{}volumes: [{{name: test, mount: /test, hostPath: {{path: {}}}}}]{}{}",
                       more.find("image:") == std::string::npos ? "image: test/ridgeline:1, " : "", dir.path().string(),
                       more.empty() ? "" : ", ", more);
  }
  static std::string Fault(const std::string& name) {
    return fmt::format("patch: {{metadata: {{annotations: {{ridgeline.test/fault: {}}}}}}}", name);
  }

  // As a trainer's `script`: the first trainer hangs until a test ends it.
  static constexpr const char* kFirstHangs = "[ $(wc -l </test/starts) -gt 1 ] || exec sleep infinity;";

  bool WaitForStarts(int64_t count) const {
    return Eventually([&] { return Starts() >= count; });
  }
  // Names of the objects of a kind: "job.batch/rl-…".
  std::vector<std::string> Objects(const std::string& kinds) const {
    std::vector<std::string> names;
    std::istringstream in(Kubectl({"get", kinds, "--output=name"}));
    for (std::string line; std::getline(in, line);) {
      // Objects that the cluster gives each namespace and its accounts.
      const bool its_own = line.find("kube-root-ca") != std::string::npos || line.find("-token-") != std::string::npos;
      if (!its_own) names.push_back(line);
    }
    return names;
  }

  // How its results ended, sorted; infrastructure by its reasons: "node ok".
  std::string Ends() {
    std::vector<std::string> ends;
    for (const auto& row : OpenStore().Query(fmt::format("SELECT {} AS end FROM results ORDER BY end", kEnd)).rows) {
      ends.push_back(std::get<std::string>(row.at(0)));
    }
    return fmt::format("{}", fmt::join(ends, " "));
  }
  // A column of the result with this end.
  std::string OfEnd(const std::string& column, const std::string& end) {
    return Cell(fmt::format("SELECT {} FROM results WHERE {} = '{}'", column, kEnd, end));
  }
  std::string EvidenceOfEnd(const std::string& name, const std::string& end) {
    return OfEnd(fmt::format("evidence ->> '$.{}'", name), end);
  }
  // Points are left without a result.
  static void ExpectUnmeasured(const Output& output) {
    EXPECT_EQ(output.status.exit_code, 3) << output.out << output.err;
  }

  // Gives the user a shipped Role, in this namespace: that of every driver, or that of an option, "-jobset".
  void TakeRole(const std::string& option) const { Create(Role(option)); }

  std::string name_space;

 protected:
  void ExpectNothingOnTheCluster() override {
    const std::string kinds = Kinds("jobs,configmaps,secrets,services,pods");
    EXPECT_TRUE(Eventually([&] { return Objects(kinds).empty(); }))
        << fmt::format("{}", fmt::join(Objects(kinds), " ")) << " are left";
  }

 private:
  // The documents of a shipped Role in this namespace, and of the user's binding to it.
  std::string Role(const std::string& option) const {
    std::string role =
        ReadFile(fmt::format(RIDGELINE_SOURCE_DIR "/plugins/kubernetes/deploy/driver-role{}.yaml", option));
    const std::string shipped = "namespace: ridgeline";
    for (size_t at = 0; (at = role.find(shipped, at)) != std::string::npos;) {
      role.replace(at, shipped.size(), "namespace: " + name_space);
    }
    return fmt::format(
        "---\n{0}---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: test{1}, namespace: {2}}}\n"
        "roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: ridgeline-driver{1}}}\n"
        "subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: driver-{2}}}]\n",
        role, option, name_space);
  }
  // Creates all objects of a YAML text. One call of kubectl takes a quarter of a second of a processor.
  void Create(const std::string& objects) const {
    WriteFileAtomic(dir / "objects.yaml", objects);
    cluster_.Kubectl({"create", "--validate=false", "--filename=" + (dir / "objects.yaml").string()});
  }
  // These kinds, and that of the jobs.
  std::string Kinds(const std::string& kinds) const { return kind_ == "job" ? kinds : kinds + ',' + kind_; }

  static constexpr const char* kEnd = "iif(status = 'infrastructure', reason, status)";

  const Kubernetes& cluster_;
  const std::string kind_;
};

// A test that is skipped if no Kubernetes is available.
class OnKubernetes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKubernetes(); !why.empty()) GTEST_SKIP() << why;
  }
};

}  // namespace ridgeline::testing
