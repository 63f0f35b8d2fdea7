#include "engine/train/calibration_programs.h"

#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/comm/collective.h"
#include "engine/ops/elementwise.h"
#include "run/families.h"
#include "run/gpus.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

struct Shape {
  int64_t hidden, heads, kv_heads, ffn, vocab, batch, seq;
};
// For CPUs, in an order in which neighbours differ much.
constexpr Shape kShapes[] = {
    {64, 4, 4, 256, 256, 1, 64},      {256, 8, 4, 640, 2048, 1, 256},   {96, 6, 2, 256, 1024, 2, 256},
    {384, 6, 2, 1024, 1024, 1, 128},  {128, 4, 4, 512, 256, 4, 128},    {512, 8, 8, 1408, 512, 4, 128},
    {64, 2, 2, 128, 512, 8, 128},     {768, 12, 4, 2048, 512, 1, 128},  {128, 2, 1, 384, 4096, 1, 512},
    {192, 6, 6, 768, 512, 2, 64},     {256, 4, 4, 1024, 256, 8, 64},    {64, 1, 1, 192, 8192, 1, 1024},
    {1024, 16, 16, 2816, 256, 1, 64}, {384, 12, 12, 1536, 4096, 2, 128}};
// How much larger the shapes are for GPUs, except for the batch.
constexpr int64_t kLargerForGpus = 8;
// For a device that is emulated thread by thread.
constexpr Shape kSmallShapes[] = {{32, 2, 2, 64, 64, 1, 16}, {64, 2, 1, 96, 96, 1, 16}, {32, 1, 1, 96, 128, 2, 16}};

// The sizes measured on a device.
struct Sizes {
  std::span<const Shape> shapes = kShapes;
  int64_t larger = 1;  // than the shapes say, except for the batch
  int64_t copy_rows = 1 << 12;
  int64_t collective_bytes = int64_t{16} << 20;  // at most
};

Sizes SizesFor(const RunSpec& base, bool small) {
  if (small) return {kSmallShapes, 1, 1, 1 << 14};
  if (base.device == "cuda") return {kShapes, kLargerForGpus, 1 << 16, int64_t{256} << 20};
  return {};
}

constexpr std::string_view kPrecisions[] = {"bf16", "fp32", "fp8", "mxfp8", "nvfp4", "fp16", "tf32"};

RunSpec SpecOf(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (problems.empty()) return spec;
  throw Error(ErrorKind::kInternal, fmt::format("a step to calibrate by cannot be: {}", problems.front().message));
}

std::vector<const Family*> FamiliesToCalibrate(bool with_vocabulary) {
  std::vector<const Family*> ours;
  for (const Family& family : Families()) {
    if (family.ours && (family.embeds || !with_vocabulary)) ours.push_back(&family);
  }
  return ours;
}

Json StepOf(const RunSpec& base, const Sizes& sizes, size_t shape_number, const Family& family,
            std::string_view precision) {
  const Shape& shape = sizes.shapes[shape_number % sizes.shapes.size()];
  const int64_t larger = sizes.larger;
  // On GPUs, heads are fewer and larger, as in real models.
  const int64_t heads = larger == 1 ? shape.heads : shape.heads * larger / 2;
  const int64_t kv_heads = larger == 1 ? shape.kv_heads : shape.kv_heads * larger / 2;
  Json values = {{"family", family.family},         {"layers", 2},
                 {"hidden", shape.hidden * larger}, {"heads", heads},
                 {"ffn", shape.ffn * larger},       {"precision", precision},
                 {"batch_size", shape.batch},       {"seq_length", shape.seq * larger},
                 {"device", base.device},           {"gpu", base.gpu}};
  if (family.rope_theta > 0) values["kv_heads"] = kv_heads;
  if (family.embeds) values["vocab"] = shape.vocab * larger;
  if (family.learned_positions) values["positions"] = shape.seq * larger;
  return values;
}

StepProgram EmptyProgram(const RunSpec& spec) {
  StepProgram program;
  program.spec = spec;
  const Gpu* gpu = FindGpu(spec.gpu);
  program.trace = gpu == nullptr ? Trace() : Trace(CudaDevice(gpu->compute_capability));
  return program;
}

void RecordCopies(const Sizes& sizes, Trace& trace) {
  constexpr int64_t kColumns = 4096;
  const auto tensor = [&] { return trace.Persistent(DType::kF32, sizes.copy_rows, kColumns, Category::kWorkspace); };
  const Tensor a = tensor();
  const Tensor b = tensor();
  const Tensor c = tensor();
  // Pages that were never written all map to one page, so every tensor is filled.
  for (const Tensor& t : {a, b, c}) Fill(trace, t, 1);
  DropoutAdd(trace, a, b, c, 0, {});
  DropoutAdd(trace, b, c, a, 0, {});
}

void RecordLaunches(Trace& trace) {
  const Tensor x = trace.Persistent(DType::kF32, 1, 16, Category::kWorkspace);
  for (int i = 0; i < 200; ++i) Fill(trace, x, 0);
}

void RecordCollectives(const RunSpec& spec, const Sizes& sizes, Trace& trace) {
  Flights flights(trace, MeshOf(spec));
  for (int64_t bytes = int64_t{1} << 12; bytes <= sizes.collective_bytes; bytes *= 4) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const int64_t part = bytes / SizeOf(dtype) / spec.ranks;
      const Tensor full = trace.Temporary(dtype, 1, part * spec.ranks, Category::kWorkspace);
      const Tensor mine = trace.Temporary(dtype, 1, part, Category::kWorkspace);
      Fill(trace, full, 0);
      Fill(trace, mine, 0);
      flights.Land(flights.AllGather(MeshAxes::All(), mine, full));
      const Tensor sum = trace.Temporary(DType::kF32, 1, part * spec.ranks, Category::kWorkspace);
      for (const bool accumulate : {false, true}) {
        Fill(trace, sum, 0);
        flights.Land(flights.ReduceScatter(MeshAxes::All(), sum, mine, accumulate));
      }
      if (dtype != DType::kF32) continue;
      Fill(trace, sum, 0);
      flights.Land(flights.AllReduce(MeshAxes::All(), sum));
    }
  }
  for (const int64_t elements : {1, 64, 1024}) {
    const Tensor values = trace.Temporary(DType::kF32, 1, elements, Category::kWorkspace);
    Fill(trace, values, 0);
    if (elements == 1) flights.SumOverRanks(MeshAxes::All(), values);
    flights.MaxOverRanks(MeshAxes::All(), values);
  }
}

}  // namespace

std::vector<RunSpec> CalibrationSteps(const RunSpec& base, bool small) {
  const Sizes sizes = SizesFor(base, small);
  const std::vector<const Family*> families = FamiliesToCalibrate(false);
  std::vector<RunSpec> specs;
  for (size_t shape = 0; shape < sizes.shapes.size(); ++shape) {
    for (size_t p = 0; p < std::size(kPrecisions); ++p) {
      const Family& family = *families[(shape + p) % families.size()];
      Json values = StepOf(base, sizes, shape, family, kPrecisions[p]);
      const size_t turn = shape + p / 2;
      if (turn % 3 == 1) values["grad_clip"] = 1;
      if (turn % 4 == 2) values["grad_accumulation"] = 2;
      const bool either_state = kPrecisions[p] != "fp16" && kPrecisions[p] != "fp32" && kPrecisions[p] != "tf32";
      if (turn % 4 == 3 && either_state) values["state_precision"] = family.state_as_precision ? "fp32" : "bf16";
      if (turn % 5 == 4 && family.embeds) values["tied_head"] = true;
      if (turn % 5 == 2 && family.embeds) values["dropout"] = 0.1;
      specs.push_back(SpecOf(values));
    }
  }
  return specs;
}

std::vector<RunSpec> CalibrationRankSteps(const RunSpec& base, bool small) {
  const Sizes sizes = SizesFor(base, small);
  constexpr std::pair<size_t, std::string_view> kOf[] = {
      {0, "bf16"}, {4, "fp32"}, {2, "bf16"}, {9, "fp8"}, {1, "bf16"}};
  constexpr std::string_view kShards[] = {"full", "optimizer", "none"};
  const std::vector<const Family*> families = FamiliesToCalibrate(true);
  std::vector<RunSpec> specs;
  for (size_t i = 0; i < std::size(kOf); ++i) {
    for (size_t s = 0; s < std::size(kShards); ++s) {
      Json values = StepOf(base, sizes, kOf[i].first, *families[i % families.size()], kOf[i].second);
      values["layers"] = 3;
      values["ranks"] = base.ranks;
      values["shard"] = kShards[s];
      if ((i + s) % 3 == 1) values["grad_clip"] = 1;
      specs.push_back(SpecOf(values));
    }
  }
  return specs;
}

std::string_view ProbeName(Probe probe) {
  switch (probe) {
    case Probe::kCopy:
      return "copy";
    case Probe::kLaunch:
      return "launch";
    case Probe::kCollectives:
      return "collectives";
  }
  return "";
}

StepProgram ProbeProgram(Probe probe, const RunSpec& spec, bool small) {
  const Sizes sizes = SizesFor(spec, small);
  StepProgram program = EmptyProgram(spec);
  switch (probe) {
    case Probe::kCopy:
      RecordCopies(sizes, program.trace);
      break;
    case Probe::kLaunch:
      RecordLaunches(program.trace);
      break;
    case Probe::kCollectives:
      RecordCollectives(spec, sizes, program.trace);
      break;
  }
  program.layout = PlanLayout(program.trace);
  return program;
}

}  // namespace ridgeline::engine
