#include "engine/step/trace_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/step/budget.h"
#include "run/names.h"

namespace ridgeline::engine {
namespace {

// Fields and values of Chakra's et_def.proto.
namespace chakra {
constexpr const char* kVersion = "0.0.4";
enum Metadata : protozero::pbf_tag_type { kMetadataVersion = 1, kMetadataAttr = 2 };
enum Node : protozero::pbf_tag_type {
  kId = 1,
  kName = 2,
  kType = 3,
  kDataDeps = 5,
  kStartMicros = 6,
  kDurationMicros = 7,
  kAttr = 10
};
enum Attribute : protozero::pbf_tag_type { kAttrName = 1, kInt64 = 9, kUint64 = 13, kBool = 27, kString = 29 };
constexpr int32_t kComputeNode = 4;
constexpr int32_t kCollectiveNode = 7;

int64_t CommType(Collective collective) {
  switch (collective) {
    case Collective::kAllGather:
      return 2;
    case Collective::kReduceScatter:
      return 7;
    case Collective::kAllReduce:
    case Collective::kNone:
      break;
  }
  return 0;
}
}  // namespace chakra

// An AttributeProto of a message: a name, and a value of one of its many types.
class Attributes {
 public:
  Attributes(protozero::pbf_writer& of, protozero::pbf_tag_type tag) : of_(of), tag_(tag) {}
  void AddInt64(const char* name, int64_t value) {
    Add(name, [&](protozero::pbf_writer& attribute) { attribute.add_int64(chakra::kInt64, value); });
  }
  void AddUint64(const char* name, uint64_t value) {
    Add(name, [&](protozero::pbf_writer& attribute) { attribute.add_uint64(chakra::kUint64, value); });
  }
  void AddBool(const char* name, bool value) {
    Add(name, [&](protozero::pbf_writer& attribute) { attribute.add_bool(chakra::kBool, value); });
  }
  void AddString(const std::string& name, std::string_view value) {
    Add(name,
        [&](protozero::pbf_writer& attribute) { attribute.add_string(chakra::kString, value.data(), value.size()); });
  }

 private:
  template <typename AddValue>
  void Add(const std::string& name, const AddValue& add_value) {
    protozero::pbf_writer attribute(of_, tag_);
    attribute.add_string(chakra::kAttrName, name);
    add_value(attribute);
  }

  protozero::pbf_writer& of_;
  const protozero::pbf_tag_type tag_;
};

void AppendDelimited(const std::string& message, std::string& file) {
  protozero::write_varint(std::back_inserter(file), message.size());
  file += message;
}

uint64_t Micros(double ns) { return static_cast<uint64_t>(std::llround(std::max(ns, 0.0) / 1e3)); }
uint64_t Whole(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }

}  // namespace

std::string TraceTitle(const RunSpec& spec) {
  std::string title =
      fmt::format("{}, {}, batch {} of {}", spec.model, spec.precision, spec.batch_size, spec.seq_length);
  if (spec.grad_accumulation > 1) title += fmt::format(", accumulation {}", spec.grad_accumulation);
  if (spec.checkpointing != Checkpointing()) title += fmt::format(", checkpointing {}", spec.checkpointing);
  if (spec.ranks > 1) title += fmt::format(", {} ranks, shard {}", spec.ranks, spec.shard);
  return title;
}

std::string ChromeTrace(const Timeline& timeline, const TraceAbout& about) {
  // Writes events one by one, because a step of a large model has 100,000 of them.
  std::string text = "{\"displayTimeUnit\":\"ns\",\"otherData\":";
  Json other = about.facts;
  other["provenance"] = about.provenance;
  text += DumpJson(other);
  text += ",\"traceEvents\":[\n";
  const auto name = [&](const char* what, int tid, const std::string& value) {
    text += DumpJson({{"ph", "M"}, {"name", what}, {"pid", 0}, {"tid", tid}, {"args", {{"name", value}}}}) + ",\n";
  };
  name("process_name", 0, fmt::format("{} ({})", about.title, about.provenance));
  name("thread_name", 0, "compute");
  name("thread_name", 1, "communication");
  bool first = true;
  for (const TimelineSpan& span : timeline.spans()) {
    const bool communicates = span.collective != Collective::kNone;
    Json args = {{"phase", PhaseName(span.phase)}, {communicates ? "collective_bytes" : "bytes", span.bytes}};
    if (span.layer >= 0) args["layer"] = span.layer;
    if (span.axes != MeshAxes::All()) args["axes"] = AxesText(span.axes);
    if (span.flops > 0) args["flops"] = span.flops;
    text += fmt::format(R"({}{{"ph":"X","name":{},"cat":"{}","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{}}})",
                        first ? "" : ",\n", DumpJson(Json(span.op)), PhaseName(span.phase), communicates ? 1 : 0,
                        span.begin_ns / 1e3, (span.end_ns - span.begin_ns) / 1e3, DumpJson(args));
    first = false;
  }
  // Without events, the comma behind the names of the rows would make the list invalid.
  if (first) text.erase(text.size() - 2, 1);
  return text + "\n]}\n";
}

std::string ChakraTrace(const Timeline& timeline, const TraceAbout& about) {
  std::string file;
  std::string message;
  {
    protozero::pbf_writer metadata(message);
    metadata.add_string(chakra::kMetadataVersion, chakra::kVersion);
    Attributes attributes(metadata, chakra::kMetadataAttr);
    // Readers of protobuf strings refuse anything that is not UTF-8.
    attributes.AddString("title", ValidUtf8(about.title));
    attributes.AddString("provenance", ValidUtf8(about.provenance));
    for (const auto& [name, value] : about.facts) attributes.AddString(name, ValidUtf8(value));
  }
  AppendDelimited(message, file);
  uint64_t id = 0;
  std::vector<uint64_t> after;
  for (const TimelineSpan& span : timeline.spans()) {
    message.clear();
    protozero::pbf_writer node(message);
    const bool communicates = span.collective != Collective::kNone;
    node.add_uint64(chakra::kId, ++id);
    node.add_string(chakra::kName, span.op.data(), span.op.size());
    node.add_enum(chakra::kType, communicates ? chakra::kCollectiveNode : chakra::kComputeNode);
    after.assign(span.after.begin(), span.after.end());
    for (uint64_t& earlier : after) ++earlier;  // ids count from 1
    node.add_packed_uint64(chakra::kDataDeps, after.begin(), after.end());
    // Rounds ends, not lengths, so that their sum stays the step's.
    node.add_uint64(chakra::kStartMicros, Micros(span.begin_ns));
    node.add_uint64(chakra::kDurationMicros, Micros(span.end_ns) - Micros(span.begin_ns));
    Attributes attributes(node, chakra::kAttr);
    attributes.AddBool("is_cpu_op", false);
    if (communicates) {
      attributes.AddInt64("comm_type", chakra::CommType(span.collective));
      attributes.AddInt64("comm_size", static_cast<int64_t>(Whole(span.bytes)));
      if (span.axes != MeshAxes::All()) attributes.AddString("pg_name", AxesText(span.axes));
    } else {
      // A roofline divides by both, so neither may be 0.
      attributes.AddInt64("num_ops", static_cast<int64_t>(std::max<uint64_t>(1, Whole(span.flops))));
      attributes.AddUint64("tensor_size", std::max<uint64_t>(1, Whole(span.bytes)));
    }
    attributes.AddString("phase", PhaseName(span.phase));
    if (span.layer >= 0) attributes.AddInt64("layer", span.layer);
    AppendDelimited(message, file);
  }
  return file;
}

void RequireTraceName(const std::filesystem::path& file) {
  if (file.extension() == ".json" || file.extension() == ".et") return;
  throw Error(ErrorKind::kUsage,
              fmt::format("--export-trace: a trace is a file X.json or X.et, not '{}'", file.string()),
              ".json: Chrome's trace events, for Perfetto; .et: MLCommons Chakra, for ASTRA-sim");
}

void WriteTraceFile(const std::filesystem::path& file, const Timeline& timeline, const TraceAbout& about) {
  RequireTraceName(file);
  WriteFileAtomic(file, file.extension() == ".et" ? ChakraTrace(timeline, about) : ChromeTrace(timeline, about));
}

}  // namespace ridgeline::engine
