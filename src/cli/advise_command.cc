// `ridgeline advise`: what to run of a model on a device that is described.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "plan/advise.h"
#include "predict/device.h"
#include "run/presets.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

struct AdviseArguments {
  std::string model;
  std::string device;
  int64_t ranks = 0;
  int64_t seq_length = 4096;
  std::string format = "text";
  std::vector<fs::path> devices;
};

int Advise(const AdviseArguments& arguments) {
  const Preset* model = FindPreset(arguments.model);
  if (model != nullptr && !model->is_ours()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("advise: the model {} is for other trainers, and nobody predicts these", model->name),
                "the models are " + Join(OurPresetNames(), ", "));
  }
  if (model == nullptr) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("advise: there is no model '{}'{}", arguments.model, DidYouMean(arguments.model, OurPresetNames())),
        "the models are " + Join(OurPresetNames(), ", "));
  }
  const Device device = FindDevice(arguments.device, DeviceFolders(arguments.devices));
  AdviceAbout about{model, arguments.ranks > 0 ? arguments.ranks : device.gpus(), arguments.seq_length};
  // Learned positions are as many as there are.
  if (model->positions > 0) about.seq_length = std::min(about.seq_length, model->positions);
  const Advice advice = ridgeline::Advise(about, device);
  if (arguments.format == "text") {
    Say("{} ({} parameters) at sequence {}, on {} of {} ({}){}\n", model->name,
        FormatCount(static_cast<double>(model->parameters)), about.seq_length,
        about.ranks == 1 ? "one GPU" : fmt::format("{} GPUs", about.ranks), device.name, device.about,
        about.ranks > 1 ? ", shard: full" : "");
    for (const Advice::Sentence& sentence : advice.sentences) Say("- {}. ({})\n", sentence.text, sentence.basis);
    if (!advice.fitting.empty()) {
      const RunSpec& best = advice.fitting.front().spec;
      Say("To measure it: {{model: {}, precision: {}, checkpointing: {}, batch_size: {}, seq_length: {}, ranks: {}, "
          "shard: {}}}\n",
          model->name, best.precision, best.checkpointing, best.batch_size, best.seq_length, best.ranks, best.shard);
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
  self.add_option("model", arguments->model, "a preset, such as llama-8b")->type_name("MODEL")->required();
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
  AddFormatOption(self, arguments->format, {"text", "md", "csv", "json"});
  AddDevicesOption(self, arguments->devices);
  self.footer(
      "Tries every format that the device multiplies, every policy of activation checkpointing, and batches until "
      "they\n"
      "no longer fit, and says of the model: does it fit, does checkpointing pay, which batch is enough, which "
      "precision\n"
      "is the quickest, what bounds a step, and what more GPUs or memory would change. Memory is planned to the byte;\n"
      "times are predicted (docs/prediction.md), and nothing is run.\n\n"
      "Examples:\n"
      "  ridgeline advise llama-8b --device p5\n"
      "  ridgeline advise llama-64b --device p6-b200 --ranks 64 --seq-length 8192");
  return [arguments] { return Advise(*arguments); };
}

}  // namespace ridgeline
