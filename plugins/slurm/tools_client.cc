// Slurm's command-line tools. They run without the variables that would change what they do.
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/process.h"
#include "slurm/client.h"

namespace ridgeline::slurm {
namespace {

using plugin::Finished;
using plugin::RunProgram;

constexpr size_t kIdsACall = 500;  // because a command line has limits

class ToolsClient final : public Client {
 public:
  ToolsClient(std::string cluster, int64_t timeout_ms) : cluster_(std::move(cluster)), timeout_ms_(timeout_ms) {
    questions_ = environment_;
    questions_.insert(questions_.end(), {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C"});
  }

  std::string Description() const override {
    return "sbatch, squeue and sacct" + (cluster_.empty() ? "" : " --clusters=" + cluster_);
  }

  Facts GetFacts() override { return ParseConfig(Ask({"scontrol", "show", "config"})); }

  int64_t Submit(const BatchJob& batch) override {
    const Finished finished = Run({"sbatch", "--parsable"}, environment_, SbatchFile(batch));
    int64_t id = 0;  // "12" or "12;cluster", after any words of the site's own
    const size_t line = finished.out.find_last_not_of('\n');
    const size_t begin = line == std::string::npos ? 0 : finished.out.rfind('\n', line) + 1;
    std::from_chars(finished.out.data() + begin, finished.out.data() + finished.out.size(), id);
    if (finished.ok() && id > 0) return id;
    if (finished.ok()) throw SlurmError(Trouble::kNoAnswer, "sbatch gave no job id, but: " + finished.out);
    // A killed sbatch has not refused the job, whatever it printed before.
    constexpr int kLeastOfASignal = 128;
    if (!finished.timed_out && finished.exit_code >= kLeastOfASignal) {
      throw SlurmError(Trouble::kNoAnswer, fmt::format("sbatch was ended by signal {}. {}",
                                                       finished.exit_code - kLeastOfASignal, WordsOf(Said(finished))));
    }
    Fail("sbatch", finished);
  }

  void Test(const BatchJob& batch) const override {
    const Finished finished = Run({"sbatch", "--test-only"}, environment_, SbatchFile(batch));
    if (!finished.ok()) Fail("sbatch --test-only", finished);
  }

  std::optional<std::vector<Row>> Jobs() override {
    // --all: also lists jobs in partitions that are closed to this user, which Slurm may accept all the same.
    return ParseSqueue(Ask({"squeue", "--noheader", "--all", "--states=all", fmt::format("--user={}", ::getuid()),
                            fmt::format("--Format={}", kSqueueFormat)}));
  }

  std::vector<Row> Accounted(const std::vector<std::string>& job_names, int64_t since_unix_s) override {
    return AskAccounting("--name", job_names, since_unix_s);
  }

  std::vector<Row> AccountedById(const std::vector<int64_t>& ids, int64_t since_unix_s) override {
    return AskAccounting("--jobs", ids, since_unix_s);
  }

  void Cancel(const std::vector<std::string>& ids) override {
    for (size_t begin = 0; begin < ids.size(); begin += kIdsACall) {
      std::vector<std::string> argv = {"scancel", "--quiet"};
      const auto end = std::min(begin + kIdsACall, ids.size());
      argv.insert(argv.end(), ids.begin() + static_cast<ptrdiff_t>(begin), ids.begin() + static_cast<ptrdiff_t>(end));
      const Finished finished = Run(argv, environment_, "");
      if (finished.ok()) continue;
      // An id that has ended meanwhile, or is gone, is what was wanted.
      if (finished.timed_out || TroubleOf(0, finished.err) != Trouble::kRefused) Fail("scancel", finished);
    }
  }

 private:
  template <typename Word>
  std::vector<Row> AskAccounting(const char* option, const std::vector<Word>& words, int64_t since_unix_s) const {
    std::vector<Row> rows;
    for (size_t begin = 0; begin < words.size(); begin += kIdsACall) {
      const auto some = std::span(words).subspan(begin, std::min(kIdsACall, words.size() - begin));
      const std::vector<Row> found = ParseSacct(
          Ask({"sacct", "--noheader", "--parsable2", "--allocations", fmt::format("--uid={}", ::getuid()),
               fmt::format("--starttime={}", LocalTime(since_unix_s)), fmt::format("--format={}", kSacctFormat),
               fmt::format("{}={}", option, fmt::join(some, ","))}));
      rows.insert(rows.end(), found.begin(), found.end());
    }
    return rows;
  }

  static std::string LocalTime(int64_t unix_s) {
    const time_t time = unix_s;
    tm parts{};
    ::localtime_r(&time, &parts);
    std::array<char, 32> text{};
    ::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    return text.data();
  }

  static const std::string& Said(const Finished& finished) {
    return finished.err.empty() ? finished.out : finished.err;
  }

  [[noreturn]] void Fail(const std::string& tool, const Finished& finished) const {
    const std::string words = WordsOf(Said(finished));
    if (finished.timed_out) {
      throw SlurmError(Trouble::kNoAnswer,
                       fmt::format("{} did not answer within {} s. {}", tool, timeout_ms_ / 1000, words));
    }
    throw SlurmError(TroubleOf(0, Said(finished)),
                     words.empty() ? fmt::format("{} ended with {}", tool, finished.exit_code) : words);
  }

  Finished Run(std::vector<std::string> argv, const std::vector<std::string>& environment,
               const std::string& input) const {
    if (!cluster_.empty()) argv.insert(argv.begin() + 1, "--clusters=" + cluster_);
    try {
      return RunProgram(argv, environment, input, timeout_ms_);
    } catch (const plugin::Failure& e) {
      throw SlurmError(Trouble::kRefused, e.what());
    }
  }

  std::string Ask(const std::vector<std::string>& argv) const {
    Finished finished = Run(argv, questions_, "");
    if (!finished.ok()) Fail(argv.front(), finished);
    return std::move(finished.out);
  }

  const std::string cluster_;
  const int64_t timeout_ms_;
  const std::vector<std::string> environment_ = SubmitEnvironment();
  std::vector<std::string> questions_;
};

}  // namespace

std::vector<std::string> SubmitEnvironment() {
  std::vector<std::string> environment =
      plugin::EnvironmentWithout({"SBATCH_", "SRUN_", "SLURM_", "SQUEUE_", "SACCT_", "SCANCEL_"});
  for (const char* name : {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS"}) {
    if (const char* value = std::getenv(name)) environment.push_back(fmt::format("{}={}", name, value));
  }
  return environment;
}

std::unique_ptr<Client> MakeToolsClient(const std::string& cluster, int64_t timeout_ms) {
  return std::make_unique<ToolsClient>(cluster, timeout_ms);
}

}  // namespace ridgeline::slurm
