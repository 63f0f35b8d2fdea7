// Lines as people post them, with their values: from many trainers, ranks and writers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "stats/median.h"
#include "tests/trainers/posted_logs.h"

namespace ridgeline::trainers {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;

struct Expected {
  const char* name;
  std::vector<double> values;
  std::vector<int64_t> steps = {};
};

struct Posted {
  const char* what;
  const char* trainer;  // a shipped one, or else the metrics of a definition
  const char* log;
  std::vector<Expected> found;
};

const FoundMetric* Find(const Reading& reading, std::string_view name) {
  for (const FoundMetric& found : reading.found) {
    if (found.metric->figure->name == name) return &found;
  }
  return nullptr;
}

constexpr const char* kNanotron =
    "  - {name: step_time, regex: 'iteration: (?P<step>\\d+) / \\d+ .* elapsed_time_per_iteration_ms: (?P<value>\\S+) "
    "\\|', "
    "unit: ms, take: series}\n"
    "  - {name: tokens_per_s, regex: 'iteration: (?P<step>\\d+) / .* tokens_per_sec: (?P<value>\\S+) \\|', unit: "
    "tokens/s, take: series}\n"
    "  - {name: tflops_per_gpu, regex: 'iteration: (?P<step>\\d+) / .* model_tflops_per_gpu: (?P<value>\\S+) \\|', "
    "unit: "
    "TFLOP/s/GPU, take: series}\n"
    "  - {name: loss, regex: 'iteration: (?P<step>\\d+) / .* lm_loss: (?P<value>\\S+) \\|', take: series}\n"
    "  - {name: device_reserved, regex: 'cuda_max_memory_reserved: (?P<value>[\\d.]+[KMG]?)', unit: bytes, take: "
    "max}\n";

const std::vector<Posted>& Logs() {
  static const std::vector<Posted> logs = {
      {"torchtitan of 2026, eight ranks printing",
       "torchtitan",
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory: "
       "66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%\n"
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory: "
       "66.95GiB(37.51%)  tps: 10,049  tflops: 314.68  mfu: 13.99%\n"
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory: "
       "66.91GiB(37.51%)  tps: 10,050  tflops: 314.69  mfu: 13.99%\n"
       "[titan] 2026-02-24 19:46:19,145 - root - INFO - step:  5  loss:  7.07623  grad_norm: 46.5000  memory: "
       "66.91GiB(37.51%)  tps: 10,007  tflops: 313.36  mfu: 13.93%\n"
       "[titan] 2026-02-24 19:46:19,145 - root - INFO - step:  5  loss:  7.07623  grad_norm: 46.5000  memory: "
       "66.91GiB(37.51%)  tps: 10,008  tflops: 313.37  mfu: 13.93%\n",
       {{"tokens_per_s", {10049, 10007}, {4, 5}},
        {"loss", {7.62585, 7.07623}, {4, 5}},
        {"grad_norm", {26.625, 46.5}},
        {"tflops_per_gpu", {314.68, 313.36}},
        {"mfu", {0.1399, 0.1393}},
        {"device_reserved", {71887015117}}}},
      {"torchtitan of early 2025, without clipping",
       "torchtitan",
       "[rank0]:[titan] 2025-03-12 11:10:21,511 - root - INFO - step: 22  loss:  6.2250  memory:  1.41GiB(1.79%)  tps: "
       "193,831  tflops: 18.36  mfu: 1.86%\n"
       "[rank0]:[titan] 2025-03-12 11:10:21,589 - root - INFO - step: 23  loss:  6.2236  memory:  1.41GiB(1.79%)  tps: "
       "212,462  tflops: 20.12  mfu: 2.03%\n"
       "[rank0]:[titan] 2025-03-12 11:10:22,589 - root - INFO - validate step: 23  loss:  6.1  memory:  9.41GiB(1.79%) "
       " "
       "tps: 999,462\n",
       {{"tokens_per_s", {193831, 212462}, {22, 23}},
        {"loss", {6.225, 6.2236}},
        {"mfu", {0.0186, 0.0203}},
        {"device_reserved", {1513975972}}}},
      {"torchtitan of 2024, in words a second",
       "torchtitan",
       "[rank0]:2024-08-01 17:12:17,465 - root - INFO - \x1b[36mstep:  1  \x1b[32mloss:  7.9016  "
       "\x1b[33mmemory:  1.34GiB(1.41%)  \x1b[34mwps: 7,154  \x1b[35mmfu: 0.54%\x1b[39m\n"
       "[rank0]:2024-08-01 17:12:18,465 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  4.9016  "
       "\x1b[33mmemory:  1.38GiB(1.45%)  \x1b[34mwps: 120,154  \x1b[35mmfu: 9.54%\x1b[39m\n",
       {{"tokens_per_s", {7154, 120154}, {1, 10}}, {"mfu", {0.0054, 0.0954}}, {"loss", {7.9016, 4.9016}}}},
      {"torchtitan in two stages, of which the last alone has a loss",
       "torchtitan",
       "[rank0]:[titan] 2025-05-28 21:13:37,816 - root - INFO - step:  1  loss: -1.0000  memory: 36.90GiB(46.63%)  "
       "tps: 40  tflops: 0.90  mfu: 0.29%\n"
       "[rank4]:[titan] 2025-05-28 21:13:37,816 - root - INFO - step:  1  loss: 12.2500  memory: 42.78GiB(54.06%)  "
       "tps: 40  tflops: 0.90  mfu: 0.29%\n",
       {{"tokens_per_s", {40}, {1}}, {"loss", {12.25}, {1}}, {"device_reserved", {45934675231}}}},
      {"LLaMA-Factory, whose callback says the Trainer's loss again",
       "hf_trainer",
       "[INFO|2025-01-16 10:00:12] llamafactory.train.callbacks:143 >> {'loss': 1.1234, 'learning_rate': 4.9000e-05, "
       "'epoch': 0.08, 'throughput': 1234.56}\n"
       "{'loss': 1.1234, 'grad_norm': 0.512, 'learning_rate': 4.9e-05, 'epoch': 0.08, 'num_input_tokens_seen': 12345}\n"
       "{'loss': 1.0234, 'grad_norm': 0.412, 'learning_rate': 4.8e-05, 'epoch': 0.16}\n",
       {{"loss", {1.1234, 1.0234}}, {"grad_norm", {0.512, 0.412}}}},
      {"nanotron's count of parameters",
       "nanotron",
       "01/17/2024 13:47:27 [INFO|DP=0|PP=0|TP=0|ip-26-0-160-225]: Total number of parameters: 1.24G (2357.13MiB)\n",
       {{"parameters", {1.24e9}}}},
      {"torchtitan that knows no peak of its GPU",
       "torchtitan",
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm: 26.6250  memory: "
       "66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: N/A\n",
       {{"tokens_per_s", {10050}}, {"tflops_per_gpu", {314.71}}}},
      {"Megatron-LM of 2025",
       "megatron_lm",
       "[Rank 0] (after 1 iterations) memory (MB) | allocated: 10770.3779296875 | max allocated: 15754.88818359375 | "
       "reserved: 16334.0 | max reserved: 16334.0\n"
       " [2025-08-01 07:19:37] iteration        1/    5000 | consumed samples:          128 | elapsed time per "
       "iteration "
       "(ms): 19138.8 | throughput per GPU (TFLOP/s/GPU): 80.2 | learning rate: 6.976744E-08 | global batch size:   "
       "128 | "
       "lm loss: 1.043863E+01 | loss scale: 1.0 | grad norm: 26.203 | number of skipped iterations:   0 | number of "
       "nan "
       "iterations:   0 |\n"
       " [2025-08-01 07:19:50] iteration        2/    5000 | consumed samples:          256 | elapsed time per "
       "iteration "
       "(ms): 12936.1 | throughput per GPU (TFLOP/s/GPU): 118.7 | learning rate: 1.395349E-07 | global batch size:   "
       "128 | "
       "lm loss: 1.044022E+01 | loss scale: 1.0 | grad norm: 25.3 | number of skipped iterations:   0 | number of nan "
       "iterations:   0 |\n",
       {{"step_time", {19138.8e6, 12936.1e6}, {1, 2}},
        {"tflops_per_gpu", {80.2, 118.7}},
        {"loss", {10.43863, 10.44022}},
        {"grad_norm", {26.203, 25.3}},
        {"device_peak", {16520197632}},
        {"device_reserved", {17127440384}}}},
      {"Megatron-LM, two ranks' memory in one line",
       "megatron_lm",
       "[Rank 2] (after 1 iterations) memory (MB) | allocated: 9334.3779296875 | max allocated: 12680.6357421875 | "
       "reserved: 13236.0 | max reserved: 13236.0[Rank 6] (after 1 iterations) memory (MB) | allocated: 10850.67578125 "
       "| "
       "max allocated: 10850.70751953125 | reserved: 11000.0 | max reserved: 11000.0\n\n",
       {{"device_peak", {13296610304}}, {"device_reserved", {13878951936}}}},
      {"Megatron-LM of 2022, every tenth iteration",
       "megatron_lm",
       " iteration       10/ 1000000 | consumed samples:           40 | elapsed time per iteration (ms): 356.2 | "
       "learning "
       "rate: 0.000E+00 | global batch size:     4 | loss scale: 8388608.0 | number of skipped iterations:  10 | "
       "number of "
       "nan iterations:   0 |\n"
       " iteration       20/ 1000000 | consumed samples:           80 | elapsed time per iteration (ms): 140.6 | "
       "learning "
       "rate: 2.020E-08 | global batch size:     4 | lm loss: 1.005022E+01 | sop loss: 8.174902E-01 | loss scale: "
       "32768.0 | "
       "grad norm: 217.199 | number of skipped iterations:   1 | number of nan iterations:   0 |\n",
       {{"step_time", {356.2e6, 140.6e6}, {10, 20}}, {"loss", {10.05022}, {20}}, {"grad_norm", {217.199}}}},
      {"Megatron-LM of 2020",
       "megatron_lm",
       " iteration      100/  500000 | elapsed time per iteration (ms): 528.9 | learning rate 1.500E-06 | lm loss "
       "9.512364E+00 | loss scale 131072.0 |\n",
       {{"step_time", {528.9e6}, {100}}, {"loss", {9.512364}}}},
      {"Megatron-LM's parameters, the same from every data-parallel rank",
       "megatron_lm",
       " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 178100224\n"
       " > number of parameters on (tensor, pipeline) model parallel rank (1, 0): 178100224\n"
       " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 178100224\n"
       " > number of parameters on (tensor, pipeline) model parallel rank (1, 0): 178100224\n",
       {{"parameters", {356200448}}}},
      {"Megatron-LM's parameters since 0.19",
       "megatron_lm",
       " > number of parameters on (tensor, gtp_weight_remat, pipeline) model parallel rank (0, 0, 0): 178100224\n"
       " > number of parameters on (tensor, gtp_weight_remat, pipeline) model parallel rank (1, 0, 0): 178100225\n"
       " > number of parameters on (tensor, gtp_weight_remat, pipeline) model parallel rank (0, 0, 1): 178100226\n",
       {{"parameters", {534300675}}}},
      {"Megatron-LM's memory since 0.19, with that of the whole device",
       "megatron_lm",
       "[Rank 3] (after 2 iterations) memory (MB) | allocated: 2396.44 | max allocated: 9968.00 | reserved: 12044.00 | "
       "max reserved: 12045.00 | total device memory used: 13000.50\n",
       {{"device_peak", {9968LL << 20}}, {"device_reserved", {12045LL << 20}}}},
      {"Megatron-LM of 2026, a mixture of experts",
       "megatron_lm",
       " [2026-08-01 07:19:37.100000] iteration        3/      12 | consumed samples:          384 | elapsed time per "
       "iteration (ms): 900.5 | throughput per GPU (TFLOP/s/GPU): 412.5 | learning rate: 3.000000E-04 | global batch "
       "size:   128 | lm loss: 1.040000E+01 | load_balancing_loss: 1.010000E+00 | loss scale: 1.0 | grad norm: 2.500 | "
       "number of skipped iterations:   0 | number of nan iterations:   0 |\n",
       {{"step_time", {900.5e6}, {3}}, {"tflops_per_gpu", {412.5}}, {"loss", {10.4}}, {"grad_norm", {2.5}}}},
      {"Megatron-LM by srun --label, on the last rank",
       "megatron_lm",
       "15:  [2025-08-01 07:19:37.100000] iteration        3/    5000 | consumed samples:          128 | elapsed time "
       "per "
       "iteration (ms): 900.5 | learning rate: 6.9E-08 | global batch size:   128 | lm loss: 1.04E+01 | loss scale: "
       "1.0 | "
       "grad norm: 2.5 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
       {{"step_time", {900.5e6}, {3}}}},
      {"Megatron-Bridge of 2025",
       "nemo",
       "Step Time : 12.78s GPU utilization: 528.1 TFLOP/s/GPU\n"
       "Step Time : 12.70s GPU utilization: 530.2MODEL_TFLOP/s/GPU\n"
       "[Rank 0] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 51.072 | mem-active-gigabytes: 51.072 | "
       "mem-inactive-gigabytes: 10.971 | mem-reserved-gigabytes: 216.89 | mem-max-allocated-gigabytes: 194.41 | "
       "mem-max-active-gigabytes: 195.46 | mem-max-inactive-gigabytes: 14.369 | mem-max-reserved-gigabytes: 216.89 | "
       "mem-alloc-retires: 0 | mem-allocated-count: 571\n",
       {{"tflops_per_gpu", {528.1, 530.2}}, {"device_peak", {194.41e9}}, {"device_reserved", {216.89e9}}}},
      {"NeMo 2",
       "nemo",
       "Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 1 | global_step: "
       "120 "
       "| reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106\n"
       "Training epoch 0, iteration 121/149 | lr: 3e-05 | consumed_samples: 122 | global_batch_size: 1 | global_step: "
       "121 "
       "| reduced_train_loss: 1.288 | train_step_timing in s: 0.03163 | val_loss: 4.106\n",
       {{"step_time", {31460000, 31630000}, {120, 121}}, {"loss", {1.233, 1.288}, {120, 121}}}},
      {"NeMo 1, whose step is rounded",
       "nemo",
       "Epoch 0: :   3%|3         | 8999/301500 [1:42:41<55:37:46, v_num=0-56, reduced_train_loss=2.100, "
       "global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.616]\r"
       "Epoch 0: :   3%|3         | 9000/301500 [1:42:42<55:37:46, v_num=0-56, reduced_train_loss=2.000, "
       "global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.615, val_loss=7.040]\r"
       "Epoch 0: :   3%|3         | 9000/301500 [1:42:42<55:37:46, v_num=0-56, reduced_train_loss=2.000, "
       "global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.615, val_loss=7.040]\n",
       {{"step_time", {616e6, 615e6}, {8999, 9000}}, {"loss", {2.1, 2.0}, {8999, 9000}}}},
      {"DeepSpeed of early 2022",
       "deepspeed",
       "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.5, MemAllocated=0.26GB, "
       "MaxMemAllocated=9.02GB\n"
       "[2022-03-11 02:07:14,130] [INFO] [timer.py:189:stop] 0/50, SamplesPerSec=84, MemAllocated=0.26GB, "
       "MaxMemAllocated=9.02GB\n",
       {{"tokens_per_s", {84 * 4096}}, {"device_peak", {9685151252}}}},
      {"DeepSpeed of late 2022, with its memory",
       "deepspeed",
       "[2022-11-11 08:40:18,037] [INFO] [utils.py:832:see_memory_usage] MA 4.96 GB         Max_MA 5.09 GB         CA "
       "6.39 "
       "GB         Max_CA 6 GB \n"
       "[2022-11-11 08:40:18,050] [INFO] [timer.py:207:stop] 0/2498, RunningAvgSamplesPerSec=3.066608367950589, "
       "CurrSamplesPerSec=2.25, MemAllocated=0.02GB, MaxMemAllocated=0.02GB\n",
       {{"tokens_per_s", {2.25 * 4096}, {2498}}, {"device_reserved", {6442450944}}, {"device_peak", {21474836}}}},
      {"DeepSpeed's memory alone",
       "deepspeed",
       "[2023-03-28 12:06:47,553] [INFO] [utils.py:830:see_memory_usage] MA 25.52 GB         Max_MA 25.52 GB         "
       "CA "
       "28.33 GB         Max_CA 46 GB \n",
       {{"device_peak", {27401891348}}, {"device_reserved", {49392123904}}}},
      {"DeepSpeed of 2024",
       "deepspeed",
       "[2024-05-01 10:00:00,000] [INFO] [timer.py:258:stop] epoch=0/micro_step=80/global_step=10, "
       "RunningAvgSamplesPerSec=45.4, CurrSamplesPerSec=45.5, MemAllocated=2.1GB, MaxMemAllocated=14.34GB\n",
       {{"tokens_per_s", {45.5 * 4096}, {10}}, {"device_peak", {15397457756}}}},
      {"the Trainer of Hugging Face, release 4, with its bar",
       "hf_trainer",
       "  1%|1         | 1/100 [00:01<02:22,  1.44s/it]{'loss': 2.3412, 'grad_norm': 1.25, 'learning_rate': 5e-05, "
       "'epoch': "
       "0.01}\n  1%|1         | 1/100 [00:01<02:22,  1.44s/it]\r  2%|2         | 2/100 [00:02<02:20,  "
       "1.40s/it]{'loss': "
       "2.3, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.02}\n",
       {{"loss", {2.3412, 2.3}}, {"grad_norm", {1.25, 1.2}}}},
      {"Axolotl of 2025, its numbers as text",
       "hf_trainer",
       "{'loss': '0.7157', 'grad_norm': '12.79', 'learning_rate': '0', 'ppl': '2.046', 'memory/max_active (GiB)': "
       "'2.98', "
       "'memory/max_allocated (GiB)': '2.98', 'memory/device_reserved (GiB)': '4.12', 'tokens/trainable': 93, "
       "'tokens/total': 512, 'epoch': '0.1333'}\n",
       {{"loss", {0.7157}}, {"grad_norm", {12.79}}, {"device_peak", {3199750636}}, {"device_reserved", {4423816315}}}},
      {"TRL, each line of four ranks",
       "hf_trainer",
       "{'loss': 1.5, 'grad_norm': 2.0, 'epoch': 0.1}\n{'loss': 1.5, 'grad_norm': 2.0, 'epoch': 0.1}\n"
       "{'loss': 1.5, 'grad_norm': 2.0, 'epoch': 0.1}\n{'loss': 1.25, 'grad_norm': 2.0, 'epoch': 0.2}\n"
       "{'loss': 1.5, 'grad_norm': 2.0, 'epoch': 0.1}\n{'loss': 1.25, 'grad_norm': 2.0, 'epoch': 0.2}\n"
       "{'loss': 1.25, 'grad_norm': 2.0, 'epoch': 0.2}\n{'loss': 1.25, 'grad_norm': 2.0, 'epoch': 0.2}\n",
       {{"loss", {1.5, 1.25}}, {"grad_norm", {2, 2}}}},
      {"Composer of early 2023, in bytes",
       "llm_foundry",
       "[batch=12/4800]:\n\t Train memory/reserved_mem: 40017854464\n\t Train loss/train/total: 9.5237\n"
       "\t Train throughput/tokens_per_sec: 170801.3840\n\t Train throughput/device/flops_per_sec: "
       "83509054391293.6562\n"
       "\t Train throughput/device/mfu: 0.2677\n",
       {{"device_reserved", {40017854464}},
        {"tokens_per_s", {170801.384}},
        {"tflops_per_gpu", {83.5090543912936562}},
        {"mfu", {0.2677}},
        {"loss", {9.5237}}}},
      {"Composer of 2024",
       "llm_foundry",
       "[batch=5/100]:\n\t Train time/secs_per_step: 0.4125\n\t Train memory/peak_allocated_mem: 21.3130\n"
       "\t Train memory/peak_reserved_mem: 26.1240\n",
       {{"step_time", {412500000}}, {"device_peak", {21313000000}}, {"device_reserved", {26124000000}}}},
      {"nanoGPT, without mfu and with it",
       "nanogpt",
       "iter 1631: loss 4.0863, time 561.94ms\niter 1632: loss 3.7441, time 563.15ms, mfu -100.00%\n"
       "iter 1633: loss 3.9848, time 562.11ms, mfu 41.25%\n",
       {{"step_time", {561.94e6, 563.15e6, 562.11e6}, {1631, 1632, 1633}}, {"mfu", {0.4125}, {1633}}}},
      {"llm.c whose GPU it does not know",
       "llm_c",
       "step    1/6 | loss 11.009 (+nanz)| norm 15.3 (+nanz)| lr 3.00e-04 | 2012.33 ms | -100.0% bf16 MFU | 260543 "
       "tok/s\n"
       "step    2/6 | loss 10.5 (+nanz)| norm 5.3 (+nanz)| lr 3.00e-04 | 1880.50 ms | 42.5% bf16 MFU | 279000 tok/s\n",
       {{"step_time", {2012330000, 1880500000}, {1, 2}}, {"mfu", {0.425}, {2}}, {"tokens_per_s", {260543, 279000}}}},
      {"nanotron, with suffixes",
       kNanotron,
       "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: 85.8G | "
       "elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | "
       "global_batch_size: "
       "64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | hardware_tflops_per_gpu: 38.3 | grad_norm: 1.25\n"
       "01/17/2024 14:02:16 [INFO|DP=0|PP=0|TP=0|ip-26-0-160-225]: iteration: 327282 / 378950 | consumed_tokens: 634K "
       "| "
       "elapsed_time_per_iteration_ms: 272 | tokens_per_sec: 2.35K | tokens_per_sec_per_gpu: 294 | global_batch_size: "
       "20 | "
       "lm_loss: 9.63 | lr: 1e-05 | model_tflops_per_gpu: 0.00744 | hardware_tflops_per_gpu: 0.0075 | grad_norm: 1.11 "
       "| "
       "cuda_memory_allocated: 90.9M | cuda_max_memory_reserved: 570M | hd_total_memory_tb: 312G\n",
       {{"step_time", {11.5e9, 272e6}, {327281, 327282}},
        {"tokens_per_s", {22800, 2350}},
        {"tflops_per_gpu", {38.3, 0.00744}},
        {"loss", {2.38, 9.63}},
        {"device_reserved", {570e6}}}},
      {"a bar that turns from seconds to iterations a second",
       kTqdm,
       " 32%|####      | 281/873 [25:36<52:46,  5.50s/it]\r 32%|####      | 282/873 [25:40<49:29,  4it/s]\r"
       " 32%|####      | 282/873 [25:40<49:29,  4it/s]\n 33%|####      | 283/873 [25:44<47:06,  ?it/s]\n",
       {{"step_time", {5.5e9, 0.25e9}, {281, 282}}}},
      {"MaxText",
       "  - {name: step_time, regex: 'completed step: (?P<step>\\d+), seconds: (?P<value>[\\d.]+)', unit: s, take: "
       "series}\n"
       "  - {name: tokens_per_s, regex: 'step: (?P<step>\\d+), .*Tokens/s/device: (?P<value>[\\d.]+)', unit: "
       "tokens/s/GPU, "
       "take: series}\n",
       "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 196608, "
       "loss: "
       "10.374\n",
       {{"step_time", {5.667e9}, {9}}, {"tokens_per_s", {8672.758}}}},
      {"torchtune",
       "  - {name: tokens_per_s, regex: 'Step (?P<step>\\d+) \\|.* tokens_per_second_per_gpu:(?P<value>\\S+)', unit: "
       "tokens/s/GPU, take: series}\n",
       "Step 1 | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:812.5\n",
       {{"tokens_per_s", {812.5}, {1}}}},
      {"mlx, in iterations a second",
       "  - {name: step_time, regex: 'Iter (?P<step>\\d+): .* It/sec (?P<value>[\\d.]+)', unit: it/s, take: series}\n",
       "Iter 36: Train loss 4.040, Learning Rate 2.000e-08, It/sec 2.5, Tokens/sec 67.707, Trained Tokens 1656, Peak "
       "mem "
       "5.094 GB\n",
       {{"step_time", {400e6}, {36}}}},
      {"a unit that the line names",
       "  - {name: step_time, regex: 'step (?P<step>\\d+) took (?P<value>[\\d.]+) ?(?P<unit>ms|s|sec|us)', take: "
       "series}\n"
       "  - {name: device_peak, regex: 'peak (?P<value>[\\d.]+) ?(?P<unit>GB|GiB|MB|MiB)', take: max}\n",
       "step 1 took 1.5s peak 2 GiB\nstep 2 took 900ms peak 1500 MB\nstep 3 took 2 sec\nstep 4 took 50us\n",
       {{"step_time", {1.5e9, 0.9e9, 2e9, 50e3}, {1, 2, 3, 4}}, {"device_peak", {2147483648}}}},
      {"samples, micro-steps and figures of one's own",
       "  - {name: tokens_per_s, regex: 'samples/s: (\\S+)', unit: samples/s/GPU, take: series}\n"
       "  - {name: step_time, regex: 'micro (\\S+) ms', unit: ms, times: grad_accumulation, take: series}\n"
       "  - {name: data_time, regex: 'data (?P<value>\\S+?)(?P<unit>ms|s)\\b', unit: ms, take: series}\n"
       "  - {name: bus_bandwidth, regex: 'bw (\\S+)', unit: GB/s, take: max}\n",
       "samples/s: 2.5 micro 10 ms data 1.5s bw 41.5\nsamples/s: 3 micro 11 ms data 20ms bw 38\n",
       {{"tokens_per_s", {10240, 12288}},
        {"step_time", {80e6, 88e6}},
        {"data_time", {1500, 20}},
        {"bus_bandwidth", {41.5}}}},
      {"lines of JSON behind a logger's own words",
       "  - {name: step_time, json: /train/step_time, step: /step, unit: s, take: series}\n"
       "  - {name: loss, json: /train/loss, step: /step, take: series}\n",
       "[INFO] {\"step\": 1, \"train\": {\"loss\": 2.5, \"step_time\": 0.5}}\n{\"step\": 2, \"train/loss\": NaN, "
       "\"train/step_time\": \"0.25\"}\n{'loss': 1}\n{\"step\": 3, \"train\": {\"lo\n",
       {{"step_time", {5e8, 2.5e8}, {1, 2}}}},
      {"ranks that lines of JSON name",
       "  - {name: step_time, json: /t, step: /step, rank: /rank, unit: s, take: series}\n",
       "{\"rank\":1,\"step\":1,\"t\":2}\n{\"rank\":0,\"step\":1,\"t\":1}\n{\"rank\":0,\"step\":2,\"t\":3}\n"
       "{\"rank\":1,\"step\":2,\"t\":2}\n",
       {{"step_time", {2e9, 3e9}, {1, 2}}}},
      {"ranks before their lines, as torchrun and mpirun tell them",
       "  - {name: loss, regex: 'loss (\\S+)', take: series}\n",
       "[default1]:loss 9\n[default0]:loss 1\n[default0]:loss 2\n[default1]:loss 8\n",
       {{"loss", {1, 2}}}},
      {"a bar whose rank torchrun says before its first part alone",
       kTqdm,
       "[default1]: 25%|#| 1/4 [00:01<00:03,  1.00s/it]\r 50%|#| 2/4 [00:02<00:02,  2.00s/it]\n"
       "[default0]: 25%|#| 1/4 [00:01<00:03,  3.00s/it]\r 50%|#| 2/4 [00:02<00:02,  1.00s/it]\n",
       {{"step_time", {3e9, 2e9}, {1, 2}}}},
      {"ranks of which some lines name theirs",
       "  - {name: step_time, regex: 'step (?P<step>\\d+) (?P<value>\\S+) ms', unit: ms, take: series}\n"
       "  - {name: grad_norm, regex: 'norm (\\S+)', take: series}\n"
       "  - {name: data_time, regex: 'data (\\S+)', unit: ms, take: series}\n",
       "step 1 5 ms norm 1 data 1\n[rank3]: step 1 6 ms norm 9\nstep 1 4 ms\nstep 3 7 ms norm 2\n"
       "step 2 8 ms norm 3 data 2\n[rank3]: step 3 9 ms data 9\n",
       {{"step_time", {6e6, 8e6, 9e6}, {1, 2, 3}}, {"grad_norm", {1, 2, 3}}, {"data_time", {1, 2}}}},
      {"a rank that names itself, and one that does not",
       "  - {name: step_time, regex: 'took (\\S+) ms', unit: ms, take: series}\n",
       "took 5 ms\n[rank1]: took 6 ms\n[rank1]: took 4 ms\ntook 7 ms\n",
       {{"step_time", {6e6, 7e6}}}},
      {"a restarted run that is no other rank",
       "  - {name: loss, regex: 'step (?P<step>\\d+) loss (?P<value>\\S+)', take: series}\n",
       "step 1 loss 5\nstep 2 loss 4\nstep 3 loss 3\nstep 4 loss 2\nstep 1 loss 5.5\nstep 2 loss 4.5\n",
       {{"loss", {5, 4, 3, 2, 5.5, 4.5}, {1, 2, 3, 4, 1, 2}}}},
      {"two epochs of a rank that is named",
       "  - {name: loss, regex: 'r(?P<rank>\\d) step (?P<step>\\d+) loss (?P<value>\\S+)', take: series}\n",
       "r0 step 1 loss 5\nr1 step 1 loss 6\nr0 step 2 loss 4\nr1 step 2 loss 5\nr0 step 1 loss 3\nr1 step 1 loss 3\n",
       {{"loss", {5, 4, 3}, {1, 2, 1}}}},
      {"ranks whose steps drift",
       "  - {name: step_time, regex: 'step (?P<step>\\d+) (?P<value>\\S+) ms', unit: ms, take: series}\n",
       "step 1 5 ms\nstep 1 6 ms\nstep 2 7 ms\nstep 1 9 ms\nstep 3 1 ms\nstep 2 4 ms\nstep 3 2 ms\n",
       {{"step_time", {9e6, 7e6, 2e6}, {1, 2, 3}}}},
      {"glued lines, of which the first is whole, cut, or cut within its value",
       "  - {name: step_time, regex: 'step (?P<step>\\d+) time (?P<value>[\\d.]+)', unit: ms, take: series}\n",
       "step 1 time 51 ms step 1 time 52 ms\nstep 2 tistep 2 time 49 ms\nstep 3 time 5step 4 time 48 ms\n\n",
       {{"step_time", {52e6, 49e6, 48e6}, {1, 2, 4}}}},
      {"a last line that was cut off",
       "  - {name: step_time, regex: 'step (?P<step>\\d+) time (?P<value>[\\d.]+)', unit: ms, take: series}\n",
       "step 1 time 510 ms\nstep 2 time 51",
       {{"step_time", {510e6}, {1}}}},
      {"sums of ranks, step by step",
       "  - {name: tokens_per_s, regex: 'rank (?P<rank>\\d+) step (?P<step>\\d+) (?P<value>\\S+) tok', unit: tokens/s, "
       "take: "
       "sum}\n",
       "rank 0 step 1 10 tok\nrank 1 step 1 11 tok\nrank 0 step 2 12 tok\nrank 1 step 2 13 tok\nrank 0 step 3 14 tok\n",
       {{"tokens_per_s", {21, 25}, {1, 2}}}},
      {"stamps of every fifth step over midnight",
       "  - {name: step_time, regex: '^(?P<value>[\\d:,]+) step (?P<step>\\d+)', take: stamp, format: '%H:%M:%S,%f'}\n",
       "23:59:50,000 step 5\n23:59:55,500 step 10\n00:00:00,500 step 15\n",
       {{"step_time", {1.1e9, 1e9}, {10, 15}}}},
      {"stamps of a clock that is set back",
       "  - {name: step_time, regex: '^(?P<value>\\S+ \\S+) loss', take: stamp, format: '%Y-%m-%d %H:%M:%S.%f'}\n",
       "2026-10-25 02:59:58.000 loss\n2026-10-25 02:59:59.000 loss\n2026-10-25 02:00:00.000 loss\n2026-10-25 "
       "02:00:01.500 loss\n",
       {{"step_time", {1e9, 1.5e9}, {2, 4}}}},
      {"stamps in whole seconds of quicker steps",
       "  - {name: step_time, regex: '^(?P<value>[\\d:]+) step (?P<step>\\d+)', take: stamp, format: '%T'}\n",
       "10:00:00 step 1\n10:00:00 step 2\n10:00:01 step 3\n10:00:02 step 4\n10:00:02 step 5\n10:00:03 step 6\n10:00:04 "
       "step "
       "7\n10:00:04 step 8\n10:00:05 step 9\n10:00:06 step 10\n",
       {{"step_time", {666666667, 666666667, 666666667}, {4, 7, 10}}}},
  };
  return logs;
}

TEST(PostedLogs, SayTheirValues) {
  for (const Posted& posted : Logs()) {
    SCOPED_TRACE(posted.what);
    const Trainer trainer = TrainerOf(posted.trainer);
    const Reading reading = ReadPosted(trainer, posted.log);
    for (const Expected& expected : posted.found) {
      SCOPED_TRACE(expected.name);
      const FoundMetric* found = Find(reading, expected.name);
      if (found == nullptr) {
        ADD_FAILURE() << "is not found";
        continue;
      }
      ASSERT_EQ(found->values.size(), expected.values.size()) << ::testing::PrintToString(found->values);
      for (size_t i = 0; i < expected.values.size(); ++i) {
        EXPECT_NEAR(found->values[i], expected.values[i], 1e-9 * expected.values[i]) << i;
      }
      if (!expected.steps.empty()) {
        EXPECT_EQ(found->steps, expected.steps);
      }
    }
  }
}

// A pattern that ends within a number matches the whole number. A pattern that names what follows is taken literally.
TEST(PostedLogs, ANumberIsNotCutByItsPattern) {
  const auto read = [](const std::string& metric, const std::string& line) {
    const Reading reading = ReadPosted(TrainerOf("  - {" + metric + "}\n"), line + "\n");
    return reading.found.empty() ? -1 : reading.found[0].values.at(0);
  };
  EXPECT_EQ(read("name: step_time, regex: 'per_iteration_ms: ([\\d.]+)', unit: ms", "per_iteration_ms: 11.5K | lr"),
            11.5e9);
  EXPECT_EQ(read("name: step_time, regex: 'time=(\\d+)', unit: ms", "time=12.75ms"), 12.75e6);
  EXPECT_EQ(read("name: step_time, regex: 'time=(\\d+)\\.', unit: ms", "time=12.75ms"), 12e6);
  EXPECT_EQ(read("name: step_time, regex: 'timing in s: ([\\d.]+) \\|', unit: s", "timing in s: 0.5 | lr"), 0.5e9);
  EXPECT_EQ(read("name: step_time, regex: 'timing in s: ([\\d.]+)', unit: s", "timing in s: 3.1e-02 | lr"), 31e6);
  EXPECT_EQ(read("name: step_time, regex: 'timing in s: ([\\d.]+).* lr', unit: s", "timing in s: 3.1e-02 | lr"), 31e6);
  EXPECT_EQ(read("name: tokens_per_s, regex: 'tps: ([\\d.]+)', unit: tokens/s", "tps: 8,142  mfu"), 8142);
  EXPECT_EQ(read("name: tokens_per_s, regex: 'tps: ([\\d.,]+)', unit: tokens/s", "tps: 8,142, mfu"), 8142);
  EXPECT_EQ(read("name: tokens_per_s, regex: 'tps: ([\\d.]+)', unit: tokens/s", "tps: 8, 142 steps"), 8);
  for (const char* number : {"12_345", "12'345", "12\u2019345", "12\u00a0345", "12\u202f345"}) {
    EXPECT_EQ(read("name: tokens_per_s, regex: 'tps: ([\\d.]+)', unit: tokens/s", fmt::format("tps: {} mfu", number)),
              -1)
        << "cannot be read, and is not 12";
  }
  EXPECT_EQ(read("name: parameters, regex: 'params ([\\d.]+)'", "params 8.03B"), 8.03e9);
  EXPECT_EQ(read("name: parameters, regex: 'params ([\\d.]+)', unit: M", "params 124M"), 124e6);
  EXPECT_EQ(read("name: parameters, regex: 'params ([\\d.]+)'", "params 12 Blocks"), 12);
  EXPECT_EQ(read("name: device_peak, regex: 'reserved: ([\\d.]+)', unit: bytes", "reserved: 547M"), 547e6);
  EXPECT_EQ(read("name: device_peak, regex: 'reserved: ([\\d.]+)', unit: GiB", "reserved: 2G"), 2.0 * (1 << 30));
  EXPECT_EQ(read("name: device_peak, regex: 'reserved: ([\\d.]+)', unit: GiB", "reserved: 2GiB"), 2.0 * (1 << 30));
  EXPECT_EQ(read("name: device_peak, regex: 'reserved: ([\\d.]+)', unit: GiB", "reserved: 547M"), -1);
  EXPECT_EQ(read("name: mfu, regex: 'mfu (\\d+)', unit: share", "mfu 36%"), -1) << "no share is as large";
  EXPECT_EQ(read("name: tflops_per_gpu, regex: 'tflops: ([\\d.]+)', unit: TFLOP/s/GPU", "tflops: 1.04K | lr"), 1040);
  const auto own = [&](const std::string& unit, const std::string& value) {
    return read("name: mine, regex: 'mine: ([\\d.]+)', unit: '" + unit + "'", "mine: " + value + " | lr");
  };
  EXPECT_EQ(own("tokens", "85.8G"), 85.8e9);
  EXPECT_EQ(own("tokens", "634K"), 634e3);
  EXPECT_EQ(own("none", "1.5B"), 1.5e9);
  EXPECT_EQ(own("tokens", "3.1e-02"), 0.031);
  EXPECT_EQ(own("tokens", "8,142"), 8142);
  EXPECT_EQ(own("GB/s", "41.5G"), 41.5);
  EXPECT_EQ(own("GB/s", "900M"), -1) << "that is another unit";
  EXPECT_EQ(own("Tokens", "5T"), -1) << "nobody knows what it means";
  EXPECT_EQ(own("bytes", "570B"), 570);
  EXPECT_EQ(own("M", "5M"), 5);
  EXPECT_EQ(own("ms", "12ms"), 12);
  EXPECT_EQ(own("requests", "12 Misses"), 12);
}

// LitGPT times each micro-step, and counts either micro-steps or steps.
TEST(PostedLogs, MicroStepsAreTheirStep) {
  const std::string log =
      "Epoch 1 | iter 1 step 0 | loss train: 3.7, val: n/a | iter time: 30.0 ms\n"
      "Epoch 1 | iter 2 step 1 | loss train: 3.7, val: n/a | iter time: 50.0 ms (step)\n"
      "Epoch 1 | iter 3 step 1 | loss train: 3.7, val: n/a | iter time: 32.0 ms\n"
      "Epoch 1 | iter 4 step 2 | loss train: 3.7, val: n/a | iter time: 48.0 ms (step)\n";
  const auto read = [&](const std::string& step, int64_t micro) {
    const Trainer trainer = TrainerOf("  - {name: step_time, regex: '" + step +
                                      "iter time: ([\\d.]+) ms', unit: ms, take: series, times: grad_accumulation}\n");
    ReadingOptions options;
    options.steps = 4 / micro;
    options.field = [&](std::string_view) { return std::optional(static_cast<double>(micro)); };
    return ReadPosted(trainer, log, options).found.at(0).values;
  };
  EXPECT_THAT(read("iter (?P<step>\\d+) .*", 2), ElementsAre(80e6, 80e6));
  EXPECT_THAT(read("", 2), ElementsAre(80e6, 80e6));
  EXPECT_THAT(read("iter (?P<step>\\d+) .*", 1), ElementsAre(30e6, 50e6, 32e6, 48e6));
  EXPECT_THAT(read("step (?P<step>\\d+) .*", 2), ElementsAre(60e6, 82e6, 96e6)) << "it counts a step that has ended";
}

TEST(PostedLogs, LinesWithoutANumberAreSaid) {
  const Trainer trainer = TrainerOf("  - {name: step_time, regex: 'took (\\S+)', unit: ms}\n");
  const Reading reading = ReadPosted(trainer, "took soon\ntook later\n");
  EXPECT_THAT(reading.notes,
              ElementsAre("step_time: lines that match and have no number of its unit: 2, the first in line 1"));
}

TEST(PostedLogs, LinesOfRanksThatDoNotFitAreSaid) {
  const Trainer trainer = TrainerOf("  - {name: step_time, regex: 'took (\\S+)', unit: ms, take: series}\n");
  EXPECT_THAT(ReadPosted(trainer, "took 1\ntook 2\n[rank1]: took 9\n").notes,
              ElementsAre(HasSubstr("some lines name their rank and others do not")));
  EXPECT_THAT(ReadPosted(trainer, "took 1\ntook 2\n[rank1]: took 9\n[rank1]: took 9\n").notes, IsEmpty());
}

// For each step length the median is within a hundredth of the true time, wherever the steps fall between the ticks.
TEST(PostedLogs, StampsOfMillisecondsTellTheTimesOfQuickSteps) {
  const Trainer trainer =
      TrainerOf("  - {name: step_time, regex: '^(?P<value>\\S+) step (?P<step>\\d+)', take: stamp, format: '%T.%f'}\n");
  for (const int64_t step_us : {1300, 4700, 9970, 12490, 24510, 30400, 30500, 30600, 49500, 70400}) {
    std::string log;
    for (int64_t step = 1; step <= 200; ++step) {
      const int64_t ms = step * step_us / 1000;
      log += fmt::format("00:00:{:02}.{:03} step {}\n", ms / 1000, ms % 1000, step);
    }
    std::vector<double> values = ReadPosted(trainer, log).found.at(0).values;
    const auto true_ns = static_cast<double>(step_us * 1000);
    EXPECT_NEAR(stats::MedianOf(values), true_ns, 0.0102 * true_ns) << step_us;
    EXPECT_THAT(values, Each(AllOf(Gt(0.98 * true_ns), Lt(1.02 * true_ns)))) << step_us;
  }
}

TEST(PostedLogs, WrappedLinesAreSaidWhereNothingMatches) {
  const Trainer trainer = TrainerOf("  - {name: loss, regex: 'iteration (\\d+) .* loss'}\n");
  std::string log;
  for (int i = 0; i < 5; ++i) {
    log += "iteration 12 of the training of a model with a name that is long and longer, an\nd los 3.5\n";
  }
  EXPECT_THAT(ReadPosted(trainer, log).notes, ElementsAre(HasSubstr("its long lines end at 79 columns")));
  EXPECT_THAT(ReadPosted(trainer, "iteration 1 x loss\n" + log).notes, IsEmpty());
  EXPECT_THAT(ReadPosted(trainer, std::string(80, '=') + "\nx\n" + std::string(80, '=') + "\n").notes, IsEmpty());
}

TEST(PostedLogs, SaysWhatIsUnknownOfThePoint) {
  const Trainer trainer = TrainerOf(
      "  - {name: tokens_per_s, regex: 'rate (\\S+)', unit: samples/s}\n"
      "  - {name: step_time, regex: 'took (\\S+)', unit: ms, times: grad_accumulation}\n");
  const Reading reading = ReadPosted(trainer, "rate 5 took 7\n", {});
  ASSERT_EQ(reading.found.size(), 1U);
  EXPECT_EQ(reading.found[0].unit, "samples/s");
  EXPECT_THAT(reading.found[0].values, ElementsAre(5));
  EXPECT_THAT(reading.missing, ElementsAre("step_time"));
  EXPECT_THAT(reading.notes,
              ElementsAre(HasSubstr("--field seq_length=NUMBER"), HasSubstr("grad_accumulation=NUMBER")));
}

}  // namespace
}  // namespace ridgeline::trainers
