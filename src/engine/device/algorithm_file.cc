#include "engine/device/algorithm_file.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "ridgeline/sealed_json.h"

namespace ridgeline::engine {
namespace {

constexpr int kFormatVersion = 1;
constexpr std::string_view kDigits = "0123456789abcdef";

std::string HexOf(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += kDigits[static_cast<unsigned char>(byte) >> 4];
    digits += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return digits;
}

std::optional<std::string> BytesOf(const std::string& digits) {
  if (digits.size() % 2 != 0 || digits.find_first_not_of(kDigits) != std::string::npos) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(kDigits.find(digits[i]) << 4 | kDigits.find(digits[i + 1]));
  }
  return bytes;
}

}  // namespace

std::string EncodeAlgorithms(const KeptAlgorithms& algorithms) {
  Json digits = Json::object();
  for (const auto& [work, bytes] : algorithms) digits[work] = HexOf(bytes);
  return SealedText({{"version", kFormatVersion}, {"algorithms", std::move(digits)}}) + "\n";
}

KeptAlgorithms DecodeAlgorithms(std::string_view text, const std::string& source) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} {}", source, why));
  };
  const Json document = ParseJson(text, source);
  if (!document.is_object() || !document.contains(kChecksumKey)) refuse("has no kept algorithms");
  if (!IsWhole(document)) refuse(kNotWhole);
  if (document.value("version", Json()) != kFormatVersion) refuse("was written by another version of Ridgeline");
  const Json algorithms = document.value("algorithms", Json());
  if (!algorithms.is_object()) refuse("has no kept algorithms");
  KeptAlgorithms kept;
  for (const auto& [work, digits] : algorithms.items()) {
    auto bytes = digits.is_string() ? BytesOf(digits.get<std::string>()) : std::nullopt;
    if (!bytes) refuse("has an algorithm that is not made of hexadecimal digits");
    kept[work] = *std::move(bytes);
  }
  return kept;
}

AlgorithmFile::AlgorithmFile(std::filesystem::path path, std::string machine, Use use,
                             std::function<void(const std::string&)> note)
    : path_(std::move(path)), machine_(std::move(machine)), use_(use), note_(std::move(note)), kept_(Read()) {}

KeptAlgorithms AlgorithmFile::Read() {
  try {
    const auto text = ReadForeignFile(path_, kMostBytes);
    return text ? DecodeAlgorithms(*text, path_.string()) : KeptAlgorithms();
  } catch (const Error& error) {
    refused_ = true;
    Note(error.message() + ": it is left unchanged; remove it, and a new one is made");
    return {};
  }
}

int64_t AlgorithmFile::Digest() const {
  KeptAlgorithms here;
  for (const auto& [key, algorithm] : kept_) {
    if (key.starts_with(KeyOf(""))) here[key] = algorithm;
  }
  return static_cast<int64_t>(Hash(EncodeAlgorithms(here)).low);
}

std::optional<std::string> AlgorithmFile::Find(const std::string& work) const {
  const auto found = kept_.find(KeyOf(work));
  if (found == kept_.end()) return std::nullopt;
  return found->second;
}

void AlgorithmFile::Keep(const std::string& work, std::string algorithm) {
  kept_[KeyOf(work)] = unsaved_[KeyOf(work)] = std::move(algorithm);
}

void AlgorithmFile::Save() {
  if (unsaved_.empty() || refused_ || !measures()) return;
  KeptAlgorithms all = Read();
  if (refused_) return;
  for (const auto& [key, algorithm] : unsaved_) all[key] = algorithm;
  try {
    std::string text = EncodeAlgorithms(all);
    if (text.size() > kMostBytes) text = EncodeAlgorithms(unsaved_);
    MakeDirs(path_.has_parent_path() ? path_.parent_path() : ".");
    WriteFileAtomic(path_, text);
    unsaved_.clear();
  } catch (const Error& error) {
    Note(error.message() + ": the algorithms that were found fastest are not kept");
  }
}

void AlgorithmFile::Note(const std::string& problem) const {
  if (note_) note_(problem);
}

}  // namespace ridgeline::engine
