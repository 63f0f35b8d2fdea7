#include "trainers/ends.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline {
namespace {

constexpr size_t kEvidenceBytes = 1024;

// Those of one cause beside each other, in the order in which they decide; the last waits for a cause of its own.
const std::vector<PatternEnd>& BuiltIn() {
  static const std::vector<PatternEnd> ends = {
      {Pattern(R"(torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory(?:[^ ]|$)|CUDA error: out of memory)"),
       {RunStatus::kOomDevice, "use a smaller batch or sequence, or more activation checkpointing"}},
      {Pattern(R"(DefaultCPUAllocator: can't allocate memory|(?:^|[^A-Za-z])MemoryError(?::|$)|std::bad_alloc)"),
       {RunStatus::kOomHost, "give it more of the host's memory, or let it keep less there"}},
      {Pattern("No space left on device"),
       {InfrastructureReason::kStorage, "free some space, or let it write elsewhere"}},
      {Pattern(R"(\bXid\b|uncorrectable ECC error|GPU has fallen off the bus|)"
               R"(CUDA-capable device\(s\) is/are busy or unavailable)"),
       {InfrastructureReason::kNode, "look at the node's GPUs: nvidia-smi, and the kernel's log"}},
      {Pattern(R"(can't open file .*\[Errno 2\] No such file or directory)"),
       {InfrastructureReason::kStart, "is the program's path right on the node?"}},
      {Pattern(R"(Watchdog caught collective operation timeout|NCCL operations have failed or timed out|)"
               R"(ncclSystemError|ncclRemoteError|NCCL communicator was aborted)"),
       {InfrastructureReason::kNode, "look at the other ranks' logs, and at the network between the nodes"}},
  };
  return ends;
}

std::vector<const Pattern*> PatternsOf(const Trainer& trainer) {
  std::vector<const Pattern*> patterns;
  for (const PatternEnd& end : trainer.ends) patterns.push_back(&end.pattern);
  for (const PatternEnd& end : BuiltIn()) patterns.push_back(&end.pattern);
  return patterns;
}

LogEnd Seen(const EndRule& rule, int64_t number, std::string_view line) {
  return {rule.end, ShortenToBytes(line, kEvidenceBytes), rule.hint, number};
}

constexpr std::string_view kTraceback = "Traceback (most recent call last)";

bool IsImportError(std::string_view message) {
  return message.starts_with("ModuleNotFoundError:") || message.starts_with("ImportError:");
}

}  // namespace

LogEnds::LogEnds(const Trainer& trainer)
    : trainer_(trainer), patterns_(PatternsOf(trainer)), set_(patterns_), first_(patterns_.size()) {}

void LogEnds::Line(int64_t number, std::string_view line) {
  for (const int place : set_.Matching(line)) {
    const auto at = static_cast<size_t>(place);
    const size_t own = trainer_.ends.size();
    // The set may name more than those that match.
    if (first_[at] || !patterns_[at]->Find(line)) continue;
    first_[at] = Seen(at < own ? trainer_.ends[at].rule : BuiltIn()[at - own].rule, number, line);
  }
  FollowTraceback(number, line);
}

void LogEnds::LossIsNotFinite(int64_t number, std::string_view line) {
  if (!diverged_) diverged_ = Seen({RunStatus::kDiverged, "its loss is no finite number"}, number, line);
}

void LogEnds::FollowTraceback(int64_t number, std::string_view line) {
  using enum Traceback::State;
  Traceback& traceback = traceback_;
  const size_t begins = line.find(kTraceback);
  if (traceback.state == kNone && begins != std::string_view::npos) {
    traceback.prefix = ShortenToBytes(line.substr(0, begins), kEvidenceBytes);
    traceback.state = kFrames;
    return;
  }
  if (traceback.state == kNone || !line.starts_with(traceback.prefix)) return;
  const std::string_view said = line.substr(traceback.prefix.size());
  if (said.empty()) return;
  if (traceback.state == kFrames && said.front() != ' ' && said.front() != '\t') {
    const bool import = IsImportError(said);
    traceback.end = Seen({import ? RunEnd(InfrastructureReason::kStart) : RunEnd(RunStatus::kCrashed),
                          import ? "install what is missing where it runs" : "see its log"},
                         number, said);
    traceback.state = kSaid;
  } else if (traceback.state == kSaid && (said.starts_with("During handling of the above exception") ||
                                          said.starts_with("The above exception was the direct cause"))) {
    traceback.state = kChained;
  } else if (traceback.state == kChained && said.starts_with(kTraceback)) {
    traceback.state = kFrames;
  }
}

std::optional<LogEnd> LogEnds::OwnEnd() const {
  const auto end = first_.begin() + static_cast<std::ptrdiff_t>(trainer_.ends.size());
  const auto found = std::find_if(first_.begin(), end, [](const auto& seen) { return seen.has_value(); });
  return found == end ? std::nullopt : *found;
}

std::optional<LogEnd> LogEnds::BuiltInEnd() const {
  const auto own = first_.begin() + static_cast<std::ptrdiff_t>(trainer_.ends.size());
  const auto nccl = first_.end() - 1;
  const auto found = std::find_if(own, nccl, [](const auto& seen) { return seen.has_value(); });
  if (found != nccl) return *found;
  if (*nccl && (!SaidMessage() || (*nccl)->line <= traceback_.end.line)) return *nccl;
  if (SaidMessage() && traceback_.end.end == InfrastructureReason::kStart) return traceback_.end;
  return std::nullopt;
}

std::optional<LogEnd> LogEnds::Decide(std::optional<int> exit_code) const {
  const bool caught = exit_code == 0;
  if (auto own = OwnEnd()) return own;
  if (auto built_in = caught ? std::nullopt : BuiltInEnd()) return built_in;
  if (diverged_) return diverged_;
  const auto code = exit_code ? trainer_.exit_codes.find(*exit_code) : trainer_.exit_codes.end();
  const auto said = [&] { return fmt::format("it ended with exit code {}", *exit_code); };
  if (code != trainer_.exit_codes.end()) return LogEnd{code->second.end, said(), code->second.hint, 0};
  if (caught) return LogEnd{RunStatus::kOk, "", "", 0};
  if (SaidMessage()) return traceback_.end;
  if (exit_code) return LogEnd{RunStatus::kCrashed, said(), "see its log", 0};
  return std::nullopt;
}

}  // namespace ridgeline
