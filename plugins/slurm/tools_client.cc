// Slurm's command-line tools. Variables that would change what they do are kept from them.
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/process.h"
#include "slurm/client.h"

namespace ridgeline::slurm {
namespace {

using plugin::Finished;
using plugin::RunProgram;

constexpr int64_t kTimeoutMs = 60'000;
constexpr size_t kIdsACall = 500;  // a command line has its limits

class ToolsClient final : public Client {
 public:
  ToolsClient() {
    questions_ = environment_;
    questions_.insert(questions_.end(), {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C"});
  }

  std::string Description() const override { return "sbatch, squeue and sacct"; }

  Facts GetFacts() override { return ParseConfig(Ask({"scontrol", "show", "config"})); }

  int64_t Submit(const BatchJob& batch) override {
    const Finished finished = Run({"sbatch", "--parsable"}, environment_, SbatchFile(batch));
    int64_t id = 0;  // "12" or "12;cluster", after any words of the site's own
    const size_t line = finished.out.find_last_not_of('\n');
    const size_t begin = line == std::string::npos ? 0 : finished.out.rfind('\n', line) + 1;
    std::from_chars(finished.out.data() + begin, finished.out.data() + finished.out.size(), id);
    if (finished.ok() && id > 0) return id;
    if (finished.ok()) throw SlurmError(Trouble::kNoAnswer, "sbatch gave no job id, but: " + finished.out);
    Fail("sbatch", finished);
  }

  std::optional<std::vector<Row>> Jobs() override {
    return ParseSqueue(Ask({"squeue", "--noheader", "--states=all", fmt::format("--user={}", ::getuid()),
                            fmt::format("--Format={}", kSqueueFormat)}));
  }

  std::vector<Row> Accounted(const std::vector<std::string>& names, int64_t since_unix_s) override {
    std::vector<Row> rows;
    for (size_t begin = 0; begin < names.size(); begin += kIdsACall) {
      const auto end = std::min(begin + kIdsACall, names.size());
      const std::vector<std::string> some(names.begin() + static_cast<ptrdiff_t>(begin),
                                          names.begin() + static_cast<ptrdiff_t>(end));
      const std::vector<Row> found =
          ParseSacct(Ask({"sacct", "--noheader", "--parsable2", "--allocations", fmt::format("--uid={}", ::getuid()),
                          fmt::format("--starttime={}", LocalTime(since_unix_s)),
                          fmt::format("--format={}", kSacctFormat), fmt::format("--name={}", fmt::join(some, ","))}));
      rows.insert(rows.end(), found.begin(), found.end());
    }
    return rows;
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
  static std::string LocalTime(int64_t unix_s) {
    const time_t time = unix_s;
    tm parts{};
    ::localtime_r(&time, &parts);
    std::array<char, 32> text{};
    ::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    return text.data();
  }

  [[noreturn]] static void Fail(const std::string& tool, const Finished& finished) {
    std::string words = finished.err.empty() ? finished.out : finished.err;
    while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
    if (finished.timed_out) {
      // sbatch tries again by itself while the controller takes no more jobs.
      const Trouble trouble = TroubleOf(0, words) == Trouble::kBusy ? Trouble::kBusy : Trouble::kNoAnswer;
      throw SlurmError(trouble, fmt::format("{} did not answer within {} s. {}", tool, kTimeoutMs / 1000, words));
    }
    throw SlurmError(TroubleOf(0, words),
                     words.empty() ? fmt::format("{} ended with {}", tool, finished.exit_code) : words);
  }

  static Finished Run(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                      const std::string& input) {
    try {
      return RunProgram(argv, environment, input, kTimeoutMs);
    } catch (const plugin::Failure& e) {
      throw SlurmError(Trouble::kRefused, e.what());
    }
  }

  std::string Ask(const std::vector<std::string>& argv) const {
    Finished finished = Run(argv, questions_, "");
    if (!finished.ok()) Fail(argv.front(), finished);
    return std::move(finished.out);
  }

  const std::vector<std::string> environment_ = SubmitEnvironment();
  std::vector<std::string> questions_;
};

}  // namespace

std::vector<std::string> SubmitEnvironment() {
  std::vector<std::string> environment =
      plugin::EnvironmentWithout({"SBATCH_", "SLURM_", "SQUEUE_", "SACCT_", "SCANCEL_"});
  if (const char* config = std::getenv("SLURM_CONF")) environment.push_back(std::string("SLURM_CONF=") + config);
  return environment;
}

std::unique_ptr<Client> MakeToolsClient() { return std::make_unique<ToolsClient>(); }

}  // namespace ridgeline::slurm
