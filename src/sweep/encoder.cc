#include "sweep/encoder.h"

#include <algorithm>

#include <fmt/format.h>

#include "run/fields.h"
#include "run/spec.h"

namespace ridgeline {

SpecEncoder::SpecEncoder() : fragments_(Fields().size()) {
  version_at_ = static_cast<size_t>(
      std::count_if(Fields().begin(), Fields().end(), [](const Field& field) { return field.name < "version"; }));
  version_ = fmt::format(",\"version\":{}", kRunSpecVersion);
}

std::string_view SpecEncoder::Encode(const RunSpec& spec) {
  const auto fields = Fields();
  out_.clear();
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool changed = std::visit([&](auto member) { return spec.*member != last_.*member; }, fields[i].member);
    if (changed || first_) {
      fragments_[i].assign(1, ',');
      if (!AppendField(spec, fields[i], fragments_[i])) fragments_[i].clear();
      std::visit([&](auto member) { last_.*member = spec.*member; }, fields[i].member);
    }
    if (i == version_at_) out_ += version_;
    out_ += fragments_[i];
  }
  out_ += '}';
  out_.front() = '{';
  first_ = false;
  return out_;
}

}  // namespace ridgeline
