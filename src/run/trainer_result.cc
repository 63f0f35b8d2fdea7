#include "run/trainer_result.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/limits.h"
#include "ridgeline/sealed_json.h"
#include "run/consistency.h"
#include "run/figures.h"
#include "run/result.h"
#include "run/step_figures.h"

namespace ridgeline {
namespace {

constexpr size_t kShownKeyBytes = 80;  // of a refused key

// Replaces NaN, Infinity and -Infinity, which JSON lacks, with null outside of strings.
std::string WithoutNonFinite(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  while (!text.empty()) {
    size_t taken = 1;
    if (text.front() == '"') {
      quoted = !quoted;
    } else if (quoted && text.front() == '\\' && text.size() > 1) {
      taken = 2;
    } else if (!quoted) {
      const auto word = {std::string_view("-Infinity"), std::string_view("Infinity"), std::string_view("NaN")};
      const auto* const found = std::find_if(word.begin(), word.end(), [&](auto w) { return text.starts_with(w); });
      if (found != word.end()) {
        out += "null";
        text.remove_prefix(found->size());
        continue;
      }
    }
    out += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

// Every key a RunResult may have: "status", "step_ns", "step_ns.median", …
const std::vector<std::string>& KnownKeys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> known = {kChecksumKey};
    const Json all = EncodeResult({});
    for (const auto& [key, value] : all.items()) known.push_back(key);
    for (const Figure& figure : Figures()) {
      const size_t dot = figure.key.find('.');
      if (dot == std::string_view::npos) continue;
      known.emplace_back(figure.key.substr(0, dot));  // a result may leave out a group
      known.emplace_back(figure.key);
    }
    return known;
  }();
  return keys;
}

void CheckKey(const std::string& key, const std::vector<std::string>& known, const std::string& source) {
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  const std::string shown = ShortenToBytes(key, kShownKeyBytes);
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{}: not a RunResult: unknown key '{}'{}", source, shown, DidYouMean(shown, known)),
              SeeTrainerContract("put keys of your own into evidence or environment; the known keys are listed in"));
}

void CheckKeys(const Json& document, const std::string& source) {
  if (!document.is_object()) return;  // decoding refuses it later
  // Groups of figures have known keys. Evidence, environment and amounts may have any.
  const auto is_group = [](const std::string& key) {
    return std::any_of(Figures().begin(), Figures().end(),
                       [&](const Figure& figure) { return figure.key.starts_with(key + "."); });
  };
  for (const auto& [key, value] : document.items()) {
    CheckKey(key, KnownKeys(), source);
    if (!value.is_object() || !is_group(key)) continue;
    for (const auto& [inner, figure] : value.items()) CheckKey(fmt::format("{}.{}", key, inner), KnownKeys(), source);
  }
  static const std::vector<std::string> kOfRanks = {"ranks.host", "ranks.planned_peak_bytes", "ranks.rss_peak_bytes"};
  const auto ranks = document.find("ranks");
  if (ranks == document.end() || !ranks->is_array()) return;
  for (const Json& rank : *ranks) {
    if (!rank.is_object()) continue;
    for (const auto& [key, value] : rank.items()) CheckKey("ranks." + key, kOfRanks, source);
  }
}

void SayDiverged(RunResult& result) {
  const auto at =
      std::find_if(result.loss.begin(), result.loss.end(), [](double loss) { return !std::isfinite(loss); });
  if (at == result.loss.end()) return;
  const auto step = at - result.loss.begin() + 1;
  result.status = RunStatus::kDiverged;
  result.message = fmt::format("the loss of step {} of {} is not a finite number", step, result.loss.size());
  result.hint = "lower learning_rate, set grad_clip, or use a wider precision";
  result.evidence["step"] = std::to_string(step);
}

// The longest result of the point: series of very many steps alone are long.
size_t MostBytes(const RunSpec& spec) {
  const auto steps = static_cast<size_t>(std::min<int64_t>(StepsOf(spec), kMaxJobLineBytes / kMaxResultBytesAStep));
  return std::max(kMaxResultBytes, steps * kMaxResultBytesAStep);
}

}  // namespace

std::string SeeTrainerContract(std::string_view text) {
  std::filesystem::path page = "docs/trainer-contract.md";
  if (const auto docs = FindDataDir("docs"); docs && std::filesystem::exists(*docs / page.filename())) {
    page = *docs / page.filename();
  }
  return fmt::format("{} {}", text, page.string());
}

void CheckTrainerResult(const RunSpec& spec, const RunResult& result, const std::string& source) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} {}", source, why));
  };
  for (const auto& [key, texts] :
       {std::pair("evidence", &result.evidence), std::pair("environment", &result.environment)}) {
    if (texts->size() > kMaxTexts) {
      refuse(fmt::format("has {} pieces of {}, and may have {}", texts->size(), key, kMaxTexts));
    }
  }
  if (const std::string wrong = Contradiction(spec, result); !wrong.empty()) refuse("cannot be true: " + wrong);
  if (result.status != RunStatus::kOk) return;
  if (const std::string missing = MissingOfOk(spec, result); !missing.empty()) {
    refuse("says 'ok' without a figure that an ok needs: " + missing);
  }
}

RunResult ParseTrainerResult(std::string_view text, const RunSpec& spec, const std::string& source,
                             int64_t tokens_per_step) {
  RunResult result;
  try {
    const Json document = ParseJson(WithoutNonFinite(text), source);
    CheckKeys(document, source);
    result = DecodeResult(document, source);
    result.cores = {};  // the program that started the trainer knows these
    if (result.status == RunStatus::kOk) SayDiverged(result);
    if (result.tokens_per_step == 0) result.tokens_per_step = tokens_per_step;
    if (result.status == RunStatus::kOk && !result.step_ns.all_ns.empty()) DeriveStepFigures(spec, result);
    CheckTrainerResult(spec, result, source);
  } catch (const Error& e) {
    if (!e.hint().empty()) throw;
    throw Error(e.kind(), e.message(), SeeTrainerContract("the trainer contract is in"));
  }
  return result;
}

std::optional<RunResult> ReadTrainerResult(const std::filesystem::path& path, const RunSpec& spec,
                                           const std::string& source, int64_t tokens_per_step) {
  ForeignFile file(path);
  if (file.state() == ForeignFile::State::kMissing) return std::nullopt;
  const std::optional<std::string> text = file.Read(MostBytes(spec));
  if (!text) {
    throw Error(file.state() == ForeignFile::State::kUnfit ? ErrorKind::kInvalidInput : ErrorKind::kInfrastructure,
                fmt::format("{} {}", source, file.problem()), SeeTrainerContract("the trainer contract is in"));
  }
  return ParseTrainerResult(*text, spec, source, tokens_per_step);
}

}  // namespace ridgeline
