#include "engine/train/verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/step/program.h"
#include "engine/train/model_state.h"
#include "engine/train/safetensors.h"
#include "engine/train/trainer.h"
#include "ridgeline/json_fault.h"
#include "run/families.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

// How far a precision may be off: relative for a loss, relative to the largest for a logit, relative to its norm for a
// tensor.
struct Bounds {
  double logits;
  double loss;
  double gradient;
  double loss_series;
  double weight_after;
};

// bf16 has 8 significant bits (half an ulp is 2^-9 = 0.2%); errors of products of products stay within a few of these.
constexpr Bounds kFp32Bounds = {1e-5, 1e-5, 1e-4, 1e-4, 1e-4};
// TF32 has 11 bits, only in operands: values between two products are fp32. A library that truncates is off by twice as
// much as one that rounds to nearest. (An H200 is off by 4.7e-3 for a bias, because Adam enlarges its gradient.)
constexpr Bounds kTf32Bounds = {4e-3, 6e-4, 6e-3, 1e-3, 8e-3};
constexpr Bounds kBf16Bounds = {3e-2, 5e-3, 5e-2, 1e-2, 1e-2};

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

// Returns ||got - want|| / ||want||; the absolute difference if want is all zeros.
double RelativeError(std::span<const float> got, std::span<const float> want) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - want[i];
    sum += difference * difference;
  }
  const double norm = Norm(want);
  return norm > 0 ? std::sqrt(sum) / norm : std::sqrt(sum);
}

// Returns the largest difference over the largest magnitude of want.
double LargestError(std::span<const float> got, std::span<const float> want) {
  float difference = 0;
  float largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(got[i])) return std::numeric_limits<double>::quiet_NaN();
    difference = std::max(difference, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return static_cast<double>(difference) / largest;
}

RunSpec SpecOfCase(const Json& document, const SafetensorsFile& tensors, const VerifyOptions& options,
                   const std::string& source) {
  const Json& model = document.at("model");
  const Json& optimizer = document.at("optimizer");
  const std::string family = model.at("family");
  const Family& row = RowOf(ValueNamed<ModelFamily>(family).value_or(ModelFamily::kOther));
  Json values = {{"family", family},
                 {"layers", model.at("layers")},
                 {"hidden", model.at("hidden")},
                 {"heads", model.at("heads")},
                 {"kv_heads", model.value("kv_heads", model.at("heads"))},
                 {"head_dim", model.value("head_dim", 0)},
                 {"ffn", model.at("ffn")},
                 {"vocab", model.at("vocab")},
                 {"norm_eps", model.at("norm_eps")},
                 {"tied_head", !tensors.contains("weight/lm_head.weight")},
                 {"batch_size", model.at("batch")},
                 {"seq_length", model.at("seq")},
                 {"precision", options.precision},
                 {"checkpointing", options.checkpointing},
                 {"device", options.device},
                 {"gpu", options.gpu},
                 {"optimizer", optimizer.at("name")},
                 {"learning_rate", optimizer.at("lr")},
                 {"beta1", optimizer.at("beta1")},
                 {"beta2", optimizer.at("beta2")},
                 {"epsilon", optimizer.at("eps")},
                 {"weight_decay", optimizer.at("weight_decay")},
                 {"warmup_steps", 0},
                 {"steps", document.at("losses").size()}};
  if (row.rope_theta > 0) values["rope_theta"] = model.at("rope_theta");
  if (row.learned_positions) values["positions"] = model.at("max_seq");
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (!problems.empty()) throw Error(ErrorKind::kInvalidInput, source + ": " + problems.front().message);
  return spec;
}

// Returns the tensor. Throws Error(kInvalidInput) unless its length is the model's.
std::vector<float> Expect(const SafetensorsFile& tensors, const std::string& name, int64_t elements) {
  std::vector<float> values = tensors.Floats(name);
  if (static_cast<int64_t>(values.size()) != elements) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("the tensor '{}' has {} elements; the model's shape has {}", name,
                                                      values.size(), elements));
  }
  return values;
}

std::vector<int32_t> Tokens(const SafetensorsFile& tensors, const std::string& name, int64_t vocab, size_t count) {
  std::vector<int32_t> tokens = tensors.Integers(name);
  const bool in_range =
      std::all_of(tokens.begin(), tokens.end(), [&](int32_t token) { return token >= 0 && token < vocab; });
  if (tokens.size() != count || !in_range) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("'{}' does not hold {} tokens below {}", name, count, vocab));
  }
  return tokens;
}

template <typename Fn>
void ForEachPart(const ModelShape& shape, const Fn& fn) {
  for (size_t p = 0; p < shape.parameters.size(); ++p) {
    for (const ParameterPart& part : shape.parameters[p].parts) fn(p, part, part.rows * shape.parameters[p].cols);
  }
}

}  // namespace

bool VerifyReport::ok() const {
  return std::all_of(lines.begin(), lines.end(), [](const VerifyLine& line) { return line.ok(); });
}

VerifyReport Verify(const std::filesystem::path& case_json, const VerifyOptions& options,
                    const DeviceMaker& open_cuda) {
  const std::string source = case_json.string();
  const Json document = ReadJsonFile(case_json);
  std::filesystem::path tensors_path = case_json;
  const SafetensorsFile tensors(tensors_path.replace_extension(".safetensors"));
  const Bounds bounds = options.precision == "fp32"   ? kFp32Bounds
                        : options.precision == "tf32" ? kTf32Bounds
                                                      : kBf16Bounds;
  try {
    const RunSpec spec = SpecOfCase(document, tensors, options, source);
    const StepProgram program = BuildStep(spec, true);
    const std::unique_ptr<Communicator> alone = MakeSelfCommunicator();
    const std::unique_ptr<TrainingDevice> device = OpenDevice(spec, open_cuda);
    const std::unique_ptr<Executor> executor = device->MakeExecutor(program, *alone);
    ModelState model(program, *executor);
    model.Initialize();
    ForEachPart(program.shape, [&](size_t p, const ParameterPart& part, int64_t elements) {
      model.SetWeight(p, part, Expect(tensors, "weight/" + part.name, elements));
    });
    if (const Tensor& state = program.tensors.loss_scale; state.defined()) {
      executor->Write<float>(state, 0, std::array{1.0F});  // the cases' gradients neither vanish nor overflow
    }
    const auto tokens = static_cast<size_t>(program.tokens_per_step());
    executor->Write<int32_t>(program.tensors.ids, 0, Tokens(tensors, "tokens", spec.vocab, tokens));
    executor->Write<int32_t>(program.tensors.targets, 0, Tokens(tensors, "targets", spec.vocab, tokens));

    VerifyReport report;
    report.name = document.value("name", case_json.stem().string());
    double series_error = 0;
    for (int64_t step = 1; step <= spec.steps; ++step) {
      executor->Step({step, LearningRate(spec, step, spec.steps), 0});
      const double want = document.at("losses").at(static_cast<size_t>(step - 1)).get<double>();
      const double error = std::abs(model.Loss() - want) / std::abs(want);
      // A maximum must not lose a NaN.
      series_error = std::isnan(error) ? error : std::max(series_error, error);
      if (step > 1) continue;
      const double loss = document.at("loss").get<double>();
      report.lines.push_back({"loss", std::abs(model.Loss() - loss) / std::abs(loss), bounds.loss});
      report.lines.push_back(
          {"logits", LargestError(model.Logits(), Expect(tensors, "logits", program.tensors.logits.elements())),
           bounds.logits});
      ForEachPart(program.shape, [&](size_t p, const ParameterPart& part, int64_t elements) {
        report.lines.push_back({"gradient of " + part.name,
                                RelativeError(model.Gradient(p, part), Expect(tensors, "grad/" + part.name, elements)),
                                bounds.gradient});
      });
    }
    report.lines.push_back({fmt::format("losses of {} steps", spec.steps), series_error, bounds.loss_series});
    ForEachPart(program.shape, [&](size_t p, const ParameterPart& part, int64_t elements) {
      report.lines.push_back(
          {"weight after of " + part.name,
           RelativeError(model.Weight(p, part), Expect(tensors, "weight_after/" + part.name, elements)),
           bounds.weight_after});
    });
    return report;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not a reference case: " + JsonFault(e));
  }
}

}  // namespace ridgeline::engine
