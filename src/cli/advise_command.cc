// `ridgeline advise`: what to run of a model on a device that is described.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "plan/advise.h"
#include "predict/device.h"
#include "run/hugging_face.h"
#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostConfigBytes = size_t{1} << 20;

struct AdviseArguments {
  std::string model;
  std::string device;
  int64_t ranks = 0;
  int64_t seq_length = 4096;
  std::string state = "fp32";
  double grad_clip = 1;
  std::string format = "text";
  std::vector<fs::path> devices;
};

// The model's name, and the fields of a spec that say which it is.
struct AdvisedModel {
  std::string name;
  Json fields;
};

AdvisedModel ModelOf(const std::string& name) {
  if (name.ends_with(".json")) {
    const std::optional<std::string> text = ReadFileIfThere(name, kMostConfigBytes);
    if (!text) throw Error(ErrorKind::kUsage, fmt::format("advise: there is no file '{}'", name));
    return {name, ShapeOfConfig(ParseJson(*text, name), name)};
  }
  const Preset* model = FindPreset(name);
  if (model != nullptr && model->is_ours()) return {std::string(model->name), {{"model", std::string(model->name)}}};
  const std::string hint = "the models are " + Join(OurPresetNames(), ", ") +
                           "; or give the config.json of a model of Hugging Face's, of type llama, mistral or gpt2";
  if (model != nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("advise: no step of {} is known: it is for other trainers", model->name),
                hint);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("advise: there is no model '{}'{}", name, DidYouMean(name, OurPresetNames())), hint);
}

// What a sweep would have as its defaults.
std::string DefaultsOf(const Json& model, const RunSpec& spec) {
  Json values = model;
  values.update({{"precision", spec.precision},
                 {"state_precision", spec.state_precision},
                 {"checkpointing", spec.checkpointing},
                 {"grad_clip", spec.grad_clip},
                 {"batch_size", spec.batch_size},
                 {"seq_length", spec.seq_length},
                 {"ranks", spec.ranks},
                 {"shard", spec.shard}});
  std::vector<std::string> fields;
  for (const auto& [name, value] : values.items()) {
    fields.push_back(fmt::format("{}: {}", name, value.is_string() ? value.get<std::string>() : DumpJson(value)));
  }
  return fmt::format("{{{}}}", Join(fields, ", "));
}

int Advise(const AdviseArguments& arguments) {
  const AdvisedModel model = ModelOf(arguments.model);
  const Device device = FindDevice(arguments.device, DeviceFolders(arguments.devices));
  if (device.is_cpu()) {
    throw Error(ErrorKind::kUsage, fmt::format("advise: {} has processors, and this advises on GPUs", device.name),
                "`ridgeline devices` lists those with a gpu");
  }
  std::vector<Problem> told_later;
  const RunSpec shape = BuildSpec(model.fields, told_later);
  AdviceAbout about{model.fields, arguments.ranks > 0 ? arguments.ranks : device.gpus(), arguments.seq_length,
                    arguments.state, arguments.grad_clip};
  // Learned positions are as many as there are.
  if (shape.positions > 0) about.seq_length = std::min(about.seq_length, shape.positions);
  const Advice advice = ridgeline::Advise(about, device);
  if (arguments.format == "text") {
    Say("{} ({} parameters) at sequence {}, on {} of {} ({}){}, {} state, {}\n", PrintableLine(model.name),
        FormatCount(static_cast<double>(CountParameters(shape))), about.seq_length,
        about.ranks == 1 ? "one GPU" : fmt::format("{} GPUs", about.ranks), device.name, PrintableLine(device.about),
        about.ranks > 1 ? ", shard: full" : "", about.state_precision,
        about.grad_clip > 0 ? fmt::format("gradients clipped at {:g}", about.grad_clip) : "gradients not clipped");
    for (const Advice::Sentence& sentence : advice.sentences) Say("- {}. ({})\n", sentence.text, sentence.basis);
    if (!advice.fitting.empty()) {
      Say("To measure it: {}\n", DefaultsOf(model.fields, advice.fitting.front().spec));
    }
  } else {
    Table table{{"topic", "advice", "basis"}, {}};
    for (const Advice::Sentence& s : advice.sentences) table.rows.push_back({s.topic, s.text, s.basis});
    Write(Format(table, arguments.format));
  }
  return 0;
}

}  // namespace

Action AdviseCommand(CLI::App& self) {
  const auto arguments = std::make_shared<AdviseArguments>();
  self.add_option("model", arguments->model, "a preset, such as llama-8b, or a config.json of Hugging Face's")
      ->type_name("MODEL")
      ->required();
  self.add_option("--device", arguments->device, "what it would run on, as `ridgeline devices` names it")
      ->type_name("DEVICE")
      ->required();
  self.add_option("--ranks", arguments->ranks, "how many of its GPUs; default: those of one machine")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  self.add_option("--seq-length", arguments->seq_length, "tokens a sequence")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 26));
  self.add_option("--state", arguments->state, "master weights and moments: fp32 or bf16")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  self.add_option("--grad-clip", arguments->grad_clip, "the largest norm of gradients; 0: they are not clipped")
      ->capture_default_str()
      ->type_name("NORM")
      ->check(CLI::Range(0.0, 1e9));
  AddFormatOption(self, arguments->format, {"text", "md", "csv", "json"});
  AddDevicesOption(self, arguments->devices);
  self.footer(
      "Tries every format that the device multiplies, every policy of activation checkpointing, and batches up to the\n"
      "largest that fits. Says whether the model fits and what would let it, what is quickest, whether checkpointing\n"
      "pays, which batch is enough, what bounds a step, and what other state, more GPUs or more memory would change.\n"
      "Memory is planned to the byte; times are predicted (docs/prediction.md), and nothing is run.\n\n"
      "Examples:\n"
      "  ridgeline advise llama-8b --device p5\n"
      "  ridgeline advise llama-64b --device p6-b200 --ranks 64 --seq-length 8192");
  return [arguments] { return Advise(*arguments); };
}

}  // namespace ridgeline
