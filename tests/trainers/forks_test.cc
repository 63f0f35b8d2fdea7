// Logs of older releases and of forks of the shipped trainers, and lines behind a launcher's prefix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainers/posted_logs.h"

namespace ridgeline::trainers {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<double> ValuesIn(const Reading& reading, std::string_view name) {
  for (const FoundMetric& found : reading.found) {
    if (found.metric->figure->name == name) return found.values;
  }
  return {};
}

struct Line {
  const char* trainer;
  std::string log;
  struct Value {
    const char* name;
    double value;
  };
  std::vector<Value> values;
};

TEST(ForksOfTrainers, SayTheirValues) {
  const std::vector<Line> all = {
      // Primus prints the mean beside each value.
      {"megatron_lm",
       "[20251202 09:12:08][rank-7/8][INFO ] [----trainer.py:2560] : iteration  126/ 5000 | consumed samples: 16128 | "
       "elapsed time per iteration (ms): 13372.8/13364.7 | hip mem usage/free/total/usage_ratio: "
       "153.81GB/102.17GB/255.98GB/60.09% | throughput per GPU (TFLOP/s/GPU): 567.6/568.0 | tokens per GPU "
       "(tokens/s/GPU): 9801.4/9807.3 | learning rate: 9.984820E-06 | global batch size: 128 | lm loss: 6.548988E-03 | "
       "loss scale: 1.0 | grad norm: 0.061 | number of skipped iterations: 0 | number of nan iterations: 0 |\n",
       {{"step_time", 13372.8e6}, {"tflops_per_gpu", 567.6}, {"loss", 6.548988e-3}}},
      {"megatron_lm",
       " iteration 12/ 50 | elapsed time per iteration (ms): 1372.8/1364.7 | compute per GPU (TFLOP/s/GPU): 615.5 (avg "
       "615.4) | learning rate: 9.9E-06 |\n",
       {{"step_time", 1372.8e6}, {"tflops_per_gpu", 615.5}}},
      {"megatron_lm",
       "after 100 iterations memory (MB) | allocated: 1000.0 | max allocated: 2000.0 | cached: 3000.0 | max cached: "
       "3100.0\n",
       {{"device_peak", 2000.0 * (1 << 20)}, {"device_reserved", 3100.0 * (1 << 20)}}},
      // BigScience
      {"deepspeed",
       "[default7]: iteration    12695/  115311 | consumed samples: 9841584 | consumed tokens: 20155564032 | elapsed "
       "time per iteration (s): 105.22 | learning rate: 5.969E-05 | global batch size:  2048 | lm loss: 2.463556E+00 | "
       "grad norm: 0.174 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: "
       "19.463 | TFLOPs: 149.02 |\n",
       {{"step_time", 105.22e9}, {"tokens_per_s", 19.463 * 4096}, {"tflops_per_gpu", 149.02}, {"loss", 2.463556}}},
      // GPT-NeoX
      {"deepspeed",
       " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): 4103.1 | learning rate: "
       "2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.118665E+01 | number of skipped iterations:   0 | "
       "number of nan iterations:   0 |\n",
       {{"step_time", 4103.1e6}, {"tokens_per_s", 7.799 * 4096}, {"tflops_per_gpu", 112.9}, {"loss", 11.18665}}},
      {"nemo",
       "Training epoch 0, iteration 1/99 | lr: 2.9e-07 | global_step: 1 | reduced_train_loss: 11.02 | "
       "train_step_timing in s: 5.895 | TFLOPS_per_GPU: 612.3 | consumed_samples: 1024\n",
       {{"step_time", 5.895e9}, {"tflops_per_gpu", 612.3}}},
      {"maxtext",
       "completed step: 15107, seconds: 2.167, TFLOP/s: 36.722, loss: 2.191\n",
       {{"step_time", 2.167e9}, {"tflops_per_gpu", 36.722}, {"loss", 2.191}}},
      {"maxtext",
       "completed step: 9, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: 0.500\n",
       {{"tokens_per_s", 36653.244}, {"loss", 0.5}}},
      {"axolotl",
       "{'loss': 2.0312, 'grad_norm': 59.5, 'learning_rate': 4.9e-06, 'memory/max_mem_active(gib)': 34.89, "
       "'memory/max_mem_allocated(gib)': 34.75, 'memory/device_mem_reserved(gib)': 41.25, 'epoch': 2.0}\n",
       {{"device_peak", 34.75 * (1 << 30)}, {"device_reserved", 41.25 * (1 << 30)}}},
      {"hf_trainer",
       "***** train metrics *****\n  train_samples_per_second =      3.612\n  train_steps_per_second   =      0.500\n",
       {{"mean_step_time", 2e9}}},
      {"llama_factory",
       "[INFO|2025-01-16 10:00:12] llamafactory.train.callbacks:143 >> {'loss': 1.1234, 'learning_rate': 4.9000e-05}\n"
       "{'loss': 1.1234, 'grad_norm': 0.512, 'learning_rate': 4.9e-05, 'epoch': 0.08}\n",
       {{"loss", 1.1234}}},
      {"litgpt", "Memory used: 14.49 GB\n", {{"device_peak", 14.49e9}}},
  };
  for (const Line& line : all) {
    SCOPED_TRACE(line.log);
    const Trainer trainer = TrainerOf(line.trainer);
    const Reading reading = ReadPosted(trainer, line.log);
    for (const Line::Value& value : line.values) {
      EXPECT_THAT(ValuesIn(reading, value.name), ElementsAre(DoubleNear(value.value, 1e-9 * value.value + 0.5)))
          << value.name;
    }
  }
}

// Several launchers put the rank, the place or the time before each line.
TEST(LinesBehindAPrefix, AreReadAsIfTheyBeganThere) {
  const Trainer trainer = TrainerOf(
      "  - {name: step_time, regex: '^step (?P<step>\\d+) took (?P<value>\\S+) ms$', unit: ms, take: series}\n"
      "  - {name: parameters, regex: '^parameters: (\\d+)'}\n");
  for (const char* prefix :
       {"", "[rank0]: ", "[default0]:", "[1,0]<stdout>:", "0: ", " 12: ", "[rank0]: 2026-01-01 10:00:00 ",
        "2026-01-01T10:00:00.123456789Z ", "[2026-01-01 10:00:00,123] ", "(Worker pid=8) "}) {
    SCOPED_TRACE(prefix);
    const std::string at(prefix);
    const Reading reading = ReadPosted(
        trainer, at + "parameters: 124\n" + at + "step 1 took 5 ms\n" + at + "step 2 took 6 ms\n" + at + "no step 3\n");
    EXPECT_THAT(ValuesIn(reading, "step_time"), ElementsAre(5e6, 6e6));
    EXPECT_THAT(ValuesIn(reading, "parameters"), ElementsAre(124));
  }
  for (const char* own : {"validate: ", "[val] ", "val | ", "[eval]: "}) {
    EXPECT_THAT(ReadPosted(trainer, own + std::string("step 1 took 5 ms\n")).found, IsEmpty()) << own;
  }
  EXPECT_THAT(ValuesIn(ReadPosted(trainer, "[rank0]: step 1 took 5 ms\n[rank1]: step 1 took 7 ms\n"), "step_time"),
              ElementsAre(7e6))
      << "and the prefix still says the rank";
}

// A micro-step is a step only if there is one of them.
TEST(ForksOfTrainers, LitGptsTimeCountsWhereItIsAStepsAndNobodySawTheLinesArrive) {
  const Trainer trainer = TrainerOf("litgpt");
  const std::string log =
      "Epoch 1 | iter 16 step 16 | loss train: 10.976, val: n/a | iter time: 112.20 ms (step) remaining time: "
      "0:01:54\n";
  EXPECT_THAT(ValuesIn(ReadPosted(trainer, log), "step_time"), ElementsAre(112.2e6));
}

}  // namespace
}  // namespace ridgeline::trainers
