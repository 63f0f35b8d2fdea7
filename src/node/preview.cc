#include "node/preview.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "node/defined.h"
#include "node/ranks.h"
#include "node/starting.h"
#include "run/spec.h"

namespace ridgeline::node {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kVariable = "env.";
constexpr const char* kThreads = "OMP_NUM_THREADS";

class Previewer {
 public:
  Previewer(const Job& asked, std::shared_ptr<const trainers::Trainer> definition)
      : job_(WithTrainer(asked)), spec_(SpecOfRun(job_.points.front())) {
    if (definition != nullptr) defined_.emplace(job_, std::move(definition));
    if (!spec_.checkpoint_dir.empty()) spec_.checkpoint_dir = trainers::Placeholder("checkpoint_dir");
  }

  Preview Make() {
    Preview preview;
    preview.start = StartOn(0, /*last=*/false);
    preview.files = FilesOf(preview.start);
    if (defined_) preview.definition = trainers::DefinitionWords(defined_->trainer());
    preview.processes = ProcessesInWords();
    preview.differs = Differs(preview.start);
    preview.resume = ResumeOf(preview.start);
    preview.unknown = UnknownIn(preview);
    AddVariables(preview);
    return preview;
  }

 private:
  // As exec does if a job names no trainer.
  static Job WithTrainer(Job job) {
    if (job.definition.empty() && job.trainer.empty()) job.trainer = {(ProgramDir() / "ridgeline-train").string()};
    return job;
  }

  std::vector<RankProcess> ProcessesOn(const Nodes& nodes) const {
    const std::vector<int> cores(static_cast<size_t>(job_.cpus));
    std::vector<RankProcess> processes =
        defined_ ? defined_->ProcessesHere(spec_, nodes, cores) : RanksHere(spec_, nodes, cores);
    for (RankProcess& process : processes) process.environment.try_emplace(kThreads, trainers::Placeholder(kThreads));
    return processes;
  }

  // What starts a node's first process, or its last.
  trainers::Invoked StartOn(int64_t node, bool last, bool resumes = false) const {
    Nodes nodes;
    nodes.count = job_.nodes;
    nodes.rank = node;
    PointPlace place = UnknownPlace(nodes);
    place.resumes = resumes;
    const bool several = HasSeveralProcesses(spec_);
    if (!defined_ && several) place.secret_file = trainers::Placeholder("secret_file");
    if (!defined_ && !several) place.master_port.clear();
    const std::vector<RankProcess> processes = ProcessesOn(nodes);
    return StartOf(job_, Defined(), nullptr, spec_, last ? processes.back() : processes.front(), nodes, place);
  }

  const DefinedTrainer* Defined() const { return defined_ ? &*defined_ : nullptr; }

  std::optional<trainers::Processes> Kind() const {
    return defined_ ? std::optional(defined_->trainer().invocation->processes) : std::nullopt;
  }

  // Whether each of its ranks is a process that we start.
  bool RanksAreOurs() const { return !defined_ || Kind() == trainers::Processes::kOurs; }

  std::map<std::string, std::string> FilesOf(const trainers::Invoked& start) const {
    std::map<std::string, std::string> files;
    for (const auto& [name, text] : start.files)
      files[(fs::path(trainers::Placeholder("output_dir")) / name).string()] = text;
    if (!defined_ || defined_->trainer().invocation->used.contains("spec_file")) {
      files[trainers::Placeholder("spec_file")] = EncodeSpec(spec_) + "\n";
    }
    return files;
  }

  std::string ProcessesInWords() const {
    const int64_t ranks = ProcessesOf(spec_);
    const std::string on_nodes =
        job_.nodes > 1 ? fmt::format("started once on each of {} nodes; this is node 0", job_.nodes) : "started once";
    const std::string alone = job_.nodes > 1 ? "started once, on node 0" : "started once";
    std::string words;
    if (RanksAreOurs() && ranks > 1) {
      words = job_.nodes > 1 ? fmt::format("one of {} processes, {} on each of {} nodes; this is rank 0", ranks,
                                           ranks / job_.nodes, job_.nodes)
                             : fmt::format("one of {} processes; this is rank 0", ranks);
    } else if (Kind() == trainers::Processes::kTorchrun) {
      words = fmt::format("{}; it starts {} there", on_nodes, CountOf(ranks / job_.nodes, "rank"));
    } else if (Kind() == trainers::Processes::kSrun) {
      words = fmt::format("{}; srun starts {}", alone, CountOf(ranks, "rank"));
    } else {
      words = alone;
    }
    const int64_t repeats = job_.points.front().spec.repeats;
    return repeats > 1 ? fmt::format("{}; all of it for each of {} repeats", words, repeats) : words;
  }

  std::vector<std::string> Differs(const trainers::Invoked& first) const {
    const bool several_here = RanksAreOurs() && HasSeveralProcesses(spec_);
    const bool several_nodes =
        job_.nodes > 1 && (several_here || Kind() == trainers::Processes::kTorchrun) && HasSeveralProcesses(spec_);
    if (!several_here && !several_nodes) return {};
    const trainers::Invoked other = StartOn(several_nodes ? job_.nodes - 1 : 0, /*last=*/true);
    std::vector<std::string> differs;
    const auto compare = [&](const auto& ours, const auto& theirs) {
      for (const auto& [name, value] : ours) {
        const auto it = theirs.find(name);
        if (it == theirs.end() || it->second != value) differs.push_back(name);
      }
      for (const auto& [name, value] : theirs) {
        if (!ours.contains(name)) differs.push_back(name);
      }
    };
    compare(first.environment, other.environment);
    for (size_t at = 0; at < first.argv.size(); ++at) {
      if (first.argv.size() == other.argv.size() && first.argv[at] == other.argv[at]) continue;
      const bool is_value = at > 0 && first.argv[at - 1].starts_with('-') && !first.argv[at].starts_with('-');
      differs.push_back((is_value ? first.argv[at - 1] + " " : "") + first.argv[at]);
      if (first.argv.size() != other.argv.size()) break;
    }
    compare(first.files, other.files);
    if (first.directory != other.directory) differs.push_back(first.directory.string());
    return differs;
  }

  std::vector<std::string> ResumeOf(const trainers::Invoked& start) const {
    if (!defined_ || spec_.checkpoint_dir.empty()) return {};
    const std::vector<std::string> with = StartOn(0, /*last=*/false, /*resumes=*/true).argv;
    return {with.begin() + static_cast<std::ptrdiff_t>(std::min(with.size(), start.argv.size())), with.end()};
  }

  std::vector<std::string> VariablesNamed() const {
    std::vector<std::string> names;
    if (!defined_) return names;
    for (const std::string& name : defined_->trainer().invocation->used) {
      if (name.starts_with(kVariable)) names.push_back(name.substr(kVariable.size()));
    }
    return names;
  }

  void AddVariables(Preview& preview) const {
    const std::map<std::string, std::string> own = OwnEnvironment();
    for (std::string& name : VariablesNamed()) {
      if (job_.environment.contains(name)) continue;
      if (own.contains(name)) {
        preview.from_here.push_back(std::move(name));
      } else if (std::ranges::find(preview.unknown, trainers::Placeholder(name)) == preview.unknown.end()) {
        preview.unset.push_back(std::move(name));
      }
    }
  }

  std::vector<std::string> UnknownIn(const Preview& preview) const {
    std::set<std::string> known;  // the possible placeholders
    for (const char* name : {"master_addr", "master_port", "output_dir", "spec_file", "result_file", "progress_file",
                             "secret_file", "checkpoint_dir", kThreads}) {
      known.insert(trainers::Placeholder(name));
    }
    for (const std::string& name : VariablesNamed()) known.insert(trainers::Placeholder(name));
    std::vector<std::string> found;
    for (const std::string& placeholder : known) {
      const auto has = [&](const std::string& text) { return text.find(placeholder) != std::string::npos; };
      const auto has_any = [&](const auto& map) {
        return std::ranges::any_of(map, [&](const auto& entry) { return has(entry.first) || has(entry.second); });
      };
      if (std::ranges::any_of(preview.start.argv, has) || has_any(preview.start.environment) ||
          has_any(preview.files) || has(preview.start.directory)) {
        found.push_back(placeholder);
      }
    }
    return found;
  }

  const Job job_;
  RunSpec spec_;
  std::optional<DefinedTrainer> defined_;
};

}  // namespace

Preview PreviewOf(const Job& job, std::shared_ptr<const trainers::Trainer> definition) {
  return Previewer(job, std::move(definition)).Make();
}

}  // namespace ridgeline::node
