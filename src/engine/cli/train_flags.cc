#include "engine/cli/train_flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/help_form.h"
#include "base/json.h"
#include "base/user_folders.h"
#include "base/version.h"
#include "engine/cli/hyperparameters.h"
#include "engine/step/trace_file.h"
#include "run/gpus.h"
#include "run/gpus_here.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

constexpr const char* kFooter =
    "There are three ways to say what to train:\n"
    "  ridgeline-train --spec run.json --result result.json\n"
    "      a RunSpec, as `ridgeline` writes it\n"
    "  ridgeline-train --model llama-25m --precision bf16 --batch-size 4\n"
    "      flags\n"
    "  ridgeline-train --num-layers 24 --batch-size 1 --seq-length 8192\n"
    "      the flags of NVIDIA TransformerEngine's fsdp.py, with its defaults and its\n"
    "      printed lines\n\n"
    "Several ranks: start one process each, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as "
    "torchrun and `ridgeline exec` set them. If they meet at an address other than 127.0.0.1, they need a"
    " RIDGELINE_SECRET_FILE. With --ranks 8 --communicator virtual, this process plays the first of eight"
    " ranks.\n\n"
    "Flags may also be SageMaker hyperparameters: SM_HP_BATCH_SIZE=4 is --batch-size 4.\n\n"
    "On SIGTERM or SIGUSR1 the trainer finishes the step and saves its state in --checkpoint-dir. When "
    "you start it again, it continues from there.\n\n"
    "Exit codes: 0 done, 2 bad input, 3 crashed, 10 out of device memory, 11 out of host memory, 12 "
    "diverged, 13 preempted, 14 a folder or a disk failed, 15 the GPU is missing or failed.";

template <typename Number>
bool IsAllOf(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Converts a flag's text to the JSON value of its field. Text that does not fit stays text, for SetField to refuse.
Json ValueOf(const Field& field, const std::string& text) {
  if (field.type() == "true or false") {
    if (text == "true" || text == "false") return text == "true";
  } else if (field.type() == "integer" || field.type() == "number") {
    int64_t whole = 0;
    double number = 0;
    if (IsAllOf(text, whole)) return whole;
    if (IsAllOf(text, number)) return number;
  }
  return text;
}

// Returns the largest allowed value of a field.
int64_t MostOf(std::string_view field) { return static_cast<int64_t>(FindField(field)->max); }

// The flags of fsdp.py that are no RunSpec fields.
struct FsdpFlags {
  int64_t num_heads = 16;
  int64_t head_dim = 128;
  int64_t num_iters = 5;
  int64_t num_layers = 3;
  std::string layer_type = "transformerlayer";
  std::vector<std::string> checkpoint_layer;
  std::string dtype = "bf16";
  bool ignored = false;  // --no-fp8, --no-defer-init, --no-te-fsdp, --profile-memory have no effect here
};

// fsdp.py's own defaults: three stack layers of 16 x 128, batch 32, sequence 1048, five iterations without warm-up.
Json FsdpValues(const FsdpFlags& flags) {
  if (flags.layer_type != "transformerlayer") {
    throw Error(ErrorKind::kUsage, "--layer-type " + flags.layer_type + " is not available: only transformerlayer is");
  }
  const int64_t hidden = flags.num_heads * flags.head_dim;  // both factors are in range
  return {{"family", "stack"},
          {"layers", flags.num_layers},
          {"hidden", hidden},
          {"heads", flags.num_heads},
          {"ffn", 3 * hidden},
          {"batch_size", 32},
          {"seq_length", 1048},
          {"precision", flags.dtype},
          {"warmup_steps", 0},
          {"steps", flags.num_iters},
          {"checkpointing", flags.checkpoint_layer.empty() ? "none" : "full"}};
}

// Returns the file that --algorithms means; nothing if it is not given and there is no cache folder.
std::filesystem::path AlgorithmsOf(const std::string& said) {
  if (said == "off") return {};
  if (!said.empty()) return said;
  const auto cache = CacheFolder();
  return cache ? *cache / "cublaslt.json" : std::filesystem::path();
}

RunSpec SpecOf(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (!problems.empty()) {
    std::string text;
    for (const Problem& problem : problems) text += (text.empty() ? "" : "\n  ") + problem.message;
    throw Error(ErrorKind::kInvalidInput, text, "see ridgeline-train --help");
  }
  return spec;
}

// Returns the name of this machine's card. Used if --device cuda is given without --gpu.
std::string GpuHere() {
  const GpusHere here = FindGpusHere();
  if (here.names.empty()) {
    throw Error(ErrorKind::kUsage, "--device cuda: this machine has no GPU: " + here.problem,
                here.hint + (here.hint.empty() ? "" : "; ") + "--device meta --gpu h100 plans for one");
  }
  const bool are_alike = std::ranges::count(here.names, here.names.front()) == std::ssize(here.names);
  const Gpu* gpu = FindGpuOfDriver(here.names.front());
  if (are_alike && gpu != nullptr) return std::string(gpu->name);
  throw Error(ErrorKind::kUsage,
              are_alike ? "--device cuda: " + WhyNoGpu(here.names.front())
                        : "--device cuda: the GPUs of this machine are not alike",
              are_alike ? "`ridgeline devices` lists the GPUs that --gpu takes"
                        : "say which with --gpu, and choose it with CUDA_VISIBLE_DEVICES");
}

// Returns the spec that names what is calibrated: a device, and the number of ranks. You cannot choose the steps.
RunSpec CalibrationBase(const std::map<std::string_view, std::string>& given) {
  Json values = {{"model", "llama-25m"}};
  for (const auto& [name, text] : given) {
    if (text.empty()) continue;
    if (name != "device" && name != "gpu" && name != "ranks" && name != "communicator") {
      throw Error(ErrorKind::kUsage, fmt::format("--calibrate times steps of its own, and takes no {}", name),
                  "--device, --gpu and --ranks say what is calibrated");
    }
    values[std::string(name)] = ValueOf(*FindField(name), text);
  }
  return SpecOf(values);
}

}  // namespace

std::optional<TrainCommand> ParseTrainCommand(int argc, const char* const* argv) {
  TrainCommand command;
  CLI::App app("ridgeline-train: trains one configuration and measures it.", "ridgeline-train");
  app.formatter(HelpForm());
  app.footer(kFooter);
  app.set_version_flag("--version", std::string(kVersion) + " " + std::string(GitCommit()));
  app.add_option("--spec", command.spec_file, "read a RunSpec from this JSON file");
  app.add_option("--result", command.result_file, "write the RunResult to this JSON file");
  app.add_option(
      "--resume", command.resume,
      "continue from this checkpoint folder, DIR/step-NNNNNNNN (default: the newest complete one in --checkpoint-dir)");
  app.add_option("--verify", command.verify_case,
                 "run a reference case (CASE.json beside CASE.safetensors) and print the errors; exit code 1 if they "
                 "are out of bounds");
  app.add_flag("--gpus", command.gpus, "print this machine's NVIDIA GPUs, and the versions of driver and libraries");
  app.add_flag("--profile", command.profile, "print the cost of each op, and keep it in the result (evidence.op_ns)");
  app.add_option("--export-trace", command.export_trace,
                 "write the measured step of rank 0, call by call, as X.json for Perfetto or X.et (MLCommons Chakra) "
                 "for ASTRA-sim");
  app.add_flag_callback(
      "--no-graph", [&] { command.device.graph = false; },
      "on a GPU, queue a step call by call instead of replaying it as a graph: same bits, more work for the host");
  std::string algorithms;
  app.add_option("--algorithms", algorithms,
                 "on a GPU: the file that remembers the fastest algorithms of products (default "
                 "~/.cache/ridgeline/cublaslt.json); off: take the first that cuBLASLt proposes");
  auto* load = app.add_option("--choose-under-load", command.device.load_seconds,
                              "choose algorithms after this many seconds of load, on random operands and with cold "
                              "caches; no GPU has shown yet what that gains")
                   ->type_name("SECONDS")
                   ->check(CLI::Range(0.001, 60.0));
  auto* plans =
      app.add_flag("--all-plans", command.device.all_plans,
                   "on a GPU: time all of cuDNN's attention plans, and keep the choice in the file of --algorithms");
  app.add_flag("--beside-products", command.device.beside_products,
               "on a GPU: run passes such as Adam's beside the products after them, on a second stream: same bits; no "
               "GPU has shown yet what that gains");
  app.add_flag("--budget", command.budget,
               "train nothing; print what a step moves and multiplies, op by op, and the least time for that on --gpu "
               "(default an H200)");
  app.add_option("--calibrate", command.calibrate_s,
                 "train nothing; time steps of small models on this --device and --gpu for about this many seconds, "
                 "and write the times to --result for `ridgeline calibrate`")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0));

  std::map<std::string_view, std::string> given;
  for (const Field& field : Fields()) {
    if (field.name == "head_dim") continue;  // shared with fsdp.py, below
    if (field.Has(Field::kOfHarness)) continue;
    app.add_option(field.flag(), given[field.name], std::string(field.help))->group("The run");
  }
  for (const Field& setting : Settings()) {
    app.add_option(setting.flag(), given[setting.name], std::string(setting.help))
        ->group(setting.name.starts_with("checkpoint.") ? "Checkpoint files" : "The run");
  }
  FsdpFlags fsdp;
  const char* group = "NVIDIA's fsdp.py";
  const std::vector<CLI::Option*> fsdp_options = {
      app.add_option("--num-heads", fsdp.num_heads, "attention heads (16)")
          ->group(group)
          ->check(CLI::Range(int64_t{1}, MostOf("heads"))),
      app.add_option("--num-iters", fsdp.num_iters, "iterations, all of them measured (5)")->group(group),
      app.add_option("--num-layers", fsdp.num_layers, "layers (3)")->group(group),
      app.add_option("--layer-type", fsdp.layer_type, "transformerlayer")->group(group),
      app.add_option("--checkpoint-layer", fsdp.checkpoint_layer, "activation checkpointing: full")->group(group),
      app.add_option("--dtype", fsdp.dtype, "bf16 or fp32 (bf16)")->group(group),
      app.add_flag("--no-fp8,--no-defer-init,--no-te-fsdp,--profile-memory", fsdp.ignored,
                   "accepted; nothing to change here")
          ->group(group),
  };
  auto* head_dim = app.add_option("--head-dim", fsdp.head_dim, "size of an attention head (fsdp.py: 128)")
                       ->group("The run")
                       ->check(CLI::Range(int64_t{0}, MostOf("head_dim")));

  std::vector<std::string> flags;
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_group() == "Options") continue;  // not about the run itself
    flags.push_back(option->get_lnames().front());
    option->envname(HyperParameterVariable(flags.back()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw Error(ErrorKind::kUsage, e.what(), "see ridgeline-train --help");
  }

  command.device.algorithms = AlgorithmsOf(algorithms);
  if (command.device.algorithms.empty() && load->count() + plans->count() > 0) {
    throw Error(ErrorKind::kUsage, "no file keeps the choices: --algorithms is off, or HOME is not set",
                "name a file with --algorithms, or leave out --choose-under-load and --all-plans");
  }
  if (!command.export_trace.empty()) RequireTraceName(command.export_trace);
  if (given["device"] == "cuda" && given["gpu"].empty()) given["gpu"] = GpuHere();
  if (!command.verify_case.empty()) {
    for (const auto& [name, to] : {std::pair{"precision", &command.verify.precision},
                                   {"checkpointing", &command.verify.checkpointing},
                                   {"device", &command.verify.device},
                                   {"gpu", &command.verify.gpu}}) {
      if (!given[name].empty()) *to = given[name];
    }
    return command;
  }
  if (!command.spec_file.empty() || command.gpus) return command;
  CheckHyperParameters(flags);
  if (command.calibrate_s > 0) {
    command.spec = CalibrationBase(given);
    return command;
  }
  const bool shaped = !given["model"].empty() || !given["family"].empty() || !given["layers"].empty();
  command.fsdp = !shaped;
  if (shaped && std::any_of(fsdp_options.begin(), fsdp_options.end(), [](auto* o) { return o->count() > 0; })) {
    throw Error(ErrorKind::kUsage,
                "the flags of fsdp.py describe a model of their own; they do not go with --model, "
                "--family or --layers");
  }
  Json values = command.fsdp ? FsdpValues(fsdp) : Json::object();
  if (shaped && head_dim->count() > 0) values["head_dim"] = fsdp.head_dim;
  for (const auto& [name, text] : given) {
    if (!text.empty()) values[std::string(name)] = ValueOf(*FindField(name), text);
  }
  command.spec = SpecOf(values);
  return command;
}

}  // namespace ridgeline::engine
