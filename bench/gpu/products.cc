#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "bench/gpu/measure.h"
#include "engine/ops/gemm.h"
#include "engine/step/program.h"
#include "run/presets.h"
#include "run/spec.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {
namespace {

std::string_view NameOf(engine::Format format) {
  switch (format) {
    case engine::Format::kE4M3:
      return "e4m3";
    case engine::Format::kE5M2:
      return "e5m2";
    case engine::Format::kE2M1:
      return "e2m1";
  }
  return "";
}

// What a product's speed hangs on, in words.
std::string Describe(std::string_view type, const engine::Tensor& t) {
  return fmt::format("{} ({}, {}){}", type, t.rows, t.cols,
                     t.contiguous() ? "" : fmt::format(" every {}", t.row_stride));
}
std::string Describe(const engine::Tensor& t) { return Describe(engine::DTypeName(t.dtype), t); }
std::string Describe(const engine::OpCall& call) {
  if (call.op == &engine::kGemm) {
    const auto [a, b, bias, added] = call.operands(engine::kGemm).reads;
    const engine::GemmAttrs& attrs = call.attrs(engine::kGemm);
    const std::string_view type = attrs.tf32 ? "tf32" : engine::DTypeName(a.dtype);
    return fmt::format("{}{} by {}{} into {}{}{}", Describe(type, a),
                       attrs.trans_a == engine::Trans::kYes ? " transposed" : "", Describe(type, b),
                       attrs.trans_b == engine::Trans::kYes ? " transposed" : "",
                       Describe(call.operands(engine::kGemm).writes.c), bias.defined() ? " with a bias" : "",
                       attrs.accumulate ? ", added to it" : "");
  }
  const auto [a, b, bias, added] = call.operands(engine::kQuantizedGemm).reads;
  const engine::QuantizedGemmAttrs& attrs = call.attrs(engine::kQuantizedGemm);
  return fmt::format("{} by {} into {}{}{}{}", Describe(NameOf(attrs.a.format), a.codes),
                     Describe(NameOf(attrs.b.format), b.codes),
                     Describe(call.operands(engine::kQuantizedGemm).writes.c), bias.defined() ? " with a bias" : "",
                     attrs.accumulate ? ", added to it" : "", engine::IsEmulated(call) ? ", emulated" : "");
}

// A tensor of the same shape in a storage of its own.
engine::Tensor Alike(engine::Trace& trace, const engine::Tensor& t) {
  if (!t.defined()) return {};
  return trace.Persistent(t.dtype, t.rows, std::max(t.row_stride, t.cols), engine::Category::kData).Cols(0, t.cols);
}

// The call alone, on tensors of its own.
template <typename Operands, typename Attrs>
void Record(engine::Trace& trace, const engine::Op<Operands, Attrs>& op, const engine::OpCall& call) {
  Operands operands = call.operands(op);
  const engine::Tensor c = Alike(trace, operands.writes.c);
  const auto fill_in = [&](auto& group) {
    auto* tensors = reinterpret_cast<engine::Tensor*>(&group);  // as OpCall sees it
    for (size_t i = 0; i < sizeof group / sizeof(engine::Tensor); ++i) tensors[i] = Alike(trace, tensors[i]);
  };
  fill_in(operands.reads);
  fill_in(operands.scratch);
  if (operands.reads.c.defined()) operands.reads.c = c;
  operands.writes.c = c;
  trace.Call(op, operands, call.cost, call.attrs(op));
}

// Prints the call's line. False where the device has no such product.
bool Measure(const engine::DeviceDescription& device, const engine::OpCall& call, const std::string& name) {
  constexpr int kTimes = 20;
  engine::Trace trace(device);
  call.op == &engine::kGemm ? Record(trace, engine::kGemm, call) : Record(trace, engine::kQuantizedGemm, call);
  try {
    OneProduct product(trace);
    for (const engine::Tensor& tensor : trace.calls().front().reads()) {
      if (tensor.defined()) product.Fill(tensor);
    }
    const auto ns = static_cast<double>(product.LeastNs(kTimes));
    fmt::print("{:10.1f} us {:8.1f} TFLOP/s  {}\n", ns / 1e3, call.cost.flops / ns / 1e3, name);
    return true;
  } catch (const Error& error) {
    fmt::print("{:>33}  {}: {}\n", "refused", name, error.message());
    return false;
  }
}

std::vector<std::string_view> PrecisionsHere() {
  std::vector<std::string_view> precisions = {"tf32", "bf16"};
  if (engine::CapabilityHere() >= 89) precisions.push_back("fp8");
  if (engine::CapabilityHere() >= 100) precisions.insert(precisions.end(), {"mxfp8", "nvfp4"});
  return precisions;
}

// One layer of it has every product of its layers.
engine::StepProgram StepOf(std::string_view model, std::string_view precision, int64_t tokens) {
  const int64_t positions = FindPreset(model)->positions;
  std::vector<Problem> problems;
  const int64_t length = positions > 0 ? std::min(positions, tokens) : tokens;
  const RunSpec spec = BuildSpec({{"model", model},
                                  {"precision", precision},
                                  {"device", "cuda"},
                                  {"gpu", engine::GpuHere()},
                                  {"layers", 1},
                                  {"seq_length", length},
                                  {"batch_size", tokens / length}},
                                 problems);
  if (!problems.empty()) throw Error(ErrorKind::kInvalidInput, problems.front().message);
  return engine::BuildStep(spec);
}

}  // namespace

bool PrintProducts(int64_t tokens, std::span<const std::string_view> models) {
  std::vector<std::string_view> chosen(models.begin(), models.end());
  if (chosen.empty()) chosen.assign(OurPresetNames().begin(), OurPresetNames().end());
  std::set<std::string> seen;
  int64_t refused = 0;
  for (const std::string_view precision : PrecisionsHere()) {
    for (const std::string_view model : chosen) {
      if (FindPreset(model) == nullptr) throw Error(ErrorKind::kUsage, fmt::format("there is no model '{}'", model));
      fmt::print("== {} {}, {} tokens\n", model, precision, tokens);
      const engine::StepProgram program = StepOf(model, precision, tokens);
      for (const engine::OpCall& call : program.trace.calls()) {
        if (call.op != &engine::kGemm && call.op != &engine::kQuantizedGemm) continue;
        const std::string name = Describe(call);
        if (seen.insert(name).second && !Measure(program.trace.device(), call, name)) ++refused;
      }
      std::fflush(stdout);
    }
  }
  fmt::print("{} of {} products are refused\n", refused, seen.size());
  return refused == 0;
}

}  // namespace ridgeline
