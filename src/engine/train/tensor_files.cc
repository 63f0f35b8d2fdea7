#include "engine/train/tensor_files.h"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "ridgeline/limits.h"

namespace ridgeline::engine {
namespace {

std::string_view BareName(std::string_view name) {
  constexpr std::string_view kPrefix = "transformer.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Buffers that older versions of transformers saved with a model's weights: causal masks, and frequencies of rotary
// embeddings.
bool IsBuffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace

TensorFiles::TensorFiles(const std::filesystem::path& folder, std::span<const std::string> names,
                         ForeignFile::Links links) {
  for (const std::string& file_name : names) {
    files_.push_back(std::make_unique<SafetensorsFile>(folder / file_name, links));
    for (const auto& [name, entry] : files_.back()->entries()) {
      if (IsBuffer(name)) continue;
      const auto [at, is_new] = found_.emplace(BareName(name), Found{files_.back().get(), file_name, name});
      if (is_new) continue;
      throw Error(ErrorKind::kInvalidInput, fmt::format("{}: the tensor {} is in {} and in {}", folder.string(), name,
                                                        at->second.file_name, file_name));
    }
  }
}

const TensorFiles::Found* TensorFiles::Find(const std::string& name) const {
  const auto it = found_.find(BareName(name));
  return it == found_.end() ? nullptr : &it->second;
}

std::string TensorFiles::Difference(std::span<const Wanted> wanted) const {
  std::set<std::string_view> names;
  for (const auto& [name, shape] : wanted) {
    names.insert(BareName(name));
    const Found* found = Find(name);
    if (found == nullptr) return fmt::format("they have no tensor {}, and this run has", name);
    if (found->entry().shape != shape) {
      return fmt::format("{} is [{}] in {}, and [{}] in this run", name, fmt::join(found->entry().shape, ", "),
                         found->file_name, fmt::join(shape, ", "));
    }
  }
  for (const auto& [name, found] : found_) {
    if (!names.contains(name)) {
      return fmt::format("{} has a tensor {}, and this run has not", found.file_name,
                         ShortenToBytes(found.name, kMaxNameBytes));
    }
  }
  return {};
}

}  // namespace ridgeline::engine
