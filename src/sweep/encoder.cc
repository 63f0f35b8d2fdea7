#include "sweep/encoder.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "run/fields.h"
#include "run/spec.h"

namespace ridgeline::sweep {

namespace {

size_t FieldsBefore(std::string_view name) {
  return static_cast<size_t>(std::ranges::count_if(Fields(), [&](const Field& field) { return field.name < name; }));
}

// Compares without copies, because a sweep may have a million points. `field` is one of the table's.
bool Differ(const RunSpec& a, const RunSpec& b, const Field& field) {
  return std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, OwnMember>) {
          return false;
        } else {
          return a.*member != b.*member;
        }
      },
      field.member);
}

// Copies the member itself, because a value may also stand for "not given".
void Copy(const RunSpec& from, RunSpec& to, const Field& field) {
  std::visit(
      [&](const auto& member) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, OwnMember>) to.*member = from.*member;
      },
      field.member);
}

}  // namespace

SpecEncoder::SpecEncoder()
    : fragments_(Fields().size()), own_at_(FieldsBefore("own")), version_at_(FieldsBefore("version")) {
  version_ = fmt::format(",\"version\":{}", kRunSpecVersion);
}

std::string_view SpecEncoder::Encode(const RunSpec& spec) {
  const auto fields = Fields();
  out_.clear();
  // Which fields are left out depends on the family.
  const bool anew = first_ || spec.family != last_.family;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool changed = Differ(spec, last_, fields[i]);
    if (changed || anew) {
      fragments_[i].assign(1, ',');
      if (!AppendField(spec, fields[i], fragments_[i])) fragments_[i].clear();
      Copy(spec, last_, fields[i]);
    }
    if (i == own_at_ && !spec.own.empty()) {
      out_ += ',';
      AppendOwn(spec, out_);
    }
    if (i == version_at_) out_ += version_;
    out_ += fragments_[i];
  }
  out_ += '}';
  out_.front() = '{';
  first_ = false;
  return out_;
}

}  // namespace ridgeline::sweep
