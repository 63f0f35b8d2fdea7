// A trainer from a definition, PyTorch itself, as Jobs on a real API server.
#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using testing::Kubernetes;
using testing::KubernetesCli;

constexpr const char* kTorch = RIDGELINE_SOURCE_DIR "/tests/trainers/torch";

class KubernetesTrainers : public testing::OnKubernetes {
 protected:
  const Kubernetes cluster_ = Kubernetes::Shared();
};

TEST_F(KubernetesTrainers, PyTorchIsMeasuredBesideOurs) {
  KubernetesCli cli(cluster_);
  std::filesystem::copy_file(std::filesystem::path(kTorch) / "torch-gpt.py", cli.dir / "torch-gpt.py");
  const auto sweep = cli.WriteText(fmt::format(
      "name: test\n"
      "defaults: {{family: gpt, layers: 1, hidden: 64, heads: 2, ffn: 256, vocab: 256, positions: 64, tied_head: true, "
      "seq_length: 32, precision: fp32}}\n"
      "matrix: {{trainer: [ridgeline, torch-gpt]}}\n"
      "measure: {{warmup_steps: 1, steps: 3}}\n"
      "launch: {{launcher: kubernetes, cpus: 1, time_limit: 5m, environment: {{TORCH_TRAINERS: /test}}, kubernetes: "
      "{{{}}}}}\n",
      cli.Settings("")));
  cli.ExpectOk(cli.Run({"run", "--trainers", kTorch, sweep}));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT model_causal_flops_per_step) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT version GLOB '[1-9]*.[0-9]*' FROM runs WHERE trainer = 'torch-gpt'"), 1);
  EXPECT_EQ(cli.Count("SELECT json_array_length(all_steps_ns) FROM runs WHERE trainer = 'torch-gpt'"), 4);
  EXPECT_EQ(cli.Count("SELECT json_array_length(loss) FROM runs WHERE trainer = 'torch-gpt'"), 4);
}

TEST_F(KubernetesTrainers, PyTorchsRanksAreMeasuredBesideOurs) {
  KubernetesCli cli(cluster_);
  std::filesystem::copy_file(std::filesystem::path(kTorch) / "torch-ddp.py", cli.dir / "torch-ddp.py");
  const auto sweep = cli.WriteText(fmt::format(
      "name: test\n"
      "defaults: {{family: stack, layers: 1, hidden: 64, heads: 2, ffn: 256, seq_length: 32, precision: fp32, ranks: "
      "2}}\n"
      "matrix: {{trainer: [ridgeline, torch-ddp]}}\n"
      "measure: {{warmup_steps: 1, steps: 2}}\n"
      "launch: {{launcher: kubernetes, cpus: 2, time_limit: 5m, environment: {{TORCH_TRAINERS: /test}}, kubernetes: "
      "{{{}}}}}\n",
      cli.Settings("")));
  cli.ExpectOk(cli.Run({"run", "--trainers", kTorch, sweep}));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT parameters) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT model_causal_flops_per_step) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT version GLOB '[1-9]*.[0-9]*' FROM runs WHERE trainer = 'torch-ddp'"), 1);
  EXPECT_EQ(cli.Count("SELECT cold_tokens_per_s > 0 FROM runs WHERE trainer = 'torch-ddp'"), 1);
}

}  // namespace
}  // namespace ridgeline
