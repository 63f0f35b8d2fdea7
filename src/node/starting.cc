#include "node/starting.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/command_words.h"
#include "base/error.h"
#include "node/container.h"
#include "node/defined.h"
#include "ridgeline/job_dir.h"

namespace ridgeline::node {
namespace fs = std::filesystem;

namespace {

// At any place, srun reads such a word as the beginning of another part of a heterogeneous job.
void RefuseLoneColon(const std::vector<std::string>& starter, const std::vector<std::string>& argv) {
  if (starter.empty() || starter.front() != "srun") return;
  if (std::find(argv.begin(), argv.end(), ":") == argv.end()) return;
  throw Error(ErrorKind::kInvalidInput, "srun cannot pass on the argument ':': it begins another part of the job there",
              "start the trainer by a script that has this argument in it");
}

}  // namespace

PointPlace PlaceIn(const fs::path& point_dir, const Nodes& nodes, int64_t port) {
  const fs::path whole = fs::absolute(point_dir);  // absolute, because it may run in another folder
  PointPlace place;
  if (nodes.count > 1) {
    place.master_addr = nodes.master_address;
    place.master_port = std::to_string(nodes.master_port);
  } else if (port > 0) {
    place.master_port = std::to_string(port);
  }
  place.output_dir = whole / kOutputName;
  place.spec_file = whole / SpecName(nodes.rank);
  place.result_file = whole / kTrainersResultName;
  return place;
}

PointPlace UnknownPlace(const Nodes& nodes) {
  PointPlace place;
  if (nodes.count > 1) place.master_addr = trainers::Placeholder("master_addr");
  place.master_port = trainers::Placeholder("master_port");
  place.output_dir = trainers::Placeholder("output_dir");
  place.spec_file = trainers::Placeholder("spec_file");
  place.result_file = trainers::Placeholder("result_file");
  place.progress_file = trainers::Placeholder("progress_file");
  place.is_shown = true;
  return place;
}

Starting StartOf(const Job& job, const DefinedTrainer* defined, const Container* container, const RunSpec& spec,
                 const RankProcess& process, const Nodes& nodes, const PointPlace& place) {
  Starting start;
  std::vector<std::string> before;
  if (defined != nullptr) {
    static_cast<trainers::Invoked&>(start) = defined->InvokedFor(spec, process, nodes, place);
    before = defined->Srun(spec, nodes);
  } else {
    start.argv = job.trainer;
    // After its script, a shell takes the first word as its own name.
    if (WordsOf(start.argv).shell_text == start.argv.size() - 1) start.argv.push_back(start.argv.front());
    start.argv.insert(start.argv.end(), {"--spec", place.spec_file, "--result", place.result_file});
  }
  if (container != nullptr) before = container->Words(before, spec);
  RefuseLoneColon(before, start.argv);
  start.starter_words = before.size();
  start.argv.insert(start.argv.begin(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  // Only we set the rank and the number of ranks. The sweep and the definition may set the number of threads.
  std::map<std::string, std::string> all = process.environment;
  if (!place.master_port.empty()) all.insert({{"MASTER_ADDR", place.master_addr}, {"MASTER_PORT", place.master_port}});
  if (!place.secret_file.empty()) all["RIDGELINE_SECRET_FILE"] = place.secret_file;
  constexpr const char* kThreads = "OMP_NUM_THREADS";
  if (job.environment.contains(kThreads) || start.environment.contains(kThreads)) all.erase(kThreads);
  // The sweep's variables override the definition's.
  all.insert(job.environment.begin(), job.environment.end());
  all.insert(start.environment.begin(), start.environment.end());
  // Python buffers its output if it is no terminal. Then nobody could follow the run, and a crash would lose the
  // output.
  if (!IsOurTrainer(job)) all.emplace("PYTHONUNBUFFERED", "1");
  all["RIDGELINE_PROGRESS"] = process.rank == 0 ? place.progress_file : "";
  start.environment = std::move(all);
  return start;
}

}  // namespace ridgeline::node
