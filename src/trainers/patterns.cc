#include "trainers/patterns.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::trainers {
namespace {

constexpr int64_t kPatternMemory = int64_t{1} << 20;
constexpr int64_t kSetMemory = int64_t{8} << 20;

re2::RE2::Options Options(int64_t memory) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(memory);
  return options;
}

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }
std::string_view View(const re2::StringPiece& piece) { return {piece.data(), piece.size()}; }

}  // namespace

Pattern::Pattern(const std::string& text) {
  if (text.empty()) throw Error(ErrorKind::kInvalidInput, "a pattern must not be empty");
  if (text.size() > kMaxPatternBytes) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("a pattern has at most {} bytes, and this one has {}", kMaxPatternBytes, text.size()));
  }
  compiled_ = std::make_shared<const re2::RE2>(Piece(text), Options(kPatternMemory));
  if (!compiled_->ok())
    throw Error(ErrorKind::kInvalidInput, fmt::format("RE2 does not take this pattern: {}", compiled_->error()));
  const auto& names = compiled_->NamedCapturingGroups();
  const auto named = [&](const char* name) {
    const auto found = names.find(name);
    return found == names.end() ? 0 : found->second;
  };
  step_group_ = named("step");
  rank_group_ = named("rank");
  unit_group_ = named("unit");
  value_group_ = named("value");
  if (value_group_ != 0 || Unnamed() != 1) return;
  for (value_group_ = 1; IsOther(value_group_);) ++value_group_;
}

bool Pattern::IsOther(int group) const { return group == step_group_ || group == rank_group_ || group == unit_group_; }

int Pattern::Unnamed() const {
  int groups = compiled_->NumberOfCapturingGroups();
  for (const int group : {step_group_, rank_group_, unit_group_}) groups -= group == 0 ? 0 : 1;
  return groups;
}

const std::string& Pattern::text() const { return compiled_->pattern(); }

std::string Pattern::GroupsProblem() const {
  if (value_group_ != 0) return {};
  return Unnamed() == 0
             ? "no group says what the value is: write (?P<value>…) around it"
             : fmt::format("{} groups may be the value: write (?P<value>…) around it, and (?:…) for the others",
                           Unnamed());
}

bool Pattern::has_begin() const {
  const std::string& text = compiled_->pattern();
  for (size_t at = text.find('^'); at != std::string::npos; at = text.find('^', at + 1)) {
    if (at == 0 || (text[at - 1] != '[' && text[at - 1] != '\\')) return true;
  }
  return false;
}

std::optional<PatternMatch> Pattern::Find(std::string_view line, size_t from, bool there) const {
  const int groups = 1 + std::max({value_group_, step_group_, rank_group_, unit_group_});
  std::vector<re2::StringPiece> found(static_cast<size_t>(groups));
  const auto anchor = there ? re2::RE2::ANCHOR_START : re2::RE2::UNANCHORED;
  if (!compiled_->Match(Piece(line), from, line.size(), anchor, found.data(), groups)) return std::nullopt;
  const auto group = [&](int number) -> std::optional<std::string_view> {
    const re2::StringPiece piece = number == 0 ? re2::StringPiece() : found[static_cast<size_t>(number)];
    return piece.data() == nullptr ? std::nullopt : std::optional(View(piece));
  };
  PatternMatch match;
  match.whole = View(found[0]);
  const auto value = group(value_group_);
  match.has_value = value.has_value();
  match.value = value.value_or("");
  match.step = group(step_group_);
  match.rank = group(rank_group_);
  match.unit = group(unit_group_);
  return match;
}

struct PatternSet::Compiled {
  re2::RE2::Set set{Options(kSetMemory), re2::RE2::UNANCHORED};
};

PatternSet::PatternSet(const std::vector<const Pattern*>& patterns)
    : compiled_(std::make_unique<Compiled>()), all_(patterns.size()) {
  std::iota(all_.begin(), all_.end(), 0);
  bool whole = !patterns.empty();
  for (const Pattern* pattern : patterns) whole = whole && compiled_->set.Add(Piece(pattern->text()), nullptr) >= 0;
  if (!whole || !compiled_->set.Compile()) compiled_.reset();
}

PatternSet::~PatternSet() = default;

std::vector<int> PatternSet::Matching(std::string_view line) const {
  if (compiled_ == nullptr) return all_;
  std::vector<int> matching;
  re2::RE2::Set::ErrorInfo error{re2::RE2::Set::kNoError};
  if (!compiled_->set.Match(Piece(line), &matching, &error) && error.kind != re2::RE2::Set::kNoError) return all_;
  std::sort(matching.begin(), matching.end());
  return matching;
}

}  // namespace ridgeline::trainers
