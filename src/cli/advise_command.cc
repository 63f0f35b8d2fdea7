// `ridgeline advise`: recommends how to run a model on a described device.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "plan/advise.h"
#include "plan/forecast.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/amount.h"
#include "run/families.h"
#include "run/fields.h"
#include "run/hugging_face.h"
#include "run/names.h"
#include "run/presets.h"
#include "run/spec.h"
#include "session/say.h"
#include "trainers/definition.h"
#include "trainers/find.h"
#include "trainers/invocation.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kWidth = 80;             // columns of a terminal
constexpr double kTokensAParameter = 20;  // Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022
constexpr size_t kMostOthers = 6;

struct AdviseArguments {
  std::string model;
  std::string device;
  int64_t ranks = 0;
  double budget = 0;
  std::string tokens;
  int64_t seq_length = 4096;
  std::string state = "fp32";
  double grad_clip = 1;
  std::string framework = "ridgeline";
  std::string to;
  std::string format = "text";
  std::vector<fs::path> frameworks;
  std::vector<fs::path> devices;
};

// The model's name, and the fields of a spec that say which it is.
struct AdvisedModel {
  std::string name;
  Json fields;
};

// The fields of "layers=24,hidden=2048,…", named as in a sweep.
Json ShapeOfText(const std::string& text) {
  Json shape = Json::object();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part(Trim(std::string_view(text).substr(at, end - at)));
    const size_t equals = part.find('=');
    const Field* field = FindField(part.substr(0, equals));
    if (equals == std::string::npos || field == nullptr || !field->Has(Field::kOfShape)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("advise: '{}' is not part of a model's shape", ShortenToBytes(part, 80)),
                  "such as family=llama,layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256");
    }
    const std::string value = part.substr(equals + 1);
    const bool is_text = field->type() == "text";
    shape[part.substr(0, equals)] = is_text ? Json(value) : ParseJson(value, part);
    at = end + 1;
  }
  return shape;
}

AdvisedModel ModelOf(const std::string& name, const predict::Framework& framework) {
  if (name.ends_with(".json")) {
    std::optional<Json> shape = ReadShapeOfConfig(name);
    if (!shape) throw Error(ErrorKind::kUsage, fmt::format("advise: there is no file '{}'", name));
    return {name, *std::move(shape)};
  }
  if (name.find('=') != std::string::npos) return {"this shape", ShapeOfText(name)};
  const Preset* model = FindPreset(name);
  if (model != nullptr && (model->is_ours() || !framework.is_ours())) {
    return {std::string(model->name), {{"model", std::string(model->name)}}};
  }
  const std::string hint = "the models are " + Join(OurPresetNames(), ", ") +
                           "; or give the config.json of a model of Hugging Face's, of type " + HuggingFaceTypes() +
                           ", or a shape, family=llama,layers=32,…";
  if (model != nullptr) {
    throw Error(ErrorKind::kUsage,
                fmt::format("advise: the steps of {} are not known: it is for other trainers", model->name),
                "--framework NAME prices it as another trainer's; " + hint);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("advise: there is no model '{}'{}", name, DidYouMean(name, OurPresetNames())), hint);
}

double TokensOf(const std::string& text) {
  static constexpr Unit kCounts[] = {{"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}, {"", 1}};
  const auto tokens = ParseAmount(text, kCounts);
  if (tokens && *tokens >= 1 && *tokens <= 1e18) return *tokens;
  throw Error(ErrorKind::kUsage, fmt::format("advise: --tokens is a number, not '{}'", ShortenToBytes(text, 80)),
              "such as 300B or 1.5T");
}

// Other GPUs' devices that match `device`: as many GPUs, the same domain, and likewise with or without a price. Sorted
// by their bf16 peak.
std::vector<predict::Device> OthersLike(const predict::Device& device, const std::vector<fs::path>& folders) {
  std::vector<predict::Device> others;
  for (const fs::path& file : predict::DeviceFiles(folders)) {
    try {
      predict::Device other = predict::LoadDevice(file, folders);
      const bool is_alike = !other.is_cpu() && other.gpu != device.gpu && other.gpus() == device.gpus() &&
                            other.domain() == device.domain() &&
                            (plan::PriceOf(other) == nullptr) == (plan::PriceOf(device) == nullptr);
      const bool is_there =
          std::ranges::any_of(others, [&](const predict::Device& known) { return known.gpu == other.gpu; });
      if (is_alike && !is_there) others.push_back(std::move(other));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the others can be read
    }
  }
  std::ranges::sort(others, {}, [](const predict::Device& other) { return other.At("peaks.bf16"); });
  if (others.size() > kMostOthers) others.erase(others.begin(), others.end() - kMostOthers);
  return others;
}

// Wraps `text` to a terminal's width. Lines after the first begin with `indent` spaces.
std::string Wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const auto width = static_cast<size_t>(
        std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    if (column > 0 && column + 1 + width > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\n";
}

// One row each for the fastest, the cheapest and the smallest choice.
Table ChosenTable(const plan::Advice& advice, const predict::Device& device) {
  const bool priced = plan::PriceOf(device) != nullptr;
  Table table{{"", "GPUs", "shard", "format", "recompute", "batch", "memory", "tokens/s", "MFU"}, {}};
  if (priced) table.columns.emplace_back("USD/1B");
  const auto add = [&](const char* what, const plan::AdvisedPoint& point) {
    std::vector<Cell> row = {std::string(what),
                             point.spec.ranks,
                             plan::SplitName(point.spec.shard, point.spec.shard_ranks),
                             std::string(NameOf(point.spec.precision)),
                             NameOf(point.spec.checkpointing),
                             point.spec.batch_size,
                             FormatBytes(point.peak_bytes),
                             FormatCount(point.rate())};
    const std::optional<double> mfu = plan::RatesOn(point.spec, point.step, device).mfu;
    row.push_back(mfu ? Cell(fmt::format("{:.1f}%", 100 * *mfu)) : Cell());
    if (priced) row.emplace_back(fmt::format("{:.2f}", plan::DollarsABillionTokens(point.spec, point.step, device)));
    table.rows.push_back(std::move(row));
  };
  add("fastest", advice.fitting.front());
  if (advice.cheapest) add("cheapest", *advice.cheapest);
  if (advice.smallest) add("smallest", *advice.smallest);
  return table;
}

// "one h100", "8 GPUs of p5".
std::string GpusOf(const predict::Device& device, int64_t ranks) {
  if (device.gpus() > 1)
    return ranks == 1 ? "one GPU of " + device.name : fmt::format("{} GPUs of {}", ranks, device.name);
  return ranks == 1 ? "one " + device.name : fmt::format("{} {}, joined by links", ranks, device.name);
}

// A single GPU is easily taken for the machine that has eight of them.
std::string OfOneGpu(const predict::Device& device, const std::vector<std::string>& machines) {
  std::string text = "a single GPU: --ranks N takes several";
  if (!machines.empty()) text += fmt::format(", and --device {} a machine of them", Join(machines, " or "));
  return device.Has("link.bandwidth") ? text : "a single GPU";
}

// `machines`: those with several GPUs of the device's kind.
void SayInWords(const AdvisedModel& model, const RunSpec& shape, const plan::AdviceAbout& about,
                const plan::Advice& advice, const predict::Device& device, const predict::Framework& framework,
                const std::vector<std::string>& machines) {
  session::Write(Wrapped(fmt::format("{} ({} parameters) at sequence {}, on {}", PrintableLine(model.name),
                                     FormatCount(static_cast<double>(CountParameters(shape))), about.trained.seq_length,
                                     GpusOf(device, advice.ranks)),
                         2));
  session::Write(Wrapped(fmt::format("  {}: {}", device.name, PrintableLine(device.about)), 4));
  if (device.gpus() == 1 && advice.ranks == 1) session::Write(Wrapped("  " + OfOneGpu(device, machines), 4));
  const std::string assumed =
      framework.is_ours()
          ? fmt::format("{} state, gradients {}", about.trained.state_precision,
                        about.trained.grad_clip > 0 ? fmt::format("clipped at {:g}", about.trained.grad_clip)
                                                    : std::string("not clipped"))
          : framework.Basis(device.gpu);
  session::Write(Wrapped("  " + assumed, 4));
  if (!advice.fitting.empty()) {
    session::Write("\n" + ToText(ChosenTable(advice, device)));
    session::Write(
        Wrapped(fmt::format("memory and tokens/s are of one GPU, whose step is {}; MFU is of its peak in that format, "
                            "causal attention counted as half",
                            framework.is_ours() ? "of Ridgeline's own trainer"
                                                : "estimated as " + PrintableLine(framework.name) + "'s"),
                2));
  }
  session::Write("\n");
  // A basis that several sentences share is printed once.
  std::vector<std::string> bases;
  for (const plan::Advice::Sentence& sentence : advice.sentences) {
    if (std::ranges::find(bases, sentence.basis) == bases.end()) bases.push_back(sentence.basis);
    const char mark = sentence.basis == "planned" ? '=' : '-';
    session::Write(Wrapped(fmt::format("{} {}.", mark, sentence.text), 2));
  }
  if (bases.size() > 1) {
    session::Write(
        Wrapped(fmt::format("\"=\" is planned, \"-\" {} (docs/prediction.md)",
                            *std::ranges::find_if(bases, [](const auto& basis) { return basis != "planned"; })),
                2));
  }
}

// What a sweep must say so that this trainer takes points like `spec`, such as llm_foundry's `weight_decay: 0`.
Json FieldsFor(const std::string& trainer, RunSpec spec) {
  if (trainer == kOurTrainer) return Json::object();
  const std::vector<fs::path> folders = trainers::TrainerFolders({".", "trainers"});
  const trainers::Trainer definition = trainers::LoadTrainer(trainers::FindTrainer(trainer, folders));
  if (!definition.invocation) return Json::object();
  spec.device = "cuda";
  return trainers::TakenInstead(*definition.invocation, spec);
}

int Advise(const AdviseArguments& arguments) {
  const std::vector<fs::path> folders = predict::DeviceFolders(arguments.devices);
  const predict::Device device = predict::FindDevice(arguments.device, folders);
  if (device.is_cpu()) {
    throw Error(ErrorKind::kUsage, fmt::format("advise: {} has CPUs only, but advise needs GPUs", device.name),
                "`ridgeline devices` lists those with a gpu");
  }
  const predict::Framework framework =
      predict::FindFramework(arguments.framework, predict::FrameworkFolders(arguments.frameworks));
  const AdvisedModel model = ModelOf(arguments.model, framework);
  Json fields = model.fields;
  fields["trainer"] = plan::TrainerOf(framework);
  std::vector<Problem> problems;
  const RunSpec shape = BuildSpec(fields, problems);
  if (!problems.empty()) {
    const bool is_of_others = framework.is_ours() && !FamilyOf(shape).ours;
    throw Error(ErrorKind::kUsage, "advise: " + problems.front().message,
                is_of_others ? "--framework NAME prices it as another trainer's: docs/frameworks.md lists them" : "");
  }
  plan::AdviceAbout about;
  about.trained = {model.fields, arguments.seq_length, arguments.state, arguments.grad_clip};
  about.ranks = arguments.ranks > 0 ? arguments.ranks : device.gpus();
  about.tokens = arguments.tokens.empty() ? kTokensAParameter * static_cast<double>(CountParameters(shape))
                                          : TokensOf(arguments.tokens);
  about.budget_usd = arguments.budget;
  // A model with learned positions cannot exceed their number.
  if (shape.positions > 0) about.trained.seq_length = std::min(about.trained.seq_length, shape.positions);
  const plan::Advice advice = plan::Advise(about, device, framework, OthersLike(device, folders));
  if (arguments.format == "text") {
    SayInWords(model, shape, about, advice, device, framework, predict::MachinesWith(device.gpu, folders));
  } else {
    Table table{{"topic", "advice", "basis"}, {}};
    for (const plan::Advice::Sentence& s : advice.sentences) table.rows.push_back({s.topic, s.text, s.basis});
    session::Write(Format(table, arguments.format));
  }
  if (arguments.to.empty()) return 0;
  if (advice.fitting.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("advise: nothing fits, so {} is not written", arguments.to));
  }
  const std::string trainer =
      framework.is_ours() || framework.trainers.empty() ? std::string(kOurTrainer) : framework.trainers.front();
  WriteFileAtomic(arguments.to,
                  plan::SweepOfAdvice(advice, about, device, trainer, FieldsFor(trainer, advice.fitting.front().spec)));
  session::SayAside("to see its price: ridgeline plan {0}; to measure it: ridgeline run {0}\n", arguments.to);
  return 0;
}

}  // namespace

Action AdviseCommand(CLI::App& self) {
  const auto arguments = std::make_shared<AdviseArguments>();
  self.add_option("model", arguments->model, "a preset such as llama-8b, a Hugging Face config.json, or a shape")
      ->type_name("MODEL")
      ->required();
  self.add_option("--device", arguments->device,
                  "a GPU such as h100, or a machine of several such as p5 (`ridgeline devices`)")
      ->type_name("DEVICE")
      ->required();
  CLI::Option* ranks =
      self.add_option("--ranks", arguments->ranks, "how many of its GPUs (default: those of one machine)")
          ->type_name("N")
          ->check(CLI::Range(1, 65536));
  self.add_option("--budget", arguments->budget, "as many machines as these dollars pay for, instead of --ranks")
      ->type_name("USD")
      ->check(CLI::Range(0.01, 1e12))
      ->excludes(ranks);
  self.add_option("--tokens", arguments->tokens, "tokens to train on, such as 300B or 1.5T (default: 20 per parameter)")
      ->type_name("N");
  self.add_option("--seq-length", arguments->seq_length, "tokens a sequence")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 26));
  self.add_option("--state", arguments->state, "master weights and moments: fp32 or bf16")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  self.add_option("--grad-clip", arguments->grad_clip, "the largest gradient norm; 0: no clipping")
      ->capture_default_str()
      ->type_name("NORM")
      ->check(CLI::Range(0.0, 1e9));
  self.add_option("--framework", arguments->framework, "the framework that would run it (frameworks/)")
      ->capture_default_str()
      ->type_name("NAME");
  AddToOption(self, arguments->to, "FILE", "write a sweep that measures the best configurations");
  AddFormatOption(self, arguments->format, {"text", "md", "csv", "json"});
  AddDevicesOption(self, arguments->devices);
  AddFrameworksOption(self, arguments->frameworks);
  self.footer(
      "Tries every way to split the state, every number format of the device, every policy of activation "
      "checkpointing, and batches up to the largest that fits. Prints the fastest, the cheapest and the "
      "smallest configuration, the days and dollars that --tokens take, and what bounds a step. Also prints"
      " what other state, other GPUs or more memory would change. If nothing fits, it says what would help."
      " Memory is planned to the byte, and times are predicted (docs/prediction.md). Nothing runs.\n\n"
      "Examples:\n"
      "  ridgeline advise llama-8b --device p5\n"
      "  ridgeline advise llama-64b --device p6-b200 --ranks 64 --tokens 1.5T\n"
      "  ridgeline advise config.json --device p5 --framework torchtitan\n"
      "  ridgeline advise family=llama,layers=24,hidden=2048,heads=16,ffn=5632 \\\n"
      "    --device h100 --to sweep.yaml");
  return [arguments] { return Advise(*arguments); };
}

}  // namespace ridgeline::cli
