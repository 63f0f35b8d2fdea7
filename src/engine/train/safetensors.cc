#include "engine/train/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"
#include "ridgeline/json_fault.h"
#include "ridgeline/limits.h"

namespace ridgeline::engine {
namespace {

// Returns 0 for a dtype that is not supported.
int64_t DTypeBytes(const std::string& dtype) {
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "BF16" || dtype == "F16" || dtype == "I16") return 2;
  if (dtype == "I64") return 8;
  if (dtype == "U8") return 1;
  return 0;
}

}  // namespace

int64_t SafetensorsFile::Entry::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, ForeignFile::Links links)
    : source_(path.string()), file_(path, links) {
  const auto bad = [&](const std::string& what) -> Error {
    return {ErrorKind::kInvalidInput, source_ + ": not a safetensors file: " + what};
  };
  uint64_t header_bytes = 0;
  if (file_.size() < static_cast<int64_t>(sizeof header_bytes)) throw bad("it is shorter than its header's length");
  file_.ReadAt(0, {reinterpret_cast<char*>(&header_bytes), sizeof header_bytes});
  if (header_bytes > static_cast<uint64_t>(file_.size()) - sizeof header_bytes) {
    throw bad("its header ends outside the file");
  }
  if (header_bytes > kMaxTensorHeaderBytes) throw bad("its header is longer than any");
  std::string text(header_bytes, '\0');
  file_.ReadAt(sizeof header_bytes, text);
  data_begin_ = static_cast<int64_t>(sizeof header_bytes + header_bytes);
  const int64_t data_bytes = file_.size() - data_begin_;
  const Json header = ParseJson(text, source_);
  try {
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") continue;
      Entry entry;
      value.at("dtype").get_to(entry.dtype);
      value.at("shape").get_to(entry.shape);
      entry.begin = value.at("data_offsets").at(0).get<int64_t>();
      entry.end = value.at("data_offsets").at(1).get<int64_t>();
      if (entry.begin < 0 || entry.end < entry.begin || entry.end > data_bytes) {
        throw bad("the tensor '" + name + "' lies outside the file; it may have been cut short");
      }
      int64_t elements = 1;
      for (const int64_t size : entry.shape) {
        if (size < 0 || (size > 0 && elements > std::numeric_limits<int32_t>::max() * int64_t{1024} / size)) {
          throw bad("the tensor '" + name + "' has an impossible shape");
        }
        elements *= size;
      }
      const int64_t element_bytes = DTypeBytes(entry.dtype);
      if (element_bytes != 0 && elements * element_bytes != entry.end - entry.begin) {
        throw bad("the tensor '" + name + "' has a shape that does not fit its bytes");
      }
      entries_.emplace(name, std::move(entry));
    }
  } catch (const Json::exception& e) {
    throw bad(JsonFault(e));
  }
}

const SafetensorsFile::Entry& SafetensorsFile::Find(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) throw Error(ErrorKind::kInvalidInput, source_ + ": there is no tensor '" + name + "'");
  return it->second;
}

void SafetensorsFile::ReadBytes(const Entry& entry, int64_t first, std::span<std::byte> to) const {
  file_.ReadAt(data_begin_ + entry.begin + first, {reinterpret_cast<char*>(to.data()), to.size()});
}

std::vector<char> SafetensorsFile::AllBytes(const Entry& entry) const {
  std::vector<char> bytes(static_cast<size_t>(entry.end - entry.begin));
  file_.ReadAt(data_begin_ + entry.begin, bytes);
  return bytes;
}

std::vector<float> SafetensorsFile::Floats(const std::string& name) const {
  std::vector<float> values(static_cast<size_t>(Find(name).elements()));
  ReadFloats(name, 0, values);
  return values;
}

void SafetensorsFile::ReadFloats(const std::string& name, int64_t first, std::span<float> to) const {
  const Entry& entry = Find(name);
  if (entry.dtype == "F32") {
    return ReadBytes(entry, first * static_cast<int64_t>(sizeof(float)), std::as_writable_bytes(to));
  }
  if (entry.dtype != "BF16" && entry.dtype != "F16") {
    throw Error(ErrorKind::kInvalidInput,
                source_ + ": the tensor '" + name + "' is " + entry.dtype + ", not F32, BF16 or F16");
  }
  std::vector<uint16_t> bits(to.size());
  ReadBytes(entry, first * static_cast<int64_t>(sizeof(uint16_t)), std::as_writable_bytes(std::span(bits)));
  std::transform(bits.begin(), bits.end(), to.begin(), entry.dtype == "F16" ? FromFp16 : FromBf16);
}

std::vector<int32_t> SafetensorsFile::Integers(const std::string& name) const {
  const Entry& entry = Find(name);
  const std::vector<char> bytes = AllBytes(entry);
  const char* from = bytes.data();
  std::vector<int32_t> values(static_cast<size_t>(entry.elements()));
  if (entry.dtype == "I32") {
    std::memcpy(values.data(), from, values.size() * sizeof(int32_t));
  } else if (entry.dtype == "I64") {
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t value = 0;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      values[i] = static_cast<int32_t>(value);
    }
  } else {
    throw Error(ErrorKind::kInvalidInput, source_ + ": the tensor '" + name + "' is " + entry.dtype + ", not I32");
  }
  return values;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const Tensor> tensors) : file_(path) {
  // Tools that read weights into PyTorch require this word.
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes}}};
    at += tensor.bytes;
  }
  std::string text = DumpJson(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins aligned
  const uint64_t header_bytes = text.size();
  Put({reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes});
  Put(text);
}

void SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  Put({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void SafetensorsWriter::Finish() { file_.Sync(); }

void SafetensorsWriter::Put(std::string_view bytes) {
  file_.Append(bytes);
  hasher_.Add(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
}

}  // namespace ridgeline::engine
