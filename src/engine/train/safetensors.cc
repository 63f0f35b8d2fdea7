#include "engine/train/safetensors.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace ridgeline {
namespace {

// 0 for a dtype that is not read here.
int64_t DTypeBytes(const std::string& dtype) {
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "BF16") return 2;
  if (dtype == "I64") return 8;
  return 0;
}

}  // namespace

int64_t SafetensorsFile::Entry::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : source_(path.string()), bytes_(ReadFile(path)) {
  const auto bad = [&](const std::string& what) -> Error {
    return {ErrorKind::kInvalidInput, source_ + ": not a safetensors file: " + what};
  };
  uint64_t header_bytes = 0;
  if (bytes_.size() < sizeof header_bytes) throw bad("it is shorter than its header's length");
  std::memcpy(&header_bytes, bytes_.data(), sizeof header_bytes);
  if (header_bytes > bytes_.size() - sizeof header_bytes) throw bad("its header ends outside the file");
  data_begin_ = sizeof header_bytes + header_bytes;
  const auto data_bytes = static_cast<int64_t>(bytes_.size() - data_begin_);
  const Json header = ParseJson(std::string_view(bytes_).substr(sizeof header_bytes, header_bytes), source_);
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
    throw bad(e.what());
  }
}

const SafetensorsFile::Entry& SafetensorsFile::Find(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) throw Error(ErrorKind::kInvalidInput, source_ + ": there is no tensor '" + name + "'");
  return it->second;
}

std::vector<float> SafetensorsFile::Floats(const std::string& name) const {
  const Entry& entry = Find(name);
  const char* from = bytes_.data() + data_begin_ + entry.begin;
  std::vector<float> values(static_cast<size_t>(entry.elements()));
  if (entry.dtype == "F32") {
    std::memcpy(values.data(), from, values.size() * sizeof(float));
  } else if (entry.dtype == "BF16") {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
      values[i] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
  } else {
    throw Error(ErrorKind::kInvalidInput, source_ + ": the tensor '" + name + "' is " + entry.dtype + ", not F32");
  }
  return values;
}

std::vector<int32_t> SafetensorsFile::Integers(const std::string& name) const {
  const Entry& entry = Find(name);
  const char* from = bytes_.data() + data_begin_ + entry.begin;
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

}  // namespace ridgeline
